"""Users who are away: their queues are on the disk, and they read exactly the same."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qns.errors import QnsError
from qns.iil.requests import ListSubscriptions, Publish, Subscriptions
from qns.peer.tables import DELIVERIES, QUEUED, DeliveryRow, QueuedRow, ServedRow
from qns.peer.why import Question
from qns.simulation import world
from qns.simulation.disks import MemoryDisk, SqliteDisk
from qns.simulation.node import Disk
from qns.store.sqlite import SqliteStore
from tests.iil.conftest import OpenPeer
from tests.iil.single_peer import ME, OWNER, SinglePeer, event

LIMITS = {"unread_in_memory": 2, "events_in_memory": 3}
SUBSCRIPTIONS = {
    "ann": ("Report", ""),
    "bea": ("Report/Wind", ""),
    "cid": ("Report", "desk"),
    "dan": ("Report", "desk"),
    "eve": ("Report/Wind", "desk"),
}
NAMES = st.sampled_from(sorted(SUBSCRIPTIONS))

ACTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("publish"),
            st.integers(1, 8),
            st.sampled_from(["Report", "Report/Wind"]),
            st.sampled_from([0, 0, 30, "INF"]),
        ),
        st.tuples(st.sampled_from(["pause", "resume", "unsubscribe", "subscribe"]), NAMES),
        st.tuples(st.just("acknowledge"), NAMES, st.integers(1, 12)),
        st.tuples(st.just("wait"), st.sampled_from([0.125, 7.0, 25.0])),
        st.tuples(st.just("crash"), st.sampled_from([0.0, 40.0])),
    ),
    max_size=16,
)


class Users:
    """Plays actions on a single peer and notes every answer."""

    def __init__(self, disk: type[Disk], **tuning: Any) -> None:
        self.peer = SinglePeer(disk, lease_s=10.0, **tuning)
        self.seen: list[Any] = []
        self.published = self.subscribed = 0
        self.ids: dict[str, str] = {}
        for name in SUBSCRIPTIONS:
            self.play(("subscribe", name))

    def play(self, action: tuple[Any, ...]) -> None:
        peer = self.peer
        try:
            match action:
                case ("publish", number, kind, available):
                    for _ in range(number):
                        self.published += 1
                        peer.publish(f"e{self.published:03}", kind=kind, available=available)
                case ("subscribe", name) if name not in self.ids:
                    self.subscribed += 1
                    text, group = SUBSCRIPTIONS[name]
                    self.ids[name] = f"{name}{self.subscribed}"
                    peer.subscribe(self.ids[name], text, group=group)
                case ("unsubscribe", name) if name in self.ids:
                    self.seen.append(peer.unsubscribe(self.ids.pop(name)))
                case ("pause", name):
                    peer.pause(self.ids.get(name, "nobody"))
                case ("resume", name):
                    peer.resume(self.ids.get(name, "nobody"))
                case ("acknowledge", name, number):
                    read = peer.read(self.ids.get(name, "nobody"), limit=number)
                    peer.acknowledge(self.ids[name], max((each for each, _ in read), default=0))
                case ("wait", seconds):
                    peer.wait(seconds)
                case ("crash", seconds):
                    peer.crash(seconds)
        except QnsError as error:
            self.seen.append(str(error))
        self.look()

    def look(self) -> None:
        """Notes what users and operators can see."""
        peer = self.peer
        answer = peer.do(ListSubscriptions(OWNER))
        assert isinstance(answer, Subscriptions)
        self.seen.append(answer)
        for id in self.ids.values():
            read = peer.read(id)
            self.seen.append((id, read, peer.dropped(id), peer.read(id, after=3, limit=2)))
            self.seen.append(self.why(id, f"e{self.published:03}"))
            self.seen.append(self.why(id, "e001"))
        status = peer.gateway.peer.status
        self.seen.append((status.events_kept, status.deliveries_waiting, status.oldest_unread))
        self.seen.append(list(status.dropped()))
        self.seen.append(peer.rows())

    def why(self, id: str, event: str) -> Any:
        try:
            return self.peer.gateway.peer.status.why(Question(event, ME, id))
        except QnsError as error:
            return str(error)


def play(actions: Sequence[tuple[Any, ...]], disk: type[Disk], **tuning: Any) -> Users:
    # With a binary fraction, all times are exact, however often a peer wakes up.
    with patch.object(world, "_TURN_S", 2**-9):
        users = Users(disk, **tuning)
        for action in actions:
            users.play(action)
        users.peer.close()
        assert users.peer.violations() == []
    return users


@pytest.mark.parametrize("disk", [MemoryDisk, SqliteDisk], ids=["memory", "sqlite"])
@given(actions=ACTIONS, longest_queue=st.sampled_from([inf, inf, 5]))
@example(  # an event expires when the lease of another ends
    actions=[
        ("pause", "ann"),
        ("publish", 2, "Report", 0),
        ("publish", 3, "Report", 0),
        ("publish", 3, "Report", 30),
        ("acknowledge", "cid", 4),
        ("wait", 7.0),
        ("wait", 25.0),
    ],
    longest_queue=inf,
)
def test_users_see_the_same_whether_rows_are_in_memory_or_on_the_disk(
    disk: type[Disk], actions: list[tuple[Any, ...]], longest_queue: float
) -> None:
    limited = play(actions, disk, longest_queue=longest_queue, **LIMITS)
    unlimited = play(actions, disk, longest_queue=longest_queue)
    assert limited.seen == unlimited.seen
    assert limited.peer.world.history == unlimited.peer.world.history


# --- memory ---------------------------------------------------------------------------------------

MANY = 20_000


def rows_in_memory() -> int:
    """Returns how many rows of users' queues exist as objects in this process."""
    gc.collect()
    kinds = (DeliveryRow, QueuedRow, ServedRow)
    return sum(type(each) in kinds for each in gc.get_objects())


