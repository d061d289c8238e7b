"""Local Subscription Table: the subscriptions of this organisation's users (thesis 5.4.4).

`SUBSCRIPTION` is the state machine of a subscription: active or paused.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from qns.cbr.subscription import Subscription
from qns.d2q.normal_form import in_grown_schema
from qns.d2q.schema import Schema
from qns.d2q.stored_form import read_stored, write_stored
from qns.errors import DuplicateId, NameNotKnown, NotAllowed
from qns.iil.cursor import Cursor, CursorAhead
from qns.iil.interpreter import interpret, without_labels
from qns.iil.number_series import NumberSeries
from qns.peer.ports import Index, Store
from qns.peer.state_machine import TableKey
from qns.peer.tables import COUNTERS, SUBSCRIPTIONS, CounterRow, SubscriptionRow
from qns.peer.turn import Turn


class SubscriptionState(TableKey):
    ACTIVE = "active"
    PAUSED = "paused"
    """Events are queued, and none is delivered."""


class SubscriptionEvent(TableKey):
    """What changes the state; the value is the name of the record in the history."""

    PAUSE = "pause"
    RESUME = "resume"


SUBSCRIPTION: dict[tuple[SubscriptionState, SubscriptionEvent], SubscriptionState] = {
    (SubscriptionState.ACTIVE, SubscriptionEvent.PAUSE): SubscriptionState.PAUSED,
    (SubscriptionState.PAUSED, SubscriptionEvent.RESUME): SubscriptionState.ACTIVE,
}


@dataclass(slots=True, eq=False)
class LocalSubscription:
    id: str
    owner: str
    subscription: Subscription
    text: str
    group: str
    """The delivery group (DACE's `remove`); empty if the subscription belongs to none."""
    expires_at: float
    created: int
    state: SubscriptionState = SubscriptionState.ACTIVE
    delivered: int = 0
    dropped: int = 0
    in_series: bool = False
    """True if this start of the peer has numbered a delivery."""
    reading: str = ""
    """The text without labels; empty if the text has none."""

    @property
    def is_paused(self) -> bool:
        return self.state is SubscriptionState.PAUSED

    def row(self) -> SubscriptionRow:
        return SubscriptionRow(
            self.id,
            self.owner,
            self.text,
            self.group,
            self.expires_at,
            int(self.is_paused),
            self.created,
            self.reading,
            write_stored(self.subscription),
        )


class LocalSubscriptionTable:
    """The subscriptions, and the index that the Local Matcher uses."""

    def __init__(
        self, index: Index[str], series: NumberSeries, ended_remembered: float = inf
    ) -> None:
        self.index = index
        self.series = series
        self._ended_remembered = ended_remembered
        self._by_id: dict[str, LocalSubscription] = {}
        self._groups: dict[str, dict[str, LocalSubscription]] = {}
        self._expiries: list[tuple[float, str]] = []
        self._created = 0
        self._ended: OrderedDict[str, None] = OrderedDict()
        """The ids of subscriptions that have ended, oldest first. They are not used again: a late
        acknowledgement must not apply to another subscription."""
        self._counted: dict[str, LocalSubscription] = {}
        """Subscriptions whose counters are not in the turn's transaction yet."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[LocalSubscription]:
        return iter(list(self._by_id.values()))

    def __contains__(self, id: str) -> bool:
        return id in self._by_id

    def __getitem__(self, id: str) -> LocalSubscription:
        found = self._by_id.get(id)
        if found is None:
            known = self._by_id if len(self._by_id) < 1000 else ()
            raise NameNotKnown("subscription", id, known)
        return found

    def owned(self, id: str, owner: str) -> LocalSubscription:
        """Returns the subscription if it belongs to the owner; otherwise raises NameNotKnown."""
        found = self._by_id.get(id)
        if found is None or found.owner != owner:
            mine = [each.id for each in self._by_id.values() if each.owner == owner][:1000]
            raise NameNotKnown("subscription", id, mine)
        return found

    def has_ended(self, id: str) -> bool:
        """True if there was a subscription of this id."""
        return id in self._ended

    def members(self, group: str) -> list[LocalSubscription]:
        return list(self._groups.get(group, {}).values())

    def recover_from(self, store: Store, schema: Schema) -> None:
        for row in sorted(store.rows(SUBSCRIPTIONS), key=lambda row: row.created):
            if row.normal:
                subscription = read_stored(row.normal, schema, row.text)
            else:
                subscription = interpret(row.reading or row.text, schema)
            paused = SubscriptionState.PAUSED if row.paused else SubscriptionState.ACTIVE
            self._keep(
                LocalSubscription(
                    row.id,
                    row.owner,
                    subscription,
                    row.text,
                    row.delivery_group,
                    row.expires_at,
                    row.created,
                    paused,
                    reading=row.reading,
                )
            )
        self.index.insert_all((each.id, each.subscription) for each in self)
        for counter in store.rows(COUNTERS):
            found = self._by_id.get(counter.subscription)
            if found is None:
                self._ended[counter.subscription] = None
            else:
                found.delivered, found.dropped = counter.delivered, counter.dropped
        self.series.recover_from(store)

    def add(
        self,
        turn: Turn,
        id: str,
        owner: str,
        subscription: Subscription,
        *,
        text: str,
        reading: str,
        group: str,
        expires_at: float,
    ) -> LocalSubscription:
        if id in self._ended:
            raise DuplicateId(
                f"subscription {id} has ended, and its id is not given again",
                remedy="choose another id",
            )
        if id in self._by_id:
            raise DuplicateId(f"subscription {id} exists already", remedy="choose another id")
        created = self.next_number()
        added = LocalSubscription(id, owner, subscription, text, group, expires_at, created)
        added.reading = "" if reading == text else reading
        self.index.insert(id, subscription)
        self._keep(added)
        turn.put(SUBSCRIPTIONS, added.row())
        turn.record("sub", sub=id, text=reading, group=group)
        turn.outcomes.subscribed.append(id)
        return added

    def free_id(self, epoch: int) -> str:
        while (id := f"{epoch}-{self.next_number()}") in self._by_id or id in self._ended:
            self._created += 1
        return id

    def next_number(self) -> int:
        return self._created + 1

    def renew(self, turn: Turn, subscription: LocalSubscription, expires_at: float) -> None:
        subscription.expires_at = expires_at
        self._watch(subscription)
        turn.put(SUBSCRIPTIONS, subscription.row())

    def change(self, turn: Turn, subscription: LocalSubscription, event: SubscriptionEvent) -> None:
        """Pauses or resumes the subscription."""
        after = SUBSCRIPTION.get((subscription.state, event))
        if after is None:
            raise NotAllowed(
                f"subscription {subscription.id} is {subscription.state.value} already",
                remedy="nothing to do",
            )
        subscription.state = after
        turn.put(SUBSCRIPTIONS, subscription.row())
        turn.record(event.value, sub=subscription.id)

    def end(self, turn: Turn, subscription: LocalSubscription, why: str, dropped: int) -> None:
        del self._by_id[subscription.id]
        self.index.delete(subscription.id)
        if subscription.group:
            del self._groups[subscription.group][subscription.id]
        turn.delete(SUBSCRIPTIONS, subscription.id)
        self.series.remove(turn, subscription.id)
        self._remember_ended(turn, subscription)
        turn.record("usub", sub=subscription.id, why=why, dropped=dropped)
        turn.outcomes.ended.append(subscription.id)

    def _remember_ended(self, turn: Turn, subscription: LocalSubscription) -> None:
        """Keeps the id, and forgets the oldest one if there are too many."""
        self.counted(subscription)
        self._ended[subscription.id] = None
        if len(self._ended) > self._ended_remembered:
            oldest, _ = self._ended.popitem(last=False)
            self._counted.pop(oldest, None)
            turn.delete(COUNTERS, oldest)

    def apply_schema(self, turn: Turn, old: Schema, new: Schema) -> Iterator[LocalSubscription]:
        """Takes over a schema that has grown; yields each subscription to a class that has more
        classes below it from now on, also if its scope is only that class."""
        for each in self:
            if old.labels != new.labels and not each.reading:  # added by an earlier version of QNS
                reading = without_labels(each.text, each.subscription, old)
                each.reading = "" if reading == each.text else reading
                turn.put(SUBSCRIPTIONS, each.row())
            data_class = each.subscription.data_class
            if new.scope(data_class) != old.scope(data_class):
                each.subscription = in_grown_schema(each.subscription, new)
                self.index.delete(each.id)
                self.index.insert(each.id, each.subscription)
                yield each

    def next_delivery(self, turn: Turn, subscription: LocalSubscription) -> int:
        """Takes the number of the subscription's next delivery."""
        if not subscription.in_series:
            subscription.in_series = True
            self.series.begin(turn, subscription.id, subscription.delivered + 1)
        subscription.delivered += 1
        self._counted[subscription.id] = subscription
        return subscription.delivered

    def check_cursor(self, subscription: LocalSubscription, cursor: Cursor) -> None:
        """Raises CursorAhead if the cursor names a delivery that was not made here.

        A cursor without a series is not checked: clients of QNS 0.2.0 have no other.
        """
        id, delivered = subscription.id, subscription.delivered
        is_made = cursor.number <= delivered and self.series.may_have(id, cursor)
        if cursor.series and not is_made:
            raise CursorAhead.of(id, cursor.number, delivered)

    def counted(self, subscription: LocalSubscription) -> None:
        """Notes that its counters have changed, so that `put_counters` writes them."""
        self._counted[subscription.id] = subscription

    def put_counters(self, turn: Turn) -> None:
        """Writes one row for each subscription whose counters changed in the turn."""
        for each in self._counted.values():
            turn.put(COUNTERS, CounterRow(each.id, each.delivered, each.dropped))
        self._counted.clear()

    def expired(self, now: float) -> list[LocalSubscription]:
        found: dict[str, LocalSubscription] = {}
        while self._expiries and self._expiries[0][0] <= now:
            id = heapq.heappop(self._expiries)[1]
            subscription = self._by_id.get(id)
            if subscription is not None and subscription.expires_at <= now:
                found[id] = subscription
        return list(found.values())

    def next_expiry(self) -> float:
        return self._expiries[0][0] if self._expiries else inf

    def _keep(self, subscription: LocalSubscription) -> None:
        self._by_id[subscription.id] = subscription
        self._created = max(self._created, subscription.created)
        if subscription.group:
            self._groups.setdefault(subscription.group, {})[subscription.id] = subscription
        self._watch(subscription)

    def _watch(self, subscription: LocalSubscription) -> None:
        if subscription.expires_at < inf:
            heapq.heappush(self._expiries, (subscription.expires_at, subscription.id))
