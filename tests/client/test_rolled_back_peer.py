"""Tests with real processes: a reader gets an error before it skips a delivery of a restored peer.

The folder of the peer is put back with its lineage file, so that the peer itself notices nothing.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from qns.client import AsyncClient, Client, CursorAhead
from tests.client.peers import PeerProcess, holder

pytestmark = pytest.mark.slow

AT_THE_SNAPSHOT = 5
"""How many deliveries there are when the folder is copied."""
READ_BEFORE = 15
"""How many deliveries the reader has read when the folder is put back."""
AFTERWARDS = 30
KEPT = [f"e{number}" for number in range(1, AT_THE_SNAPSHOT + 1)]
LOST = [f"f{number}" for number in range(AT_THE_SNAPSHOT, READ_BEFORE)]
LATER = [f"g{number}" for number in range(AFTERWARDS)]


class RollingPeer(PeerProcess):
    """A peer whose whole folder can be copied and put back."""

    @property
    def copy(self) -> Path:
        return self.folder.with_name("copy")

    def take_snapshot(self) -> None:
        self.stop()
        shutil.copytree(self.folder, self.copy)
        self.start()

    def put_back(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)
        self.start()
        with Client(self.url, "anna") as client:
            publish(client, LATER)


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[RollingPeer]:
    """A peer with a snapshot after five deliveries; it has made fifteen."""
    folder = tmp_path / "peer"
    folder.mkdir()
    process = RollingPeer(folder)
    try:
        with Client(process.start(), "anna") as client:
            client.subscribe("Enterprise/Holder", id="s")
            publish(client, KEPT)
            process.take_snapshot()
            publish(client, LOST)
        yield process
    finally:
        process.kill()


@pytest.fixture
def client(peer: RollingPeer) -> Iterator[Client]:
    with Client(peer.url, "anna") as made:
        yield made


def publish(client: Client, ids: list[str]) -> None:
    for id in ids:
        client.publish(holder(id))


def unread(client: Client) -> list[str]:
    return [each.id for each in client.pull("s")]


def test_running_stream_raises_before_it_skips_a_delivery_of_a_rolled_back_peer(
    peer: RollingPeer, client: Client
) -> None:
    stream = client.deliveries("s")
    assert [next(stream).id for _ in range(READ_BEFORE)] == [*KEPT, *LOST]
    peer.put_back()
    with pytest.raises(CursorAhead, match=r"has had 35 .* at 15, which is another delivery now"):
        next(stream)
    assert unread(client) == [*KEPT, *LATER], "nothing was acknowledged"


def test_stored_cursor_of_a_rolled_back_peer_is_refused_and_a_plain_number_is_not(
    peer: RollingPeer, client: Client
) -> None:
    last = client.pull("s")[-1]
    assert last.number == READ_BEFORE
    assert client.pull("s", after=last.cursor) == []
    peer.put_back()
    for request in (
        lambda: client.pull("s", after=last.cursor),
        lambda: client.pull("s", after=last.cursor, wait_s=30),
        lambda: client.acknowledge("s", last.cursor),
        lambda: client.deliveries("s", after=last.cursor).take(),
    ):
        with pytest.raises(CursorAhead) as caught:
            request()
        error = caught.value
        assert (error.id, error.number, error.delivered) == ("s", READ_BEFORE, 35)
        assert "after=0" in error.remedy
    assert unread(client) == [*KEPT, *LATER]
    assert [each.id for each in client.pull("s", after=last.number)] == LATER[10:]


def test_cursor_from_before_the_snapshot_stays_valid(peer: RollingPeer, client: Client) -> None:
    cursors = [each.cursor for each in client.pull("s")]
    peer.put_back()
    assert [each.id for each in client.pull("s", after=cursors[AT_THE_SNAPSHOT - 1])] == LATER
    client.acknowledge("s", cursors[AT_THE_SNAPSHOT - 1])
    assert unread(client) == LATER
    last = client.pull("s")[-1].cursor
    peer.kill()
    peer.start()
    assert client.pull("s", after=last) == [], "a start of the peer leaves cursors valid"


def test_asynchronous_stream_of_a_rolled_back_peer_raises(peer: RollingPeer) -> None:
    async def read() -> None:
        async with AsyncClient(peer.url, "anna") as client:
            (*_, last) = await client.pull("s")
            peer.put_back()
            with pytest.raises(CursorAhead):
                await anext(client.deliveries("s", after=last.cursor))
            with pytest.raises(CursorAhead):
                await client.acknowledge("s", last.cursor)
            assert [each.id for each in await client.pull("s")] == [*KEPT, *LATER]

    asyncio.run(read())
