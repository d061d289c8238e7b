"""The HTTP server inside the process of the test: its bounds and our own faults."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from qns.d2q.shipped import AGENCIES
from qns.iil.requests import ListSubscriptions, Request, Subscribe
from qns.runtime.health import Health
from qns.runtime.metrics import Metrics
from qns.runtime.server import Server
from qns.runtime.traffic import Traffic
from qns.soap.endpoint import Call, Endpoint, HttpReply
from qns.soap.local_client import write_local
from tests.runtime.peers import post
from tests.runtime.test_driver import Stage, run, staged

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
        metrics.show(stage.driver)
        server = Server(
            stage.driver,
            lambda: endpoint or Endpoint(AGENCIES),
            Health(stage.driver, folder / "inps.db", 0.0),
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
    """All that comes back until the server closes, or the first answer."""
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


def test_a_body_that_takes_too_long_is_not_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, body_within_s=0.05) as (_, address):
            answer = await answer_to(address, LIST[:-50])
            assert answer.startswith(b"HTTP/1.1 408")
            assert b"Fault>" in answer

    run(story())


def test_slow_clients_delay_nobody(tmp_path: Path) -> None:
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


def test_connections_beyond_the_bound_are_told_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, most_connections=2) as (_, address):
            kept = [await asyncio.open_connection(*address) for _ in range(2)]
            for reader, writer in kept:
                writer.write(LIST)
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            assert (await answer_to(address, LIST)).startswith(b"HTTP/1.1 503")
            for _, writer in kept:
                writer.close()

    run(story())


class _Broken(Endpoint):
    def reply(self, call: Call, output: object) -> HttpReply:
        raise ZeroDivisionError("a secret of ours")


def test_a_fault_of_ours_tells_nothing_and_is_logged(
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


def test_a_store_that_fails_is_told_to_the_caller_and_to_whoever_watches(tmp_path: Path) -> None:
    get = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"

    async def story() -> None:
        async with serving(tmp_path) as (stage, address):
            stage.refusals = 1_000_000
            stage.driver.pause_s = 0.01
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
            stage.refusals = 0
            await stage.until(lambda: stage.driver.trouble is None)
            assert b"subscribeResponse" in await answer_to(address, subscribe)
            health = await answer_to(address, get)
            assert health.startswith(b"HTTP/1.1 200")
            assert b"could not be stored" in health

    run(story())


def test_an_answer_says_whether_the_connection_goes_on(tmp_path: Path) -> None:
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


def test_a_body_is_the_same_request_in_one_piece_or_in_many(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(LIST + LIST)  # the second waits for its turn
            answers = [await one_answer(reader) for _ in range(2)]
            for piece in (LIST[:40], LIST[40:-50], LIST[-50:]):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            answers.append(await one_answer(reader))
            assert len({answer.partition(b"\r\n\r\n")[2] for answer in answers}) == 1
            writer.close()

    run(story())


def test_who_hangs_up_before_the_answer_hurts_nobody(
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
    told = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)}
    return {name: value for name, value in told.items() if name != b"date"}


def date_of(answer: bytes) -> str:
    return answer.partition(b"Date: ")[2].partition(b"\r\n")[0].decode()


def test_a_mistake_in_a_turn_is_told_once_in_the_log_and_to_everybody(
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
