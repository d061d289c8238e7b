"""The server of a peer in the process of the test: bounds, failures and headers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from qns.d2q.shipped import AGENCIES
from qns.iil.requests import ListSubscriptions, PullDeliveries, Request, Subscribe
from qns.peer.backoff import Backoff
from qns.runtime.health import Health
from qns.runtime.metrics import Metrics
from qns.runtime.server import Server
from qns.runtime.traffic import Traffic
from qns.soap.endpoint import Call, Endpoint, HttpReply
from qns.soap.local_client import write_local
from tests.runtime.driver_stage import Stage, run, staged
from tests.runtime.peers import change, post

Address = tuple[str, int]


@asynccontextmanager
async def serving(
    folder: Path, endpoint: Endpoint | None = None, **settings: Any
) -> AsyncIterator[tuple[Stage, Address]]:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    async with staged(folder) as stage:
        traffic = Traffic()
        metrics = Metrics(traffic)
        health = Health(stage.driver, folder / "inps.db", 0.0)
        metrics.show(stage.driver, health)
        server = Server(
            stage.driver,
            lambda: endpoint or Endpoint(AGENCIES),
            health,
            metrics,
            traffic,
            **settings,
        )
        address: Address = sock.getsockname()
        await server.start(sock, "http://127.0.0.1/")
        try:
            yield stage, address
        finally:
            await server.stop()


async def answer_to(address: Address, sent: bytes) -> bytes:
    """Sends bytes on a new connection and returns the first response."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(sent)
        return await one_answer(reader)
    finally:
        writer.close()


async def one_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().splitlines()
        if line.startswith(b"content-length")
    )
    return head + await reader.readexactly(length)


def request_bytes(request: Request) -> bytes:
    body, action = write_local(request)
    return post("/local", body, action)


LIST = request_bytes(ListSubscriptions("anna"))


