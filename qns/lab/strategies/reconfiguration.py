"""Reconfiguration: replaces one link of the tree without losing a message (thesis 4.3.5).

The path from B_0 to B_l is locked, link by link; then the link between B_p and B_q = B_p+1 is cut
and B_0 and B_l are linked. Two reconfigurations never lock the same link, so no other one changes
the path, and the overlay stays a tree.

    LOCK   B_0 → B_l   each broker stops sending over the path ahead of it
    ACK    B_l → B_0   … and over the path behind it; links preserve the order, so the path is empty
    CLOSE  B_0 → B_q   the link is cut
    UNLOCK B_p → B_0 and B_q → B_l: the brokers behind the cut are now in the other direction
    NACK   from a broker that refuses, and UNLOCK B_0 → B_l if the swap gains nothing: undone

A broker keeps the messages that it may not send over the path. Afterwards

- it sends kept updates over the link for which they were kept. B_0 keeps all updates since LOCK and
  B_l all since ACK for the new link; earlier ones have passed along the path. Duplicate updates are
  recognised by their numbers. So every broker passes every update over each of its links;
- it sends kept notifications as REROUTE to the brokers for which they were kept, in their new
  direction. So at any time one message carries a notification to a broker, and it arrives once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from qns.lab.simulated.system import Message, Publication, System
from qns.lab.strategies.cbr import Notify, Update

PlanId = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    id: PlanId
    """The broker that starts it, and the number of its plan."""
    path: tuple[int, ...]
    """B_0 … B_l, whose ends are to be linked."""
    cut: int
    """p: the link between path[p] and path[p + 1] is to be removed."""

    @property
    def tear_up(self) -> tuple[int, int]:
        return self.path[0], self.path[-1]

    @property
    def tear_down(self) -> tuple[int, int]:
        return self.path[self.cut], self.path[self.cut + 1]


@dataclass(frozen=True, slots=True)
class Lock:
    kind: ClassVar[str] = "lock"
    plan: Plan


@dataclass(frozen=True, slots=True)
class Ack:
    kind: ClassVar[str] = "lock"
    id: PlanId


@dataclass(frozen=True, slots=True)
class Nack:
    kind: ClassVar[str] = "lock"
    id: PlanId


@dataclass(frozen=True, slots=True)
class Close:
    kind: ClassVar[str] = "lock"
    id: PlanId


@dataclass(frozen=True, slots=True)
class Unlock:
    kind: ClassVar[str] = "lock"
    id: PlanId
    moved: tuple[int, ...] | None
    """The brokers beyond the cut; None if no link was cut."""


@dataclass(frozen=True, slots=True)
class Reroute:
    """A notification that was kept during a swap, for these brokers only."""

    kind: ClassVar[str] = "reroute"
    event: Publication
    homes: tuple[int, ...]


Control = Lock | Ack | Nack | Close | Unlock


class ReconfiguringBroker(Protocol):
    """The interface of a broker that reconfigurations use."""

    number: int
    system: System
    links: dict[int, None]
    towards: dict[int, int]

    def is_worthwhile(self, plan: Plan) -> bool:
        """True if the new link still weighs more than the one to remove."""
        ...

    def send(self, link: int, message: Message) -> None: ...

    def scatter(self, event: Publication, homes: tuple[int, ...]) -> None:
        """Forwards a notification to these brokers."""
        ...

    def link_gone(self, link: int) -> None: ...

    def receive(self, sender: int, message: object) -> None: ...


@dataclass(slots=True, eq=False)
class Passage:
    """A broker's part in one reconfiguration."""

    plan: Plan
    place: int
    """The broker's place on the path."""
    reserves: bool = False
    """True if the broker reserves a link for the new one."""
    stopped: dict[int, None] = field(default_factory=dict)
    """Links of the path over which the broker may not send."""
    kept: list[tuple[int, Update | Notify | Reroute, tuple[int, ...]]] = field(default_factory=list)
    """Messages that were not sent: link, message and, of a notification, its receivers."""
    updates: list[Update] = field(default_factory=list)
    """At both ends: all updates since the lock."""
    held: list[object] = field(default_factory=list)
    """At both ends: messages that came over the new link before this end was ready."""

    @property
    def before(self) -> int | None:
        return self.plan.path[self.place - 1] if self.place else None

    @property
    def ahead(self) -> int | None:
        return None if self.is_last else self.plan.path[self.place + 1]

    @property
    def is_last(self) -> bool:
        return self.place == len(self.plan.path) - 1

    @property
    def other_end(self) -> int | None:
        """The broker to which this one is to be linked."""
        if self.place == 0:
            return self.plan.path[-1]
        return self.plan.path[0] if self.is_last else None

    @property
    def links(self) -> list[int]:
        return [link for link in (self.before, self.ahead) if link is not None]


