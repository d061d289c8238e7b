"""Internal Interface Layer: the users' side of a peer (thesis 5.4.4).

Interpreter -> Local Subscription Table; events -> Local Matcher -> Local Dispatcher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from qns.cbr.subscription import Subscription
from qns.d2q.schema import Schema
from qns.errors import LimitExceeded, ValueRefused
from qns.event_log import EventLog, KnownEvent
from qns.iil.interpreter import interpret
from qns.iil.local_dispatcher import LocalDispatcher
from qns.iil.local_matcher import LocalMatcher
from qns.iil.requests import (
    Deliveries,
    Delivery,
    Read,
    Subscribe,
    SubscriptionInfo,
    Subscriptions,
)
from qns.iil.stability import Stability
from qns.iil.subscriptions import LocalSubscription, LocalSubscriptionTable
from qns.ports import Index
from qns.tuning import Tuning
from qns.turn import Turn

_LONGEST_NAME = 200


@dataclass(slots=True, eq=False)
class InternalInterfaceLayer:
    schema: Schema
    log: EventLog
    tuning: Tuning
    table: LocalSubscriptionTable
    matcher: LocalMatcher
    stability: Stability
    dispatcher: LocalDispatcher
    _later: list[KnownEvent] = field(default_factory=list)

    @classmethod
    def of(
        cls, schema: Schema, log: EventLog, tuning: Tuning, index: Index[str]
    ) -> InternalInterfaceLayer:
        table = LocalSubscriptionTable(index)
        stability = Stability()
        dispatcher = LocalDispatcher(
            table, log, stability.is_waiting, tuning.lease_s, tuning.longest_queue
        )
        return cls(schema, log, tuning, table, LocalMatcher(table), stability, dispatcher)

    def interpret(self, request: Subscribe) -> Subscription:
        """The normal form of what is asked for; every error of the request is found here."""
        for kind, name in (
            ("an owner", request.owner),
            ("a subscription's id", request.id),
            ("a delivery group's name", request.group),
        ):
            if len(name) > _LONGEST_NAME or not name.isprintable():
                raise ValueRefused(f"{kind} has at most {_LONGEST_NAME} printable characters")
        checked_lifetime(request.lifetime_s)
        return interpret(request.text, self.schema)

    def check_room(self) -> None:
        if len(self.table) >= self.tuning.most_subscriptions:
            raise LimitExceeded(
                f"{len(self.table)} subscriptions exist already", remedy="end some of them first"
            )

    def offer(self, turn: Turn, known: KnownEvent) -> None:
        """An event of this organisation's Quality Factory, or of another producer."""
        self.dispatcher.offer(turn, known, self.matcher.match(known.event))

    def offer_later(self, events: Sequence[KnownEvent]) -> None:
        """The same for many, which are matched together: when `offer_now` is said, in this turn."""
        self._later += events

    def offer_now(self, turn: Turn) -> None:
        """What was put off. Nothing else may happen to subscriptions or events before."""
        if not self._later:
            return
        events, self._later = self._later, []
        found = self.matcher.match_all([known.event for known in events])
        for known, matched in zip(events, found, strict=True):
            self.dispatcher.offer(turn, known, matched)

    def catch_up(
        self, turn: Turn, subscription: LocalSubscription, source: str, *, late: bool
    ) -> None:
        """It is stable at a producer: what was held, and if it came late, what is available."""
        events = self.log.available(source, turn.now) if late else ()
        wanted = [known for known in events if subscription.subscription.matches(known.event)]
        self.dispatcher.catch_up(turn, subscription, source, wanted)

    def end(self, turn: Turn, subscription: LocalSubscription, why: str) -> int:
        """How many events were dropped with it."""
        self.stability.forget(turn, subscription.id)
        dropped = self.dispatcher.waste(subscription)
        self.table.end(turn, subscription, why, dropped)
        self.dispatcher.end(turn, subscription)
        return dropped

    def list(self, owner: str) -> Subscriptions:
        return Subscriptions(
            tuple(
                SubscriptionInfo(
                    each.id,
                    each.text,
                    each.group,
                    each.is_paused,
                    each.expires_at,
                    tuple(self.stability.pending(each.id)),
                    each.delivered,
                    each.dropped,
                    self.dispatcher.depth(each.id),
                )
                for each in self.table
                if each.owner == owner
            )
        )

    def read(self, request: Read) -> Deliveries:
        self.table.owned(request.id, request.owner)
        if request.limit < 0:
            raise ValueRefused("a negative limit", remedy="say how many deliveries to read")
        found = self.dispatcher.read(
            request.id, request.after, request.limit, self.tuning.bytes_per_call
        )
        return Deliveries(tuple(Delivery(number, *known.key, known.xml) for number, known in found))


def checked_lifetime(lifetime_s: float) -> float:
    if not 0 < lifetime_s <= inf:
        raise ValueRefused("a lifetime is a positive number of seconds", remedy="leave it out")
    return lifetime_s
