"""Answers: the history has what the peers answered, and no other user's request or reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qns.iil.requests import Pause, Resume, Subscribe, Unsubscribe
from qns.peer.turn import Record
from qns.simulation.findings import Findings
from qns.simulation.ledger import Ledger
from qns.simulation.ledger_entries import Call, Key

RULE = "Answers"
_CONTENT: Final = ("class", "data", "quality", "previous")


@dataclass(slots=True, eq=False)
class Answers:
    ledger: Ledger
    history: Sequence[Record]
    findings: Findings

    def judge(self) -> None:
        kept: defaultdict[tuple[str, str, str], list[Record]] = defaultdict(list)
        for record in self.history:
            if record["do"] == "pub":
                kept["pub", record["org"], record["event"]["id"]].append(record)
            elif record["do"] in ("sub", "usub", "pause", "resume", "ntfy"):
                kept[record["do"], record["org"], record["sub"]].append(record)
        ledger = self.ledger
        for (org, id), publication in ledger.publications.items():
            self._judge(publication, kept["pub", org, id], f"the publication of event {id}")
            for record in kept["pub", org, id]:
                fields = {each: record["event"].get(each) or {} for each in _CONTENT}
                asked = {each: publication.fields.get(each) or {} for each in _CONTENT}
                if fields != asked:
                    self._broken(f"{org} recorded event {id} with another content than it got")
        for (org, id), subscription in ledger.subscriptions.items():
            self._judge(subscription, kept["sub", org, id], f"subscription {id}")
            request = subscription.request
            assert isinstance(request, Subscribe)
            for record in kept["sub", org, id]:
                is_same = ledger.mean_the_same(record["text"], request.text)
                if not is_same or record["group"] != request.group:
                    self._broken(f"{org} recorded subscription {id} as another one than it got")
        for (kind, (org, id)), calls in list(ledger.changes.items()):
            for call in calls:
                if kind is Unsubscribe:
                    self._judge(call, kept["usub", org, id], f"the end of subscription {id}")
                elif kind is Pause:
                    self._judge(call, kept["pause", org, id], f"the pause of subscription {id}")
                elif kind is Resume and self._was_paused((org, id), call):
                    self._judge(call, kept["resume", org, id], f"the resume of subscription {id}")
        for (org, id), reads in ledger.reads.items():
            notified = {
                (each["source"], each["event"], each["number"]) for each in kept["ntfy", org, id]
            }
            for read in reads:
                self.findings.judge(
                    RULE,
                    (read.source, read.event, read.number) in notified,
                    f"subscription {id} of {org} read event {read.event} of {read.source} as "
                    f"number {read.number}, but no record of {org} has that notification.",
                )

    def _was_paused(self, key: Key, resume: Call) -> bool:
        """True if the subscription was paused for certain when the resume was asked."""
        return not self.ledger.restores[key[0]] and any(
            each.answered_at < resume.asked_at for each in self.ledger.changes[Pause, key]
        )

    def _judge(self, call: Call, records: list[Record], what: str) -> None:
        """Something that was granted is in the records of the peer, by the time of the answer."""
        if call.is_granted:
            self.findings.judge(
                RULE,
                any(record["t"] <= call.answered_at for record in records),
                f"{call.org} acknowledged {what} at {call.answered_at:.3f} s, but had not "
                "recorded it by then.",
            )

    def _broken(self, text: str) -> None:
        self.findings.break_rule(RULE, f"{text}.")
