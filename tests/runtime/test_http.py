"""HTTP/1.1 on a connection: what is heard, in which order it is answered, when it ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from qns.runtime import http
from qns.runtime.http import Handle, HttpServer, Respond
from qns.runtime.http_messages import Request, Response
from tests.runtime.test_driver import run
from tests.runtime.test_server import Address, answer_to, headers_of, one_answer

MOST = 1_000
HEAD = b"POST /peer HTTP/1.1\r\nHost: x\r\n"


async def echo(request: Request) -> Response:
    words = f"{request.method} {request.path}?{request.query} {request.body!r} {request.flaw}"
    return Response(200, words.encode())


@asynccontextmanager
async def serving(
    handle: Callable[[Request], Awaitable[Response]] = echo, **settings: Any
) -> AsyncIterator[tuple[HttpServer, Address]]:
    """In tasks, as what takes long is."""

    def in_task(request: Request, respond: Respond) -> asyncio.Task[None]:
        async def answered() -> None:
            respond(await handle(request))

        return asyncio.get_running_loop().create_task(answered())

    async with serving_with(in_task, **settings) as served:
        yield served


@asynccontextmanager
async def serving_with(
    handle: Handle, **settings: Any
) -> AsyncIterator[tuple[HttpServer, Address]]:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    address: Address = sock.getsockname()
    bounds = {"most_connections": 10, "body_within_s": 5.0} | settings
    server = HttpServer(handle, lambda _: MOST, **bounds)
    await server.start(sock)
    try:
        yield server, address
    finally:
        await server.stop(1.0)


def post(body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(each + b"\r\n" for each in headers)
    return HEAD + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_requests_that_come_together_are_answered_in_their_order() -> None:
    async def slower_first(request: Request) -> Response:
        await asyncio.sleep(0.02 / (1 + len(request.body)))
        return await echo(request)

    async def story() -> None:
        async with serving(slower_first) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"".join(post(b"x" * size) for size in range(20)))
            for size in range(20):
                assert repr(b"x" * size).encode() in await one_answer(reader)
            writer.close()

    run(story())


def test_thousands_that_come_together_and_are_answered_at_once() -> None:
    def at_once(request: Request, respond: Respond) -> None:
        respond(Response(200, request.path.encode()))

    async def story() -> None:
        async with serving_with(at_once) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % nth for nth in range(5_000)))
            for nth in range(5_000):
                assert (await one_answer(reader)).endswith(b"\r\n\r\n/%d" % nth)
            writer.close()

    run(story())


def test_others_get_a_turn_while_thousands_are_answered_at_once() -> None:
    answered, turns = [0], []

    def at_once(_: Request, respond: Respond) -> None:
        answered[0] += 1
        respond(Response(200, b""))

    async def story() -> None:
        async with serving_with(at_once) as (_, address):
            reader, writer = await asyncio.open_connection(*address, limit=2**22)
            writer.write(b"GET / HTTP/1.1\r\n\r\n" * 5_000)
            while answered[0] < 5_000:
                turns.append(answered[0])
                await asyncio.sleep(0)
            assert max(later - now for now, later in pairwise([*turns, 5_000])) < 100
            for _ in range(5_000):
                await one_answer(reader)
            writer.close()

    run(story())


def test_a_second_answer_to_a_request_is_nobodys() -> None:
    """Neither the next request's on this connection, nor its task's end."""
    kept: list[Respond] = []

    def twice(request: Request, respond: Respond) -> None:
        if request.path == "/1":
            respond(Response(200, b"one"))
            respond(Response(200, b"one again"))
            kept.append(respond)
        elif request.path == "/2":
            kept[0](Response(200, b"one once more"))
            asyncio.get_running_loop().call_later(0.01, respond, Response(200, b"two"))
            asyncio.get_running_loop().call_later(0.02, respond, Response(200, b"two again"))
        else:
            asyncio.get_running_loop().call_later(0.03, respond, Response(200, b"three"))

    async def story() -> None:
        async with serving_with(twice) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            for path in (b"/1", b"/2", b"/3"):
                writer.write(b"GET " + path + b" HTTP/1.1\r\n\r\n")
            for words in (b"one", b"two", b"three"):
                assert (await one_answer(reader)).endswith(b"\r\n\r\n" + words)
            writer.close()

    run(story())


def test_an_invitation_to_go_on_does_not_overtake_an_answer() -> None:
    def later(request: Request, respond: Respond) -> None:
        asyncio.get_running_loop().call_later(0.02, respond, Response(200, request.body))

    async def story() -> None:
        async with serving_with(later) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            head, _, body = post(b"second", b"Expect: 100-continue").partition(b"\r\n\r\n")
            writer.write(post(b"first") + head + b"\r\n\r\n")
            assert (await one_answer(reader)).endswith(b"first")
            writer.write(body)
            assert (await one_answer(reader)).endswith(b"second")
            writer.close()

    run(story())


def test_a_last_answer_to_who_read_slowly_ends_the_connection_once() -> None:
    def some(request: Request, respond: Respond) -> None:
        respond(Response(200, b"x" * 3_000_000 if request.path == "/big" else b"y"))

    async def story() -> None:
        wrong: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: wrong.append(what))
        async with serving_with(some) as (server, address):
            reader, writer = await asyncio.open_connection(*address)
            last = b"GET /small HTTP/1.1\r\nConnection: close\r\n\r\n"
            writer.write(b"GET /big HTTP/1.1\r\n\r\n" * 3 + last)
            await asyncio.sleep(0.05)
            got = await reader.read()
            assert got.endswith(b"y")
            writer.close()
            while server.connections:
                await asyncio.sleep(0.001)
        assert wrong == []

    run(story())


def test_what_is_answered_now_and_what_later_keep_their_order() -> None:
    """A callback brings the answer of every third one, sometime."""

    def mixed(request: Request, respond: Respond) -> None:
        response = Response(200, request.path.encode())
        if int(request.path[1:]) % 3:
            respond(response)
        else:
            asyncio.get_running_loop().call_later(0.001, respond, response)

    async def story() -> None:
        async with serving_with(mixed) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % nth for nth in range(60)))
            for nth in range(60):
                assert (await one_answer(reader)).endswith(b"\r\n\r\n/%d" % nth)
            writer.close()

    run(story())


def test_an_answer_for_who_has_hung_up_goes_nowhere() -> None:
    late: list[Respond] = []

    async def story() -> None:
        async with serving_with(lambda _, respond: late.append(respond)) as (server, address):
            _, writer = await asyncio.open_connection(*address)
            writer.write(post(b"abc"))
            while not late:
                await asyncio.sleep(0.001)
            writer.close()
            while server.connections:
                await asyncio.sleep(0.001)
            late.pop()(Response(200, b"too late"))
            reader, writer = await asyncio.open_connection(*address)
            writer.write(post(b"abc"))
            while not late:
                await asyncio.sleep(0.001)
            late.pop()(Response(200, b"in time"))
            assert (await one_answer(reader)).endswith(b"in time")
            writer.close()

    run(story())


def test_a_handler_that_fails_is_a_failure_of_its_request_alone() -> None:
    def failing(request: Request, respond: Respond) -> None:
        if request.path == "/bad":
            raise RuntimeError("a mistake")
        respond(Response(200, b"well"))

    async def story() -> None:
        async with serving_with(failing) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /bad HTTP/1.1\r\n\r\nGET /good HTTP/1.1\r\n\r\n")
            assert (await one_answer(reader)).startswith(b"HTTP/1.1 500")
            assert (await one_answer(reader)).endswith(b"well")
            writer.close()

    run(story())


def test_a_body_that_is_announced_is_asked_for() -> None:
    async def story() -> None:
        async with serving() as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            head, _, body = post(b"abc", b"Expect: 100-continue").partition(b"\r\n\r\n")
            writer.write(head + b"\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(body)
            assert b"b'abc'" in await one_answer(reader)
            writer.close()

    run(story())


def test_an_offer_to_speak_another_protocol_is_passed_over() -> None:
    """Java's client makes it with its first request, and takes no answer for a no."""
    offer = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAA")

    async def story() -> None:
        async with serving() as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(post(b"abc", *offer) + post(b"def"))
            assert b"b'abc'" in await one_answer(reader)
            assert b"b'def'" in await one_answer(reader)
            writer.close()

    run(story())


