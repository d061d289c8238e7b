"""Local Subscription Table: the subscriptions of this organisation's users (thesis 5.4.4)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import inf

from qns.cbr.subscription import Subscription
from qns.errors import DuplicateId, NameNotKnown, NotAllowed
from qns.ports import Index
from qns.tables import COUNTERS, SUBSCRIPTIONS, CounterRow, SubscriptionRow
from qns.turn import Turn


class State(Enum):
    ACTIVE = "active"
    PAUSED = "paused"


LIFE: dict[tuple[State, str], State] = {
    (State.ACTIVE, "pause"): State.PAUSED,
    (State.PAUSED, "resume"): State.ACTIVE,
}
"""What a user may do with a subscription besides renewing and ending it."""


@dataclass(slots=True, eq=False)
class LocalSubscription:
    id: str
    owner: str
    subscription: Subscription
    text: str
    group: str
    """Delivery group, one of n (DACE's remove); empty if it is a subscriber of its own."""
    expires_at: float
    created: int
    state: State = State.ACTIVE
    delivered: int = 0
    dropped: int = 0

    @property
    def is_paused(self) -> bool:
        return self.state is State.PAUSED

    def row(self) -> SubscriptionRow:
        return SubscriptionRow(
            self.id,
            self.owner,
            self.text,
            self.group,
            self.expires_at,
            int(self.is_paused),
            self.created,
        )


class LocalSubscriptionTable:
    """The table, with the index in which the Local Matcher looks."""

    def __init__(self, index: Index[str]) -> None:
        self.index = index
        self._by_id: dict[str, LocalSubscription] = {}
        self._groups: dict[str, dict[str, LocalSubscription]] = {}
        self._expiries: list[tuple[float, str]] = []
        self._created = 0
        self._ended: set[str] = set()
        """Ids are never used again: a late acknowledgement must not meet another's numbers."""
        self._counted: dict[str, LocalSubscription] = {}
        """Those whose counters are not in the turn's transaction yet."""

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
        """The subscription, for its owner only: to others it does not exist."""
        found = self._by_id.get(id)
        if found is None or found.owner != owner:
            mine = [each.id for each in self._by_id.values() if each.owner == owner][:1000]
            raise NameNotKnown("subscription", id, mine)
        return found

    def members(self, group: str) -> list[LocalSubscription]:
        return list(self._groups.get(group, {}).values())

    def recover(self, row: SubscriptionRow, subscription: Subscription) -> LocalSubscription:
        state = State.PAUSED if row.paused else State.ACTIVE
        found = LocalSubscription(
            row.id,
            row.owner,
            subscription,
            row.text,
            row.delivery_group,
            row.expires_at,
            row.created,
            state,
        )
        self._keep(found)
        return found

    def recover_counters(self, row: CounterRow) -> None:
        found = self._by_id.get(row.subscription)
        if found is None:
            self._ended.add(row.subscription)
            return
        found.delivered, found.dropped = row.delivered, row.dropped

    def add(
        self,
        turn: Turn,
        id: str,
        owner: str,
        subscription: Subscription,
        *,
        text: str,
        shown: str,
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
        self._keep(added)
        turn.put(SUBSCRIPTIONS, added.row())
        turn.record("sub", sub=id, text=shown, group=group)
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

    def change(self, turn: Turn, subscription: LocalSubscription, action: str) -> None:
        after = LIFE.get((subscription.state, action))
        if after is None:
            raise NotAllowed(
                f"subscription {subscription.id} is {subscription.state.value} already",
                remedy="nothing to do",
            )
        subscription.state = after
        turn.put(SUBSCRIPTIONS, subscription.row())
        turn.record(action, sub=subscription.id)

    def end(self, turn: Turn, subscription: LocalSubscription, why: str, dropped: int) -> None:
        del self._by_id[subscription.id]
        self.index.delete(subscription.id)
        if subscription.group:
            del self._groups[subscription.group][subscription.id]
        turn.delete(SUBSCRIPTIONS, subscription.id)
        self.counted(subscription)
        self._ended.add(subscription.id)
        turn.record("usub", sub=subscription.id, why=why, dropped=dropped)

    def counted(self, subscription: LocalSubscription) -> None:
        """Its counters have changed, or it has ended: `put_counters` writes it down."""
        self._counted[subscription.id] = subscription

    def put_counters(self, turn: Turn) -> None:
        """At the end of a turn: one row for all the deliveries of a subscription."""
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
        self.index.insert(subscription.id, subscription.subscription)
        self._by_id[subscription.id] = subscription
        self._created = max(self._created, subscription.created)
        if subscription.group:
            self._groups.setdefault(subscription.group, {})[subscription.id] = subscription
        self._watch(subscription)

    def _watch(self, subscription: LocalSubscription) -> None:
        if subscription.expires_at < inf:
            heapq.heappush(self._expiries, (subscription.expires_at, subscription.id))
