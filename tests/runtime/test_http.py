"""The HTTP/1.1 server: order of responses on one connection."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from qns.runtime.http import Respond
from qns.runtime.http_messages import Request, Response
from tests.runtime.driver_stage import run
from tests.runtime.http_server import echo, post, serving, serving_with
from tests.runtime.test_server import one_answer


def test_pipelined_requests_are_answered_in_order() -> None:
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


def test_thousands_of_pipelined_requests_are_answered_in_order() -> None:
    def at_once(request: Request, respond: Respond) -> None:
        respond(Response(200, request.path.encode()))

    async def story() -> None:
        async with serving_with(at_once) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(
                b"".join(
                    b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % nth for nth in range(5_000)
                )
            )
            for nth in range(5_000):
                assert (await one_answer(reader)).endswith(b"\r\n\r\n/%d" % nth)
            writer.close()

    run(story())


def test_server_yields_to_the_event_loop_between_pipelined_requests() -> None:
    answered, progress = [0], []

    def at_once(_: Request, respond: Respond) -> None:
        answered[0] += 1
        respond(Response(200, b""))

    async def story() -> None:
        async with serving_with(at_once) as (_, address):
            reader, writer = await asyncio.open_connection(*address, limit=2**22)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5_000)
            while answered[0] < 5_000:
                progress.append(answered[0])
                await asyncio.sleep(0)
            assert max(later - now for now, later in pairwise([*progress, 5_000])) < 100
            for _ in range(5_000):
                await one_answer(reader)
            writer.close()

    run(story())


def test_second_response_to_a_request_is_ignored() -> None:
    """It neither answers the next request of the connection nor ends that request's task."""
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
                writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for words in (b"one", b"two", b"three"):
                assert (await one_answer(reader)).endswith(b"\r\n\r\n" + words)
            writer.close()

    run(story())


def test_100_continue_does_not_overtake_a_response() -> None:
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


def test_connection_to_a_slow_reader_closes_once_after_the_last_response() -> None:
    def some(request: Request, respond: Respond) -> None:
        respond(Response(200, b"x" * 3_000_000 if request.path == "/big" else b"y"))

    async def story() -> None:
        wrong: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: wrong.append(what))
        async with serving_with(some) as (server, address):
            reader, writer = await asyncio.open_connection(*address)
            last = b"GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            writer.write(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3 + last)
            await asyncio.sleep(0.05)
            got = await reader.read()
            assert got.endswith(b"y")
            writer.close()
            while server.connections:
                await asyncio.sleep(0.001)
        assert wrong == []

    run(story())


def test_immediate_and_delayed_responses_keep_their_order() -> None:
    """Every third request is answered later, by a callback."""

    def mixed(request: Request, respond: Respond) -> None:
        response = Response(200, request.path.encode())
        if int(request.path[1:]) % 3:
            respond(response)
        else:
            asyncio.get_running_loop().call_later(0.001, respond, response)

    async def story() -> None:
        async with serving_with(mixed) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(
                b"".join(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % nth for nth in range(60))
            )
            for nth in range(60):
                assert (await one_answer(reader)).endswith(b"\r\n\r\n/%d" % nth)
            writer.close()

    run(story())


def test_response_after_the_client_has_disconnected_is_dropped() -> None:
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


def test_failing_handler_affects_only_its_own_request() -> None:
    def failing(request: Request, respond: Respond) -> None:
        if request.path == "/bad":
            raise RuntimeError("a mistake")
        respond(Response(200, b"well"))

    async def story() -> None:
        async with serving_with(failing) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            for path in (b"/bad", b"/good"):
                writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await one_answer(reader)).startswith(b"HTTP/1.1 500")
            assert (await one_answer(reader)).endswith(b"well")
            writer.close()

    run(story())


def test_server_sends_100_continue_if_the_client_expects_it() -> None:
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


def test_offer_to_upgrade_the_protocol_is_ignored() -> None:
    """Java's client makes such an offer in its first request and continues with HTTP/1.1."""
    offer = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAA")

    async def story() -> None:
        async with serving() as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(post(b"abc", *offer) + post(b"def"))
            assert b"b'abc'" in await one_answer(reader)
            assert b"b'def'" in await one_answer(reader)
            writer.close()

    run(story())