@pytest.mark.parametrize(
    ("head", "connection"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", None),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"close"),
        (b"GET / HTTP/1.0\r\n\r\n", None),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"keep-alive"),
    ],
)
def test_the_connection_goes_on_as_the_client_wants(head: bytes, connection: bytes | None) -> None:
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


def test_of_a_body_that_is_too_long_only_a_little_is_looked_at() -> None:
    async def story() -> None:
        async with serving() as (_, address):
            answer = await answer_to(address, post(b"x" * 10 * MOST))
            assert headers_of(answer)[b"connection"] == b"close"
            assert len(answer) > MOST

    run(story())


@pytest.mark.parametrize(
    "head",
    [b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n", HEAD + b"X: " + b"a" * 40_000, HEAD * 1_000],
)
def test_a_head_that_is_too_long_is_refused(head: bytes) -> None:
    async def story() -> None:
        async with serving() as (_, address):
            assert (await answer_to(address, head)).startswith(b"HTTP/1.1 4")

    run(story())


def test_a_body_that_breaks_off_or_is_slow_is_told_to_who_answers() -> None:
    async def story() -> None:
        async with serving(body_within_s=0.02) as (_, address):
            chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"
            assert b"did not arrive whole" in await answer_to(address, chunked)
            assert b"took too long" in await answer_to(address, post(b"abc")[:-1])

    run(story())


def test_a_url_may_be_whole_or_escaped() -> None:
    async def story() -> None:
        async with serving() as (_, address):
            for url in (b"/a?b=c", b"http://x:1/a?b=c", b"/%61?b=c"):
                answer = await answer_to(address, b"GET " + url + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b"GET /a?b=c" in answer

    run(story())


def test_who_does_not_read_its_answers_is_not_served_on() -> None:
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


def test_who_never_reads_its_answer_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_stop_ends_idle_connections_and_answers_what_is_under_way() -> None:
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


def test_a_stop_does_not_wait_for_ever() -> None:
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


def test_an_idle_connection_is_ended_and_one_that_waits_is_not(
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