BODIES = {
    "late": (LIST[:-50], 408, b"took too long"),
    "malformed": (
        LIST.partition(b"Content-Length")[0] + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        400,
        b"malformed",
    ),
    "too large": (
        LIST.partition(b"Content-Length")[0] + b"Content-Length: 100000000\r\n\r\n",
        413,
        b"more than 1,048,576 bytes",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_body_that_cannot_be_used_gives_a_fault_that_does_not_suggest_a_retry(
    tmp_path: Path, name: str
) -> None:
    sent, status, words = BODIES[name]

    async def story() -> None:
        async with serving(tmp_path, body_within_s=0.05) as (_, address):
            answer = await answer_to(address, sent)
            assert answer.startswith(b"HTTP/1.1 %d " % status)
            assert b"InvalidFault" in answer
            assert words in answer
            assert b"later" not in answer

    run(story())


def test_peer_accepts_the_host_of_its_endpoint_and_of_its_address(tmp_path: Path) -> None:
    """After a move, the endpoint in the document has another host than the socket."""

    async def story() -> None:
        async with serving(tmp_path) as (stage, address):
            health = b"GET /health HTTP/1.1\r\nHost: %b\r\n\r\n"
            moved = [b"peer.inps.example:8701", b"[::1]"]
            for host, endpoint in zip(moved, ("peer.inps.example", "[::1]:9"), strict=True):
                refused = await answer_to(address, health % host)
                assert refused.startswith(b"HTTP/1.1 421")
                peer = stage.driver.peer
                own = replace(peer.federation["INPS"], endpoint=f"http://{endpoint}/")
                organisations = {**peer.federation.organisations, "INPS": own}
                peer.federation = replace(peer.federation, organisations=organisations)
                for name in (host, b"127.0.0.1", b"localhost:1"):
                    answer = await answer_to(address, health % name)
                    assert answer.startswith(b"HTTP/1.1 200")

    run(story())


def test_slow_clients_do_not_delay_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, body_within_s=60.0) as (_, address):
            slow = [await asyncio.open_connection(*address) for _ in range(50)]
            for _, writer in slow:
                writer.write(LIST[:-50])
            assert (await answer_to(address, LIST)).startswith(b"HTTP/1.1 200")
            for _, writer in slow:
                writer.write(LIST[-50:])
            for reader, writer in slow:
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
                writer.close()

    run(story())


class _Broken(Endpoint):
    def reply(self, call: Call, output: object) -> HttpReply:
        raise ZeroDivisionError("a secret of ours")


def test_unexpected_exception_is_logged_and_not_shown_to_the_caller(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with serving(tmp_path, _Broken(AGENCIES)) as (_, address):
            answer = await answer_to(address, LIST)
            assert answer.startswith(b"HTTP/1.1 500")
            assert b"BusyFault" in answer
            assert b"secret" not in answer
            assert b"Traceback" not in answer

    run(story())
    (failed,) = [record for record in caplog.records if record.getMessage() == "a request failed"]
    assert failed.exc_info is not None
    assert failed.exc_info[0] is ZeroDivisionError


def test_failing_store_is_reported_to_the_caller_and_in_the_health(tmp_path: Path) -> None:
    get = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    async def story() -> None:
        async with serving(tmp_path) as (stage, address):
            stage.refusals = 1_000_000
            stage.driver.backoff = Backoff(0.01, 30.0)
            assert stage.store is not None
            stage.store.fail_next_commit()
            subscribe = request_bytes(Subscribe("anna", "Enterprise", id="S1"))
            for _ in range(2):
                answer = await answer_to(address, subscribe)
                assert b"BusyFault" in answer
                assert b"no room left" in answer
            health = await answer_to(address, get)
            assert health.startswith(b"HTTP/1.1 503")
            assert b"nothing can be stored" in health
            assert b"no room left" in health
            assert b"free some space if there is none" in health
            stage.refusals = 0
            await stage.until(lambda: stage.driver.trouble is None)
            assert b"subscribeResponse" in await answer_to(address, subscribe)
            health = await answer_to(address, get)
            assert health.startswith(b"HTTP/1.1 200")
            assert b"could not be stored" in health

    run(story())


def test_response_announces_whether_the_connection_closes(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (_, address):
            kept = await answer_to(address, LIST)
            closed = await answer_to(address, with_header(LIST, b"Connection: close"))
            old = await answer_to(address, LIST.replace(b"HTTP/1.1", b"HTTP/1.0"))
            assert headers_of(closed) == headers_of(kept) | {b"connection": b"close"}
            assert headers_of(old) == headers_of(kept)
            assert old.startswith(b"HTTP/1.0 200 OK\r\n")
            assert kept.startswith(b"HTTP/1.1 200 OK\r\n")
            assert parsedate_to_datetime(date_of(kept)) >= parsedate_to_datetime(date_of(closed))

    run(story())


def test_request_may_arrive_in_one_piece_or_in_many(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(LIST + LIST)  # the second waits for the first
            answers = [await one_answer(reader) for _ in range(2)]
            for piece in (LIST[:40], LIST[40:-50], LIST[-50:]):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            answers.append(await one_answer(reader))
            assert len({answer.partition(b"\r\n\r\n")[2] for answer in answers}) == 1
            writer.close()

    run(story())


def test_client_that_disconnects_before_the_answer_causes_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (_, address):
            for _ in range(20):
                _, writer = await asyncio.open_connection(*address)
                writer.write(LIST)
                writer.transport.abort()
            assert (await answer_to(address, LIST)).startswith(b"HTTP/1.1 200")

    run(story())
    assert not [record for record in caplog.records if record.exc_info]


def with_header(request: bytes, line: bytes) -> bytes:
    return request.replace(b"\r\n\r\n", b"\r\n" + line + b"\r\n\r\n", 1)


def headers_of(answer: bytes) -> dict[bytes, bytes]:
    lines = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    found = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)}
    return {name: value for name, value in found.items() if name != b"date"}


def date_of(answer: bytes) -> str:
    return answer.partition(b"Date: ")[2].partition(b"\r\n")[0].decode()


def test_exception_in_a_turn_is_logged_once_and_fails_every_request_of_the_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def mistaken(*_: object) -> None:
        raise RuntimeError("a mistake")

    async def story() -> None:
        async with serving(tmp_path) as (stage, address):
            stage.driver.peer._handlers[ListSubscriptions] = mistaken
            asked = [
                answer_to(address, request_bytes(ListSubscriptions("anna"))) for _ in range(20)
            ]
            answers = await asyncio.gather(*asked)
            assert all(each.startswith(b"HTTP/1.1 500") for each in answers)
            assert not any(b"a mistake" in each for each in answers)

    run(story())
    traces = [record for record in caplog.records if record.exc_info]
    assert 1 <= len(traces) < 20  # one for each turn


def test_pull_beyond_the_limit_of_waiting_pulls_waits_for_a_moment(tmp_path: Path) -> None:
    """An answer at once would make the reader ask again in a loop."""

    async def story() -> None:
        async with serving(tmp_path, most_pulls=0, crowded_wait_s=60.0) as (stage, address):
            await stage.ask(Subscribe("anna", "Enterprise/Holder", id="s1"))
            body, action = write_local(PullDeliveries("anna", "s1"), wait_s=60.0)
            pull = asyncio.create_task(answer_to(address, post("/local", body, action)))
            await stage.until(lambda: len(stage.driver.waiters) == 1)
            await stage.ask(change("e1"))
            assert b"<event>e1</event>" in await pull

    run(story())
