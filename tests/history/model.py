"""A model of a federation that keeps every guarantee in the plainest way and writes its history.

One object holds the state of all organisations. A producer gets each subscription at once, so views
are never out of date. Only events between two organisations take time (`carry`, or `entrust` and
`forward`). The model matches with qns.cbr, so judging its histories compares the judge's own
matching with the routing core.
"""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from itertools import permutations
from math import inf
from typing import Any

from qns.history.records import Record, new_record
from tests.history.state import (
    CLASSES,
    CONTENTS,
    READER,
    XML,
    Entry,
    Promise,
    Published,
    State,
    User,
)


class Model:
    """A federation of a few organisations."""

    def __init__(self, names: tuple[str, ...] = ("A", "B", "C")) -> None:
        self.records: list[Record] = []
        self.now = 0.0
        self.names = names
        self.incarnations: dict[str, int] = {}
        self.states: dict[str, State] = {}
        self.certainly_owed: list[int] = []
        """The places of notifications whose events were owed to one subscriber when published."""
        self._backups: dict[str, list[tuple[float, State]]] = defaultdict(list)
        self._count = 0
        self._version = 0
        self._epoch = 0
        self._record("schema", xml=XML)
        for name in names:
            self.join(name)

    def _record(self, do: str, org: str = "", **fields: Any) -> None:
        self.records.append(new_record(do, self.now, org, **fields))

    def _fresh(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _others(self, name: str) -> list[str]:
        return [other for other in self.incarnations if other != name]

    # -- members ----------------------------------------------------------------------------------

    def join(self, name: str) -> None:
        self._version += 1
        self.incarnations[name] = self._version
        self.states[name] = State()
        self._record("join", name, joined=self._version)
        self._record("start", name, epoch=0, restored=False)
        for consumer in self._others(name):
            for user in self.states[consumer].users.values():
                self._open_view(consumer, user, name)

    def leave(self, name: str) -> None:
        """Removes an organisation after all its events have arrived.

        Its peer learns later that it was removed. Until then its users are notified.
        """
        self.drain()
        self._record("leave", name, joined=self.incarnations[name])
        for user in self.states[name].users.values():
            self._resume(name, user)
        for user in self.states[name].users.values():
            self._end(name, user, "left")
        del self.incarnations[name], self.states[name]
        self._backups.clear()
        for state in self.states.values():
            state.custody = [each for each in state.custody if name not in (each.to, each.source)]
            for each in (state.next, state.epochs, state.store, state.streams, state.crossed):
                each.pop(name, None)
            state.fences.pop(name, None)
            for user in state.users.values():
                user.waiting.pop(name, None)
                user.held.pop(name, None)

    def backup(self, name: str) -> None:
        self._backups[name].append((self.now, deepcopy(self.states[name])))

    def restore(self, name: str, which: int) -> None:
        backups = self._backups[name]
        if not backups:
            return
        which %= len(backups)
        del backups[which + 1 :]
        since, state = backups[which]
        self._record("restore", name, since=since)
        self.states[name] = state = deepcopy(state)
        self._epoch += 1
        state.epoch = self._epoch
        self._record("start", name, epoch=self._epoch, restored=True)
        for other in self._others(name):
            state.fences[other].append((state.epoch, len(state.streams[other]) + 1))
            for user in state.users.values():
                self._open_view(name, user, other)
            for user in self.states[other].users.values():
                self._open_view(other, user, name)

    # -- users ------------------------------------------------------------------------------------

    def subscribe(self, name: str, text: str, group: str) -> None:
        state = self.states[name]
        user = User(self._fresh("U"), text, group)
        state.users[user.id] = user
        self._record("sub", name, sub=user.id, text=text, group=group)
        for published in state.published:
            if published.is_available(self.now) and user.wants(published):
                self._deliver(name, user, published)
        for producer in self._others(name):
            self._open_view(name, user, producer)

    def unsubscribe(self, name: str, which: int) -> None:
        if user := self._pick(name, which):
            self._end(name, user, "unsubscribed")

    def _end(self, name: str, user: User, why: str) -> None:
        if user.is_active:
            user.is_active = False
            self._record("usub", name, sub=user.id, why=why)

    def pause(self, name: str, which: int) -> None:
        if (user := self._pick(name, which)) and not user.paused:
            user.paused = True
            self._record("pause", name, sub=user.id)

    def resume(self, name: str, which: int) -> None:
        if user := self._pick(name, which):
            self._resume(name, user)

    def _resume(self, name: str, user: User) -> None:
        if user.is_active and user.paused:
            user.paused = False
            self._record("resume", name, sub=user.id)
            queue, user.queue = user.queue, []
            for published in queue:
                self._deliver(name, user, published)

    def lapse(self, name: str, which: int) -> None:
        """Lets the lease of a group's member lapse, and notifies a member again."""
        state = self.states[name]
        known = {p.key: p for each in self.states.values() for p in each.published}
        given = [
            (user, known[event])
            for (_, group), event in sorted(state.notified)
            if group and event in known
            for user in state.users.values()
            if user.group == group and not user.paused and user.wants(known[event])
        ]
        if given:
            user, published = given[which % len(given)]
            source, id = published.key
            fields = {"sub": user.id, "group": user.group, "source": source, "event": id}
            self._record("lapse", name, **fields)
            user.unread = {n: each for n, each in user.unread.items() if each != published}
            self._notify(name, user, published)

    def read(self, name: str, which: int) -> None:
        """Acknowledges some of a user's deliveries."""
        if user := self._pick(name, which):
            upto = which % (user.delivered + 1)
            read = [number for number in user.unread if number <= upto]
            for number in read:
                del user.unread[number]
            self._record("ack", name, sub=user.id, upto=upto, count=len(read))

    def overflow(self, name: str, which: int) -> None:
        """Drops the oldest delivery of a user, as an operator's limit does."""
        user = self._pick(name, which)
        if user is None or not (user.unread or user.queue):
            return
        if user.unread:
            number = min(user.unread)
            published = user.unread.pop(number)
        else:
            published = user.queue.pop(0)
            number = user.delivered = user.delivered + 1
        source, id = published.key
        fields = {"sub": user.id, "group": user.group, "source": source, "event": id}
        self._record("overflow", name, **fields, number=number)

    def _pick(self, name: str, which: int) -> User | None:
        active = [user for user in self.states[name].users.values() if user.is_active]
        return active[which % len(active)] if active else None

    # -- events -----------------------------------------------------------------------------------

    def publish(self, name: str, content: int, available_s: float) -> None:
        state = self.states[name]
        fields = {**CONTENTS[content % len(CONTENTS)], "id": self._fresh("e"), "source": name}
        if available_s:
            fields["available"] = "INF" if available_s == inf else available_s
        published = Published(READER.from_fields(fields), self._count, self.now)
        state.published.append(published)
        self._record(
            "pub",
            name,
            event=fields,
            joined=self.incarnations[name],
            epoch=state.epoch,
            sequence=len(state.published),
        )
        for user in state.users.values():
            if user.wants(published):
                self._deliver(name, user, published, certainly=True)
        for consumer in self._others(name):
            if any(user.wants(published) for user in self.states[consumer].users.values()):
                self._cross(name, consumer, published)

    def discard(self, producer: str, consumer: str, which: int) -> None:
        """Drops an event that the consumer rejects, and the operator drops the dead letter."""
        event, incarnation = self.drop(producer, consumer, which), self.incarnations[consumer]
        if event is not None:
            fields = {"to": consumer, "joined": incarnation, "source": producer, "event": event}
            self._record("discard", producer, **fields)

    def drop(self, producer: str, consumer: str, which: int, do: str = "drop") -> str | None:
        """Drops an event that is under way, as an operator's limit does; a skip will follow."""
        if producer == consumer:
            return None
        stream, start = self.states[producer].streams[consumer], self.states[consumer].next
        open_entries = [
            (number, entry)
            for number, entry in enumerate(stream, start=1)
            if number >= start[producer] and not entry.dropped
        ]
        if not open_entries:
            return None
        number, entry = open_entries[which % len(open_entries)]
        entry.dropped = True
        event = entry.published.event.id
        joined = self.incarnations[consumer]
        self._record(do, producer, to=consumer, joined=joined, number=number, event=event)
        return event

    def carry(self, producer: str, consumer: str) -> bool:
        """Makes one step of the stream between two members; returns False if there is none."""
        if producer == consumer:
            return False
        source, state = self.states[producer], self.states[consumer]
        link = self._link(producer, consumer)
        moved = False
        for epoch, first in source.fences[consumer]:
            if epoch > state.epochs[producer]:
                state.epochs[producer] = epoch
                state.next[producer] = min(state.next[producer], first)
                self._record("rewind", consumer, **link, epoch=epoch, first=first)
                moved = True
        number = state.next[producer]
        if number <= len(source.streams[consumer]):
            moved = True
            entry = source.streams[consumer][number - 1]
            state.next[producer] = number + 1
            if entry.dropped:
                why = {"first": number, "last": number, "why": "limit"}
                self._record("skip", consumer, **link, epoch=entry.epoch, **why)
            else:
                self._take(consumer, entry, number, link)
        for user in state.users.values():
            moved |= self._settle(consumer, user, producer)
        return moved

    def _link(self, producer: str, consumer: str) -> dict[str, Any]:
        return {
            "source": producer,
            "joined": self.incarnations[producer],
            "own": self.incarnations[consumer],
        }

    def entrust(self, name: str, to: str, which: int) -> None:
        """Takes custody, at a forwarder, of events that it has and another consumer lacks."""
        if name == to:
            return
        for source in self._others(name):
            while self.carry(source, name):
                pass
        known = {each.key for store in self.states[name].store.values() for each in store}
        missing = [
            Promise(
                to,
                self.incarnations[to],
                source,
                self.incarnations[source],
                number,
                entry.published,
            )
            for source in self._others(to)
            for number, entry in enumerate(self.states[source].streams[to], start=1)
            if number >= self.states[to].next[source] and entry.published.key in known
        ]
        for promise in missing[which % max(1, len(missing)) :: -1]:  # reversed: some arrive early
            self.states[name].custody.append(promise)
            event = {"source": promise.source, "event": promise.published.event.id}
            if which % 4:
                self._record("relay", name, to=to, joined=promise.consumer_incarnation, **event)
            self._record("promise", name, to=to, joined=promise.consumer_incarnation, **event)

    def forward(self, name: str, absent: str = "") -> bool:
        """Delivers the events in custody that can be delivered; returns False if there are none."""
        custody = self.states[name].custody
        done = [promise for promise in custody if promise.to != absent and self._bring(promise)]
        self.states[name].custody = [promise for promise in custody if promise not in done]
        return bool(done)

    def _bring(self, promise: Promise) -> bool:
        source, state = self.states[promise.source], self.states[promise.to]
        if self._is_behind(promise.to, promise.source):
            return False
        number, entries = promise.number, source.streams[promise.to]
        if len(entries) < number or entries[number - 1].published != promise.published:
            return True  # the restored producer has forgotten this number
        entry, due = entries[number - 1], state.next[promise.source]
        if number == due and not entry.dropped:
            state.next[promise.source] = number + 1
            self._take(promise.to, entry, number, self._link(promise.source, promise.to))
        elif number > due:
            event = promise.published.event.id
            self._record("early", promise.to, source=promise.source, number=number, event=event)
        return True

    def lull(self, absent: str) -> None:
        """Records a lull after the present organisations have delivered all they can.

        One organisation is absent, or none.
        """
        present = [name for name in self.incarnations if name != absent]
        while any(self.forward(name, absent) for name in present):
            pass
        self._record("lull", absent=[absent] if absent else [])

    def drain(self) -> None:
        while True:
            moved = [self.carry(p, c) for p in self.incarnations for c in self.incarnations]
            if not any(moved):
                return

    def calm(self) -> None:
        self.drain()
        self._record("ways", ways=[f"{a}>{b}" for a, b in permutations(self.incarnations, 2)])
        self._record("calm")

    def _take(self, name: str, entry: Entry, number: int, link: dict[str, Any]) -> None:
        state, published = self.states[name], entry.published
        source = published.event.source
        state.store[source].append(published)
        event = {"number": number, "event": published.event.id}
        self._record("take", name, **link, epoch=entry.epoch, **event)
        for user in state.users.values():
            if user.wants(published):
                if source in user.waiting:
                    user.held[source].append(published)
                else:
                    certainly = published.order > user.stable_since[source]
                    self._deliver(name, user, published, certainly=certainly)

    def _cross(self, producer: str, consumer: str, published: Published) -> None:
        state, id = self.states[producer], published.event.id
        state.crossed[consumer].add(id)
        state.streams[consumer].append(Entry(state.epoch, published))
        self._record(
            "cross",
            producer,
            to=consumer,
            joined=self.incarnations[consumer],
            epoch=state.epoch,
            number=len(state.streams[consumer]),
            event=id,
        )

    def _open_view(self, name: str, user: User, producer: str) -> None:
        """Opens the view of a subscription at a producer, which first sends the backlog."""
        if not user.is_active:
            return
        source = self.states[producer]
        for published in source.published:
            is_new = published.event.id not in source.crossed[name]
            if is_new and published.is_available(self.now) and user.wants(published):
                self._cross(producer, name, published)
        for published in self.states[name].store[producer]:
            if published.is_available(self.now) and user.wants(published):
                user.held[producer].append(published)
        user.waiting[producer] = len(source.streams[name])
        self._settle(name, user, producer)

    def _settle(self, name: str, user: User, producer: str) -> bool:
        state = self.states[name]
        if not user.is_active or producer not in user.waiting:
            return False
        if self._is_behind(name, producer) or state.next[producer] <= user.waiting[producer]:
            return False
        del user.waiting[producer]
        user.stable_since[producer] = self._count
        for published in sorted(user.held.pop(producer, []), key=lambda each: each.order):
            self._deliver(name, user, published)
        self._record(
            "stable",
            name,
            sub=user.id,
            producer=producer,
            joined=self.incarnations[producer],
            epoch=self.states[producer].epoch,
            classes=CLASSES,
        )
        return True

    def _is_behind(self, name: str, producer: str) -> bool:
        """True if the consumer has not learned that the producer was restored."""
        known = self.states[name].epochs[producer]
        return any(epoch > known for epoch, _ in self.states[producer].fences[name])

    def _deliver(
        self, name: str, user: User, published: Published, *, certainly: bool = False
    ) -> None:
        state = self.states[name]
        if user.paused:
            user.queue.append(published)
        elif (user.subscriber, published.key) not in state.notified:
            state.notified.add((user.subscriber, published.key))
            if certainly and not user.group:
                self.certainly_owed.append(len(self.records))
            self._notify(name, user, published)

    def _notify(self, name: str, user: User, published: Published) -> None:
        user.delivered += 1
        user.unread[user.delivered] = published
        source, id = published.key
        fields = {"sub": user.id, "group": user.group, "source": source, "event": id}
        self._record("ntfy", name, **fields, number=user.delivered)