class Reconfigurations:
    """All reconfigurations in which a broker takes part."""

    def __init__(self, broker: ReconfiguringBroker) -> None:
        self.broker = broker
        self.passages: dict[PlanId, Passage] = {}
        self.locked: dict[int, Passage] = {}
        """Locked link -> the reconfiguration that locked it."""
        self.ends: dict[int, Passage] = {}
        """Future neighbour -> the reconfiguration, once the whole path is locked."""

    @property
    def available(self) -> int:
        """al, without the reserved links."""
        reserved = sum(passage.reserves for passage in self.passages.values())
        return self.broker.system.overlay.fan_out - len(self.broker.links) - reserved

    # --- locking ----------------------------------------------------------------------------------

    def start(self, plan: Plan) -> bool:
        """Starts at B_0; False if its own links forbid it. LOCK detects a stale path later."""
        return plan.path[-1] not in self.broker.links and self._enter(Passage(plan, 0))

    def _enter(self, passage: Passage) -> bool:
        """Locks this broker's links of the path; False if one is removed or locked."""
        links = passage.links
        if any(link not in self.broker.links or link in self.locked for link in links):
            return False
        if passage.other_end is not None:
            passage.reserves = self.broker.number not in passage.plan.tear_down
            if passage.reserves and self.available <= 0:
                return False
        self.passages[passage.plan.id] = passage
        self.locked |= dict.fromkeys(links, passage)
        if passage.ahead is not None:
            self._stop(passage, passage.ahead)
            self._send(passage.ahead, Lock(passage.plan))
        else:
            self.ends[passage.plan.path[0]] = passage
            self._acknowledge(passage)
        return True

    def _acknowledge(self, passage: Passage) -> None:
        assert passage.before is not None
        self._stop(passage, passage.before)
        self._send(passage.before, Ack(passage.plan.id))

    def _stop(self, passage: Passage, link: int) -> None:
        passage.stopped[link] = None

    def on_lock(self, sender: int, plan: Plan) -> None:
        if not self._enter(Passage(plan, plan.path.index(self.broker.number))):
            self._send(sender, Nack(plan.id))

    def on_nack(self, passage: Passage) -> None:
        if passage.before is not None:
            self._send(passage.before, Nack(passage.plan.id))
        self._undo(passage)

    def on_ack(self, passage: Passage) -> None:
        if passage.place:
            self._acknowledge(passage)
            return
        self.ends[passage.plan.path[-1]] = passage
        if self.broker.is_worthwhile(passage.plan):
            self.on_close(passage)
        else:
            self._give_up(passage)

    def _give_up(self, passage: Passage) -> None:
        if passage.ahead is not None:
            self._send(passage.ahead, Unlock(passage.plan.id, None))
        self._undo(passage)

    def _undo(self, passage: Passage) -> None:
        self._leave(passage)
        for link, message, _ in passage.kept:
            self.broker.send(link, message)

    def _leave(self, passage: Passage) -> None:
        del self.passages[passage.plan.id]
        for link in passage.links:
            self.locked.pop(link, None)
        if passage.other_end is not None and self.ends.get(passage.other_end) is passage:
            del self.ends[passage.other_end]

    # --- the swap ---------------------------------------------------------------------------------

    def on_close(self, passage: Passage) -> None:
        """Forwards CLOSE, the last message over the removed link, and cuts that link."""
        plan, place, broker = passage.plan, passage.place, self.broker
        if place <= plan.cut:
            assert passage.ahead is not None
            self._send(passage.ahead, Close(plan.id))
            if place < plan.cut:
                return
            broker.system.overlay.cut(*plan.tear_down)
            beyond = passage.ahead
        else:
            assert passage.before is not None
            beyond = passage.before
        del broker.links[beyond]
        del self.locked[beyond]
        broker.link_gone(beyond)
        moved = tuple(home for home, link in broker.towards.items() if link == beyond)
        self._unlock(passage, moved)

    def on_unlock(self, passage: Passage, message: Unlock) -> None:
        if message.moved is None:
            self._give_up(passage)
        else:
            self._unlock(passage, message.moved)

    def _unlock(self, passage: Passage, moved: tuple[int, ...]) -> None:
        """Turns the routes to the brokers beyond the cut towards the new link."""
        broker, plan = self.broker, passage.plan
        on_first_side = passage.place <= plan.cut
        from_link, to_link = (
            (passage.ahead, passage.before) if on_first_side else (passage.before, passage.ahead)
        )
        other_end = passage.other_end
        if other_end is not None:
            to_link = other_end
            broker.links[other_end] = None
            broker.system.overlay.open(broker.number, other_end)
        assert to_link is not None
        for home in moved:
            assert broker.towards[home] == from_link, "the tables of a path agree once it is empty"
            broker.towards[home] = to_link
        self._leave(passage)
        if other_end is None:
            self._send(to_link, Unlock(plan.id, moved))
        self._send_kept(passage)
        if other_end is not None:
            for update in passage.updates:
                if broker.towards.get(update.home) != other_end:
                    broker.send(other_end, update)
            for message in passage.held:
                broker.receive(other_end, message)

    def _send_kept(self, passage: Passage) -> None:
        for link, message, homes in passage.kept:
            if isinstance(message, Notify | Reroute):
                self.broker.scatter(message.event, homes)
            elif link in self.broker.links:
                self.broker.send(link, message)

    # --- calls of the broker ----------------------------------------------------------------------

    def keeps(
        self, link: int, message: Update | Notify | Reroute, homes: tuple[int, ...] = ()
    ) -> bool:
        """True if the message may not be sent now; then it is kept."""
        passage = self.locked.get(link)
        if passage is None or link not in passage.stopped:
            return False
        passage.kept.append((link, message, homes))
        return True

    def note(self, update: Update) -> None:
        """Notes that the broker now has this update, its own or another's."""
        for passage in self.passages.values():
            if passage.other_end is not None:
                passage.updates.append(update)

    def holds(self, sender: int, message: object) -> bool:
        """True if the message came over a link whose near end is not ready; then it is held."""
        passage = self.ends.get(sender)
        if passage is None:
            return False
        passage.held.append(message)
        return True

    def receive(self, sender: int, message: Control) -> None:
        if isinstance(message, Lock):
            self.on_lock(sender, message.plan)
            return
        passage = self.passages[message.id]
        if isinstance(message, Ack):
            self.on_ack(passage)
        elif isinstance(message, Nack):
            self.on_nack(passage)
        elif isinstance(message, Close):
            self.on_close(passage)
        else:
            self.on_unlock(passage, message)

    def _send(self, link: int, message: Control) -> None:
        """Sends a control message, which is never kept, because other messages wait for it."""
        self.broker.system.send(self.broker.number, link, message)
