"""The HTTP/1.1 server: bounds of requests, and the end of connections."""

from __future__ import annotations

import asyncio
import socket

import pytest

from qns.runtime import http
from qns.runtime.http_messages import Request, Response
from tests.runtime.driver_stage import run
from tests.runtime.http_server import echo, post, serving
from tests.runtime.test_server import answer_to, headers_of, one_answer


@pytest.mark.parametrize(
    ("head", "connection"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", None),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"close"),
        (b"GET / HTTP/1.0\r\n\r\n", None),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"keep-alive"),
    ],
)
def test_connection_is_kept_or_closed_as_the_client_requests(
    head: bytes, connection: bytes | None
) -> None:
    async def story() -> None:
        async with serving() as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(head)
            assert headers_of(await one_answer(reader)).get(b"connection") == connection
            if connection == b"close" or b"1.0\r\n\r\n" in head:
                assert await reader.read() == b""
            else:
                writer.write(head)
                assert (await one_answer(reader)).startswith(head[6:14])
            writer.close()

    run(story())


def test_url_may_be_absolute_or_escaped() -> None:
    async def story() -> None:
        async with serving() as (_, address):
            for url in (b"/a?b=c", b"http://localhost:1/a?b=c", b"/%61?b=c"):
                answer = await answer_to(
                    address, b"GET " + url + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                )
                assert b"GET /a?b=c" in answer

    run(story())


def test_server_stops_handling_requests_of_a_client_that_does_not_read() -> None:
    served = 0

    async def much(_: Request) -> Response:
        nonlocal served
        served += 1
        return Response(200, bytes(1_000_000))

    async def story() -> None:
        async with serving(much) as (_, address):
            line = socket.create_connection(address)
            line.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(line, post(b"") * 200)
            await asyncio.sleep(0.2)
            assert 0 < served < 100
            line.close()

    run(story())


def test_server_disconnects_a_client_that_never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "KEPT_S", 0.05)

    async def much(_: Request) -> Response:
        return Response(200, bytes(30_000_000))

    async def story() -> None:
        async with serving(much) as (server, address):
            line = socket.create_connection(address)
            line.sendall(post(b""))
            while not server.connections:
                await asyncio.sleep(0.001)
            while server.connections:
                await asyncio.sleep(0.001)
            line.close()

    run(story())


def test_stop_closes_idle_connections_and_answers_pending_requests() -> None:
    async def story() -> None:
        go_on = asyncio.Event()

        async def slow(request: Request) -> Response:
            await go_on.wait()
            return await echo(request)

        async with serving(slow) as (server, address):
            idle, other = await asyncio.open_connection(*address)
            busy, writer = await asyncio.open_connection(*address)
            writer.write(post(b"abc"))
            while not server.connections or not any(each._task for each in server.connections):
                await asyncio.sleep(0.001)
            stopping = asyncio.create_task(server.stop(5.0))
            assert await idle.read() == b""
            go_on.set()
            answer = await one_answer(busy)
            assert b"b'abc'" in answer
            assert headers_of(answer)[b"connection"] == b"close"
            await stopping
            other.close()
            writer.close()

    run(story())


def test_stop_does_not_wait_longer_than_its_timeout() -> None:
    async def never(_: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def story() -> None:
        async with serving(never) as (server, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(post(b"abc"))
            await asyncio.sleep(0.02)
            await server.stop(0.02)
            assert await reader.read() == b""
            writer.close()

    run(story())


def test_idle_connection_is_closed_and_a_busy_one_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "KEPT_S", 0.05)

    async def slow(request: Request) -> Response:
        await asyncio.sleep(0.3)
        return await echo(request)

    async def story() -> None:
        async with serving(slow) as (_, address):
            idle, other = await asyncio.open_connection(*address)
            busy, writer = await asyncio.open_connection(*address)
            writer.write(post(b"abc"))
            assert await idle.read() == b""
            assert b"b'abc'" in await one_answer(busy)
            other.close()
            writer.close()

    run(story())