@contextmanager
def sqlite_peer(**tuning: Any) -> Iterator[SinglePeer]:
    peer = SinglePeer(SqliteDisk, **tuning)
    yield peer
    peer.close()


def fill(peer: SinglePeer, count: int) -> None:
    """Publishes many events; forgets the history, whose records are no part of the peer."""
    for number in range(1, count + 1):
        peer.publish(f"e{number:05}")
        if number % 1_000 == 0:
            peer.world.history.clear()


@pytest.mark.parametrize("away", ["unread", "paused", "in a group"])
def test_memory_does_not_grow_with_the_queue_of_a_user_who_is_away(away: str) -> None:
    with sqlite_peer(events_in_memory=50, unread_in_memory=100, lease_s=1e6) as peer:
        peer.subscribe("s", group="desk" if away == "in a group" else "")
        if away == "paused":
            peer.pause("s")
        before = rows_in_memory()
        fill(peer, MANY)
        log, status = peer.gateway.peer.log, peer.gateway.peer.status
        assert status.deliveries_waiting == status.events_kept == MANY
        assert rows_in_memory() - before <= 110
        assert len(list(log)) <= 60
        assert log.in_memory <= 60
        assert len(peer.gateway.peer.iil.dispatcher._leases) <= 200
        before_restart = status.oldest_unread
        peer.crash()
        log, status = peer.gateway.peer.log, peer.gateway.peer.status
        assert status.deliveries_waiting == status.events_kept == MANY
        assert rows_in_memory() - before <= 110
        assert log.in_memory <= 60
        assert status.oldest_unread == before_restart
        assert len(peer.gateway.peer.iil.dispatcher._leases) <= 200


def test_recovery_of_a_long_queue_keeps_a_bounded_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with sqlite_peer(events_in_memory=50, unread_in_memory=100) as peer:
        peer.subscribe("s")
        fill(peer, 5_000)
        peer.world.kill(ME)
        most, read = 0, SqliteStore.rows

        def count(store: Any, table: Any) -> Iterator[Any]:
            nonlocal most
            for number, row in enumerate(read(store, table)):
                if table in (DELIVERIES, QUEUED) and number % 500 == 499:
                    most = max(most, rows_in_memory())
                yield row

        monkeypatch.setattr(SqliteStore, "rows", count)
        before = rows_in_memory()
        peer.world.start(ME)
        assert most - before <= 400  # the limit, and a portion that is read from the store
        assert rows_in_memory() - before <= 110
        assert peer.gateway.peer.status.deliveries_waiting == 5_000


def test_reader_that_comes_back_reads_a_long_queue_to_its_end() -> None:
    with sqlite_peer(events_in_memory=50, unread_in_memory=100) as peer:
        peer.subscribe("s")
        fill(peer, 3_000)
        peer.crash()
        numbers: list[int] = []
        while read := peer.read("s", limit=70):
            numbers += [number for number, _ in read]
            assert peer.gateway.peer.iil.dispatcher._queues["s"].ready.in_memory <= 100
            peer.acknowledge("s", numbers[-1])
        assert numbers == list(range(1, 3_001))
        assert peer.left_over() == {}


@pytest.mark.parametrize("paused", [False, True])
def test_user_who_is_away_does_not_make_publishing_busy(open_peer: OpenPeer, paused: bool) -> None:
    peer = open_peer(most_events=10, **LIMITS)
    peer.subscribe("s")
    if paused:
        peer.pause("s")
    ids = [f"e{number:03}" for number in range(60)]
    peer.publish(*ids)
    assert list(peer.gateway.peer.status.full_buffers()) == []
    peer.crash()
    peer.do(Publish(event("last")))
    if paused:
        peer.resume("s")
    assert peer.events("s") == [*ids, "last"]
    peer.acknowledge_all("s")
    assert peer.left_over() == {}
