"""Calm traffic: how events travel while no fault is injected (semantics §7).

Judged are the messages that were sent, not what peers recorded, and only for events that were
published after all was calm, or at any time if the plan has no fault at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.edl.messages import Notification, Notify, PullGap
from qns.simulation.findings import Findings
from qns.simulation.ledger_entries import Key, Publication
from qns.simulation.world import TUNING, World

FAN_OUT = "Fan-out"
ONE_NOTIFY = "One notify"
NO_RESEND = "No resend"
_EXCHANGE_S: Final = 0.5
"""A request and its reply take less time if all is calm."""
_UPSET_S: Final = 2.0
"""For so long an old copy of a request may make a peer send something again."""
_REFUSING: Final = ("most_early", "most_custody", "most_events")
RULES: Final = (FAN_OUT, ONE_NOTIFY, NO_RESEND)


@dataclass(slots=True)
class _Journey:
    """The notifications of one event."""

    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Sender, receiver -> how often the sender sent the event to it."""
    named: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Sender, organisation -> how often the sender sent it an entry, also in a subtree."""
    ended_at: float = 0.0
    """When the event was last sent."""


@dataclass(slots=True, eq=False)
class CalmTraffic:
    world: World
    findings: Findings
    since: float
    """No fault was injected from this time on, and none was under way."""
    _met_at: dict[tuple[str, str], float] = field(default_factory=dict)
    """One peer, another -> when the first request since that time was sent between them."""

    def judge(self) -> None:
        journeys: defaultdict[Key, _Journey] = defaultdict(_Journey)
        unjudged = self.world.liars | self.world.twins.keys()
        pulls = list[tuple[float, str, str]]()
        for t, sender, to, body in self.world.traffic:
            if t <= self.since:
                continue
            self._met_at.setdefault((sender, to), t)
            self._met_at.setdefault((to, sender), t)
            if sender in unjudged or to in unjudged:
                continue
            if isinstance(body, PullGap) and self._is_needless(to, t):
                pulls.append((t, sender, to))
            for item in body.items if isinstance(body, Notify) else ():
                if isinstance(item, Notification) and self._is_calm(item):
                    journey = journeys[item.source, item.event]
                    journey.ended_at = t
                    journey.sent[sender, to] += 1
                    names = [name for name in item.entry.receivers() if name not in unjudged]
                    journey.named.update((sender, name) for name in names)
        for key, journey in journeys.items():
            published = self.world.ledger.publications[key].asked_at
            if not self._is_disturbed(published, journey.ended_at):
                self._judge(key, journey)
        for t, sender, to in pulls:
            self.findings.break_rule(
                NO_RESEND,
                f"{sender} asked {to} at {t:.3f} s for numbers that it missed, though nothing was "
                "lost.",
            )

    def _is_disturbed(self, since: float, until: float) -> bool:
        """True if an old copy of a request arrived in this time or shortly before.

        A network that duplicates requests delivers some copies long after all was calm. An old
        hello, for example, makes a producer send again what is not acknowledged yet.
        """
        return any(since - _UPSET_S < at <= until for at in self.world.ledger.duplicates)

    def _is_needless(self, producer: str, at: float) -> bool:
        """True if neither an old copy of a request nor an operator's limit can have made a gap in
        the stream of the producer."""
        dropped = self.world.ledger.may_be_dropped(producer, at)
        return not dropped and not self._is_disturbed(at, at)

    def _is_calm(self, item: Notification) -> bool:
        """True if neither a fault nor an operator's limit can change the way of the event."""
        ledger = self.world.ledger
        publication = ledger.publications.get((item.source, item.event))
        return (
            publication is not None
            and publication.asked_at > self.since
            and not ledger.may_be_dropped(item.source)
            and not self._may_be_far_behind(publication)
        )

    def _may_be_far_behind(self, publication: Publication) -> bool:
        """True if consumers may be owed more events than the producer keeps in memory.

        It then sends the events that are only on its disk directly, and later ones in both ways.
        Late subscribers may be owed all events that are available.
        """
        at = publication.asked_at
        return self.world.tuning.owed_in_memory < sum(
            each.org == publication.org
            and abs(each.asked_at - at) < max(_UPSET_S, each.available_s)
            for each in self.world.ledger.publications.values()
        )

    def _has_fan_out(self, publication: Publication, receivers: Iterable[str]) -> bool:
        """True if nothing but the tree decides to whom the event is sent.

        Late subscribers get an available event directly, and so does a consumer that is far behind.
        A producer may take a link between two consumers for broken until it has exchanged a message
        with both after all was calm. When all peers start, it sends an event directly to a consumer
        whose first hello arrives after the publication.
        """
        if publication.available_s or self.world.tuning.owed_in_memory < TUNING.owed_in_memory:
            return False
        return self._has_met(publication, receivers)

    def _has_met(self, publication: Publication, receivers: Iterable[str]) -> bool:
        """True if the producer had exchanged a message with all of them since all was calm."""
        return all(
            self._met_at.get((publication.org, each), inf) + _EXCHANGE_S < publication.asked_at
            for each in receivers
        )

    def _has_relays(self, publication: Publication, receivers: Iterable[str]) -> bool:
        """True if the producer may still use relays, because links were broken for minutes."""
        was_cut = any(each["do"] == "ways" for each in self.world.history)
        return was_cut and not self._has_met(publication, receivers)

    def _judge(self, key: Key, journey: _Journey) -> None:
        source, event = key
        what, document = f"event {event} of {source}", self.world.federation
        receivers = dict.fromkeys(to for _, to in journey.sent)
        if self._has_fan_out(self.world.ledger.publications[key], receivers):
            children = Counter(sender for sender, _ in journey.sent)
            for sender, number in children.items():
                most = document[sender].capability
                self.findings.judge(
                    FAN_OUT,
                    number <= most,
                    f"{sender} sent {what} to {number} organisations, but its fan-out is {most}.",
                )
        if self._has_relays(self.world.ledger.publications[key], receivers):
            return
        for receiver in receivers:
            number = sum(n for (_, to), n in journey.sent.items() if to == receiver)
            self.findings.judge(
                ONE_NOTIFY,
                number == 1,
                f"{receiver} was sent {what} {number} times, though nothing was lost.",
            )
        for (sender, name), number in journey.named.items():
            self.findings.judge(
                NO_RESEND,
                number == 1,
                f"{sender} sent {what} {number} times for {name}, directly or through others, "
                "though nothing was lost.",
            )


def judge_calm_traffic(world: World, findings: Findings, *, has_faults: bool) -> None:
    """Judges the traffic from the first calm on, or all of it if there was no fault.

    It is not judged if tiny bounds make peers refuse events, which are then sent once more.
    """
    if any(getattr(world.tuning, each) < getattr(TUNING, each) for each in _REFUSING):
        return
    since = next(iter(world.ledger.calms), inf) if has_faults else -inf
    CalmTraffic(world, findings, since).judge()
