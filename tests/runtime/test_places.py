"""Connections without a request keep nobody out, and each port keeps some places."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qns.iil.requests import AcknowledgeDeliveries, PullDeliveries, Subscribe
from qns.peer.turn import Transaction
from qns.runtime.admission import Admission
from qns.runtime.file_limit import connections_within_limit
from qns.runtime.http import Respond
from qns.runtime.http_messages import Request, Response
from qns.runtime.server import MOST_CONNECTIONS
from qns.soap.local_client import write_local
from qns.soap.shapes import Port
from qns.store.sqlite import SqliteStore
from tests.runtime.driver_stage import run
from tests.runtime.http_server import post, serving_with
from tests.runtime.peers import PATIENCE_S, address, agencies, change, eventually
from tests.runtime.peers import post as soap
from tests.runtime.test_process import read, subscribe
from tests.runtime.test_server import LIST, answer_to, one_answer, request_bytes, serving

pytestmark = pytest.mark.slow

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = post(b"abc")[:-1]


def at_once(_: Request, respond: Respond) -> None:
    respond(Response(200, b"ok"))


def test_new_connection_replaces_the_one_that_waits_longest() -> None:
    async def story() -> None:
        async with serving_with(at_once, most_connections=3) as (server, address):
            lines = []
            for sent in (b"", HALF, b""):
                lines.append(await asyncio.open_connection(*address))
                lines[-1][1].write(sent)
                while len(server.connections) < len(lines):
                    await asyncio.sleep(0.001)
            assert (await answer_to(address, HEALTH)).startswith(b"HTTP/1.1 200")
            assert await lines[0][0].read() == b""
            for reader, writer in lines[1:]:
                writer.write(b"c" if reader is lines[1][0] else HEALTH)
                assert (await one_answer(reader)).startswith(b"HTTP/1.1 200")
            for _, writer in lines:
                writer.close()

    run(story())


def test_connection_with_half_a_request_gets_a_reason_when_it_is_closed() -> None:
    async def story() -> None:
        async with serving_with(at_once, most_connections=1) as (server, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(HALF)
            while not any(each._reader.has_head for each in server.connections):
                await asyncio.sleep(0.001)
            assert (await answer_to(address, HEALTH)).startswith(b"HTTP/1.1 200")
            assert (await reader.read()).startswith(b"HTTP/1.1 503")
            writer.close()

    run(story())


def test_connection_with_an_answered_request_outlives_newer_ones_without() -> None:
    async def story() -> None:
        async with serving_with(at_once, most_connections=5) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(HEALTH)
            await one_answer(reader)
            idle = [await asyncio.open_connection(*address) for _ in range(20)]
            writer.write(HEALTH)
            assert (await one_answer(reader)).startswith(b"HTTP/1.1 200")
            for _, each in (*idle, (reader, writer)):
                each.close()

    run(story())


def test_connection_whose_request_is_handled_never_gives_way() -> None:
    held: list[Respond] = []

    async def story() -> None:
        async with serving_with(lambda _, respond: held.append(respond), most_connections=2) as (
            _,
            address,
        ):
            lines = [await asyncio.open_connection(*address) for _ in range(2)]
            for _, writer in lines:
                writer.write(post(b"abc"))
            while len(held) < 2:
                await asyncio.sleep(0.001)
            assert (await answer_to(address, b"")).startswith(b"HTTP/1.1 503")
            for respond in held:
                respond(Response(200, b"done"))
            for reader, writer in lines:
                assert (await one_answer(reader)).endswith(b"done")
                writer.close()

    run(story())


# --- places of the ports --------------------------------------------------------------------------


def test_each_port_and_the_operators_keep_some_places() -> None:
    admission = Admission(2_000)
    local = sum(admission.admit(Port.LOCAL) for _ in range(3_000))
    peer = sum(admission.admit(Port.PEER) for _ in range(3_000))
    assert (local, peer) == (1_750, 200)
    admission.release(Port.LOCAL)
    assert admission.admit(Port.PEER)
    assert not admission.admit(Port.LOCAL)


def test_requests_that_wait_for_the_disk_leave_room_for_health_and_other_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_is_back = threading.Event()
    prepare = SqliteStore.prepare

    def prepare_slowly(store: SqliteStore, transaction: Transaction) -> Callable[[], None]:
        write = prepare(store, transaction)

        def wait_for_disk() -> None:
            assert disk_is_back.wait(PATIENCE_S)
            write()

        return wait_for_disk

    async def story() -> None:
        async with serving(tmp_path, most_connections=40) as (_, address):
            monkeypatch.setattr(SqliteStore, "prepare", prepare_slowly)
            lines = [await asyncio.open_connection(*address) for _ in range(40)]
            for nth, (_, writer) in enumerate(lines):
                writer.write(request_bytes(Subscribe("anna", "Enterprise", id=f"S{nth}")))
            answers = [asyncio.create_task(one_answer(reader)) for reader, _ in lines]
            while sum(each.done() for each in answers) < 5:
                await asyncio.sleep(0.001)
            for each in answers:
                if each.done():
                    assert b"BusyFault" in each.result()
                    assert b"too many requests are being handled" in each.result()
            assert (await answer_to(address, HEALTH)).startswith(b"HTTP/1.1 200")
            to_peer = LIST.replace(b"POST /local", b"POST /peer")
            assert b"no operation of the port Peer" in await answer_to(address, to_peer)
            disk_is_back.set()
            served = sum(b"subscribeResponse" in each for each in await asyncio.gather(*answers))
            assert served == 35
            assert b"listSubscriptionsResponse" in await answer_to(address, LIST)
            for _, writer in lines:
                writer.close()

    run(story())


def test_waiting_pull_of_a_client_that_disconnects_frees_its_place(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, most_connections=40) as (stage, address):
            await answer_to(address, request_bytes(Subscribe("anna", "Enterprise", id="S1")))
            wait, action = write_local(PullDeliveries("anna", "S1"), wait_s=60.0)
            for _ in range(80):
                _, writer = await asyncio.open_connection(*address)
                writer.write(soap("/local", wait, action))
                await stage.until(lambda: len(stage.driver.waiters) == 1)
                writer.transport.abort()
                await stage.until(lambda: len(stage.driver.waiters) == 0)
            assert b"listSubscriptionsResponse" in await answer_to(address, LIST)

    run(story())


# --- a peer process -------------------------------------------------------------------------------


@contextmanager
def flood(where: tuple[str, int], number: int, sent: bytes) -> Iterator[None]:
    """Opens connections that send the same few bytes and then nothing."""
    lines = []
    try:
        for _ in range(number):
            line = socket.create_connection(where, PATIENCE_S)
            lines.append(line)
            line.sendall(sent)
        yield
    finally:
        for line in lines:
            line.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")
@pytest.mark.parametrize(
    "sent", [b"", HEALTH[:20], post(b"x" * 900)[:-100]], ids=["idle", "half a head", "half a body"]
)
def test_thousands_of_connections_without_a_request_block_no_other_client(
    tmp_path: Path, sent: bytes
) -> None:
    number = connections_within_limit(MOST_CONNECTIONS + 200)
    with agencies(tmp_path) as peers:
        subscribe(peers["CoC"], "S1")
        peers["INPS"].ask(change("e1"))
        assert read(peers["CoC"], "S1", 1) == ["e1"]
        with flood(address(peers["CoC"]), number, sent):
            for _ in range(3):
                assert peers["CoC"].http("GET", "/health")[0] == 200
            assert peers["CoC"].metrics()["qns_epoch"] == 1
            peers["INPS"].ask(change("e2"))
            peers["INAIL"].ask(change("e3", "INAIL"))
            assert sorted(read(peers["CoC"], "S1", 3)) == ["e1", "e2", "e3"]
            peers["CoC"].ask(AcknowledgeDeliveries("anna", "S1", 3))
            eventually(lambda: peers["INPS"].health()["status"] == "ok", "INPS reaches CoC")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")
def test_limit_of_open_files_bounds_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    limits = [1_024, 1_500]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.__setitem__(0, both[0]))
    assert connections_within_limit(500) == 500
    assert limits[0] == 1_024
    assert connections_within_limit(2_000) == 1_500 - 256
    assert limits[0] == 1_500
