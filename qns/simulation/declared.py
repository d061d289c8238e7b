"""Declared: what the world undid is recorded by some peer, if a member had evidence of it.

A host that is put back forgets requests that it had acknowledged: after a restore from a backup, a
snapshot or a lost log. The other rules excuse what follows from that. This rule asks for each host
that was put back whether anybody has noticed it: if another member has taken an event that was
undone, a restored start, a rewind or a skip has to be recorded by the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import inf

from qns.peer.turn import Record
from qns.simulation.findings import Findings
from qns.simulation.ledger import Ledger
from qns.simulation.ledger_entries import Restore

RULE = "Declared"
UNNOTICED = "setbacks without evidence"
"""The count of hosts that were put back and had acknowledged something that no member had seen."""
ONLY_VIEWS = "setbacks of views, not recorded"
"""The count of hosts that were put back and lost acknowledged subscriptions, but no event that a
member has: a producer held a later view, and no peer has recorded it."""


@dataclass(slots=True, eq=False)
class Declared:
    ledger: Ledger
    history: Sequence[Record]
    findings: Findings
    setbacks: frozenset[str]
    """The organisations whose peers show a setback in their status at the end."""

    def judge(self) -> None:
        for org, restores in list(self.ledger.restores.items()):
            for restore, later in zip_longest(restores, restores[1:]):
                until = inf if later is None else later.at
                if any(restore.at <= each < until for each in self.ledger.starts[org]):
                    self._judge(org, restore)

    def _judge(self, org: str, restore: Restore) -> None:
        events, subscriptions = self._undone(org, restore)
        if not events and not subscriptions:
            return
        recorded = org in self.setbacks or self._is_recorded(org, restore)
        taken_by, viewed_by = self._witnesses(org, restore, events, subscriptions)
        if taken_by is not None:
            self.findings.judge(
                RULE,
                recorded,
                f"{org} was put back at {restore.at:.3f} s to the state of {restore.since:.3f} s. "
                f"{taken_by} has an event that {org} had acknowledged in between, but no peer has "
                "recorded that the store went back.",
            )
        elif viewed_by is None:
            self.findings.apart[UNNOTICED] += 1
        elif not recorded:
            self.findings.apart[ONLY_VIEWS] += 1

    def _undone(self, org: str, restore: Restore) -> tuple[set[str], set[str]]:
        """Returns the events and subscriptions that were acknowledged and then undone."""
        events, subscriptions = (
            {
                id
                for (name, id), call in calls.items()
                if name == org and restore.since < call.answered_at <= restore.at
            }
            for calls in (self.ledger.publications, self.ledger.subscriptions)
        )
        return events, subscriptions

    def _witnesses(
        self, org: str, restore: Restore, events: set[str], subscriptions: set[str]
    ) -> tuple[str | None, str | None]:
        """Returns a member that took one of the events, and one that held the view with one of the
        subscriptions; both have neither gone back nor left since."""
        taken_by = viewed_by = None
        if self.ledger.moved_after(org, restore.since):
            return None, None
        for record in self.history:
            do = record["do"]
            if do not in ("take", "stable") or not restore.since < record["t"] <= restore.at:
                continue
            other = record["org"] if do == "take" else record["producer"]
            if not self._remembers(other, record["t"]):
                continue
            if do == "take" and record["source"] == org and record["event"] in events:
                taken_by = other
            elif do == "stable" and record["org"] == org and record["sub"] in subscriptions:
                viewed_by = other
        return taken_by, viewed_by

    def _remembers(self, name: str, since: float) -> bool:
        return not (self.ledger.restored_after(name, since) or self.ledger.moved_after(name, since))

    def _is_recorded(self, org: str, restore: Restore) -> bool:
        return any(
            record["t"] >= restore.at
            and (
                (record["do"] == "start" and record["org"] == org and record["restored"])
                or (record["do"] in ("rewind", "skip") and org in (record["org"], record["source"]))
            )
            for record in self.history
        )
