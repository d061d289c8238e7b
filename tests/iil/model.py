"""A naive model of the users of one peer: for each subscription, the events it must have.

The deliveries of a single subscription follow from the requests and the time. In a delivery group
the peer chooses the member. The model reads that choice in the history and checks that it was
allowed, and that every event that had to be handed out was handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf

from qns.peer.turn import Record


@dataclass(frozen=True)
class ModelEvent:
    id: str
    kind: str
    region: str
    expires_at: float


MATCHES: dict[str, Callable[[ModelEvent], bool]] = {
    "Report": lambda event: True,
    "only Report": lambda event: event.kind == "Report",
    "Report/Wind": lambda event: event.kind.startswith("Report/Wind"),
    'Report where Region = "north"': lambda event: event.region == "north",
}


@dataclass
class ModelSubscription:
    id: str
    text: str
    group: str
    expires_at: float = inf
    paused: bool = False
    numbered: list[str] = field(default_factory=list)
    """Its deliveries; the first one has number 1."""
    acknowledged: int = 0
    waiting: list[str] = field(default_factory=list)

    def wants(self, event: ModelEvent) -> bool:
        return MATCHES[self.text](event)

    @property
    def unread(self) -> list[tuple[int, str]]:
        numbered = list(enumerate(self.numbered, start=1))
        return numbered[self.acknowledged :]


@dataclass
class ModelGroup:
    owed: dict[str, str] = field(default_factory=dict)
    """Event -> the member that has it, or NOBODY."""
    served: set[str] = field(default_factory=set)
    due: set[str] = field(default_factory=set)
    """Events that must be handed out before the turn ends."""


NOBODY = ""


class Model:
    def __init__(self) -> None:
        self.events: dict[str, ModelEvent] = {}
        self.subscriptions: dict[str, ModelSubscription] = {}
        """The subscriptions that have not ended."""
        self.groups: dict[str, ModelGroup] = {}

    # --- requests ---------------------------------------------------------------------------------

    def subscribe(self, new: ModelSubscription, now: float) -> None:
        self.subscriptions[new.id] = new
        wanted = [event for event in self.events.values() if new.wants(event)]
        if not new.group:
            new.numbered = [event.id for event in wanted if event.expires_at > now]
            return
        group = self.groups.setdefault(new.group, ModelGroup())
        for event in wanted:
            if event.expires_at > now and event.id not in group.served:
                group.owed.setdefault(event.id, NOBODY)
            if group.owed.get(event.id) == NOBODY:
                group.due.add(event.id)

    def publish(self, event: ModelEvent) -> None:
        self.events[event.id] = event
        for each in self.singles():
            if each.wants(event):
                (each.waiting if each.paused else each.numbered).append(event.id)
        for name, group in self.groups.items():
            wanting = [each for each in self.members(name) if each.wants(event)]
            if wanting:
                group.owed[event.id] = NOBODY
                if not all(each.paused for each in wanting):
                    group.due.add(event.id)

    def pause(self, subscription: ModelSubscription) -> None:
        subscription.paused = True

    def resume(self, subscription: ModelSubscription) -> None:
        subscription.paused = False
        subscription.numbered += subscription.waiting
        subscription.waiting.clear()
        if subscription.group:
            group = self.groups[subscription.group]
            for id, member in group.owed.items():
                if member == NOBODY and subscription.wants(self.events[id]):
                    group.due.add(id)

    def acknowledge(self, subscription: ModelSubscription, upto: int) -> None:
        if subscription.group:
            group = self.groups[subscription.group]
            for number, id in self.unread(subscription):
                if number <= upto:
                    del group.owed[id]
        else:
            done = min(upto, len(subscription.numbered))
            subscription.acknowledged = max(subscription.acknowledged, done)

    def dropped_by(self, leaver: ModelSubscription) -> int:
        """Returns how many events are dropped if the subscription ends."""
        if not leaver.group:
            return len(leaver.unread) + len(leaver.waiting)
        return len(self._lost_with(leaver))

    def _lost_with(self, leaver: ModelSubscription) -> list[str]:
        others = [each for each in self.members(leaver.group) if each is not leaver]
        return [
            id
            for id, member in self.groups[leaver.group].owed.items()
            if member in (leaver.id, NOBODY)
            and leaver.wants(self.events[id])
            and not any(each.wants(self.events[id]) for each in others)
        ]

    # --- records of the history -------------------------------------------------------------------

    def observe(self, record: Record) -> None:
        if record["do"] == "usub":
            leaver = self.subscriptions[record["sub"]]
            assert record["why"] != "expired" or leaver.expires_at <= record["t"]
            self._end(leaver)
        elif record["do"] == "lapse":
            self._lapse(record["sub"], self.groups[record["group"]], record["event"])
        elif record["do"] == "ntfy" and record["group"]:
            self._hand_out(record["sub"], self.groups[record["group"]], record["event"])

    def _end(self, leaver: ModelSubscription) -> None:
        if leaver.group:
            group = self.groups[leaver.group]
            for id in self._lost_with(leaver):
                del group.owed[id]
                group.served.discard(id)
        del self.subscriptions[leaver.id]
        if leaver.group:
            for id in [id for id, member in group.owed.items() if member == leaver.id]:
                group.owed[id] = NOBODY
                group.served.discard(id)
                wanting = [e for e in self.members(leaver.group) if e.wants(self.events[id])]
                if not all(each.paused for each in wanting):
                    group.due.add(id)

    def _lapse(self, member: str, group: ModelGroup, id: str) -> None:
        if member in self.subscriptions:
            assert group.owed[id] == member
            group.owed[id] = NOBODY
            group.due.add(id)

    def _hand_out(self, member: str, group: ModelGroup, id: str) -> None:
        assert group.owed[id] == NOBODY, f"{id} is with {group.owed[id]} and goes to {member}"
        to = self.subscriptions[member]
        assert not to.paused
        assert to.wants(self.events[id])
        group.owed[id] = member
        group.served.add(id)
        group.due.discard(id)
        to.numbered.append(id)

    # --- expected state after each turn -----------------------------------------------------------

    def singles(self) -> Iterator[ModelSubscription]:
        return (each for each in self.subscriptions.values() if not each.group)

    def members(self, group: str) -> list[ModelSubscription]:
        return [each for each in self.subscriptions.values() if each.group == group]

    def unread(self, subscription: ModelSubscription) -> list[tuple[int, str]]:
        """Returns the numbers and events that a pull must return."""
        if not subscription.group:
            return subscription.unread
        owed = self.groups[subscription.group].owed
        newest = {id: number for number, id in enumerate(subscription.numbered, start=1)}
        return sorted((newest[id], id) for id, member in owed.items() if member == subscription.id)

    def kept(self, now: float) -> set[str]:
        """Returns the events that the peer must still keep."""
        needed = {event.id for event in self.events.values() if event.expires_at > now}
        for each in self.singles():
            needed |= {id for _, id in each.unread} | set(each.waiting)
        for group in self.groups.values():
            needed |= set(group.owed)
        return needed
