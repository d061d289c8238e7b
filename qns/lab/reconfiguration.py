"""Reconfiguration: one link of the tree goes and another comes, and nothing is lost (thesis 4.3.5).

The path from B_0 to B_l is locked, link by link; then the link between B_p and B_q = B_p+1 is cut
and B_0 and B_l are linked. Two reconfigurations never lock the same link, so each sees a path that
only itself changes, and the overlay stays a tree whatever else goes on.

    LOCK   B_0 → B_l   each broker stops sending over the path ahead of it
    ACK    B_l → B_0   … and over the path behind it: as links keep the order, the path is now empty
    CLOSE  B_0 → B_q   the link is cut
    UNLOCK B_p → B_0 and B_q → B_l: what lay behind the cut lies the other way now
    NACK   back from who refuses, and UNLOCK B_0 → B_l if the swap is no longer worth it: undone

What a broker may not send over the path it keeps. Afterwards

- an update of the tables goes over the link that it waited for. B_0 keeps all updates since LOCK
  and B_l all since ACK, for the new link: what came before has passed along the path. Who gets an
  update twice knows it by its number. So whoever has an update passes it over each of its links;
- a notification knows for which brokers it waited, and goes on to these as REROUTE, wherever they
  lie now. So each broker is owed a notification by one message at a time, and gets it once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from qns.lab.cbr import Notify, Update
from qns.lab.system import Message, Publication, System

PlanId = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    id: PlanId
    """The broker that wants it, and which of its plans it is."""
    path: tuple[int, ...]
    """B_0 … B_l: its ends are to be linked."""
    cut: int
    """p: the link between path[p] and path[p + 1] has to go."""

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
    """The brokers that lie beyond the cut; None: nothing was cut."""


@dataclass(frozen=True, slots=True)
class Reroute:
    """A notification that waited, for these brokers and no others."""

    kind: ClassVar[str] = "reroute"
    event: Publication
    homes: tuple[int, ...]


Control = Lock | Ack | Nack | Close | Unlock


class ReconfiguringBroker(Protocol):
    """What a reconfiguration needs of its broker."""

    number: int
    system: System
    links: dict[int, None]
    towards: dict[int, int]

    def is_worthwhile(self, plan: Plan) -> bool:
        """Whether the link to come still weighs more than the one to go."""
        ...

    def send(self, link: int, message: Message) -> None: ...

    def scatter(self, event: Publication, homes: tuple[int, ...]) -> None:
        """Sends a notification on to these brokers."""
        ...

    def link_gone(self, link: int) -> None: ...

    def receive(self, sender: int, message: object) -> None: ...


@dataclass(slots=True, eq=False)
class Passage:
    """A broker's part in one reconfiguration."""

    plan: Plan
    place: int
    """On the path."""
    reserves: bool = False
    """Whether it keeps a link free for the new one."""
    stopped: dict[int, None] = field(default_factory=dict)
    """Links of the path over which nothing may be sent."""
    kept: list[tuple[int, Update | Notify | Reroute, tuple[int, ...]]] = field(default_factory=list)
    """What would have been sent: over which link; for whom, if it is a notification."""
    updates: list[Update] = field(default_factory=list)
    """At both ends: all since the lock."""
    held: list[object] = field(default_factory=list)
    """At both ends: what came over the new link before this end was ready."""

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
        """Whom this broker is to be linked with."""
        if self.place == 0:
            return self.plan.path[-1]
        return self.plan.path[0] if self.is_last else None

    @property
    def links(self) -> list[int]:
        return [link for link in (self.before, self.ahead) if link is not None]


class Reconfigurations:
    """All that a broker takes part in."""

    def __init__(self, broker: ReconfiguringBroker) -> None:
        self.broker = broker
        self.passages: dict[PlanId, Passage] = {}
        self.locked: dict[int, Passage] = {}
        """Link -> whose it is for now."""
        self.ends: dict[int, Passage] = {}
        """Broker that this one will be linked with -> by which; once the whole path is locked."""

    @property
    def available(self) -> int:
        """al, without what is reserved."""
        reserved = sum(passage.reserves for passage in self.passages.values())
        return self.broker.system.overlay.fan_out - len(self.broker.links) - reserved

    # --- locking ----------------------------------------------------------------------------------

    def start(self, plan: Plan) -> bool:
        """At B_0; whether its own links allow it. The path may be one that was: LOCK finds out."""
        return plan.path[-1] not in self.broker.links and self._enter(Passage(plan, 0))

    def _enter(self, passage: Passage) -> bool:
        """Locks this broker's links of the path, if they are there and free."""
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
            self._tell(passage.ahead, Lock(passage.plan))
        else:
            self.ends[passage.plan.path[0]] = passage
            self._acknowledge(passage)
        return True

    def _acknowledge(self, passage: Passage) -> None:
        assert passage.before is not None
        self._stop(passage, passage.before)
        self._tell(passage.before, Ack(passage.plan.id))

    def _stop(self, passage: Passage, link: int) -> None:
        passage.stopped[link] = None

    def on_lock(self, sender: int, plan: Plan) -> None:
        if not self._enter(Passage(plan, plan.path.index(self.broker.number))):
            self._tell(sender, Nack(plan.id))

    def on_nack(self, passage: Passage) -> None:
        if passage.before is not None:
            self._tell(passage.before, Nack(passage.plan.id))
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
            self._tell(passage.ahead, Unlock(passage.plan.id, None))
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
        """Over the link that goes, CLOSE is the last message."""
        plan, place, broker = passage.plan, passage.place, self.broker
        if place <= plan.cut:
            assert passage.ahead is not None
            self._tell(passage.ahead, Close(plan.id))
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
        """What lay beyond the cut lies towards the new link."""
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
            self._tell(to_link, Unlock(plan.id, moved))
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

    # --- what the broker asks ---------------------------------------------------------------------

    def keeps(
        self, link: int, message: Update | Notify | Reroute, homes: tuple[int, ...] = ()
    ) -> bool:
        """Whether it may not be sent now; then it is kept."""
        passage = self.locked.get(link)
        if passage is None or link not in passage.stopped:
            return False
        passage.kept.append((link, message, homes))
        return True

    def note(self, update: Update) -> None:
        """The broker has this update, its own or another's, as of now."""
        for passage in self.passages.values():
            if passage.other_end is not None:
                passage.updates.append(update)

    def holds(self, sender: int, message: object) -> bool:
        """Whether it came over a link whose near end is not ready; then it waits."""
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

    def _tell(self, link: int, message: Control) -> None:
        """Never kept: these are what everything else waits for."""
        self.broker.system.send(self.broker.number, link, message)
