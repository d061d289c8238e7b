"""The HTTP/1.1 server: requests that it refuses, with which status and when."""

from __future__ import annotations

import asyncio

import pytest

from qns.runtime.http_messages import host_name
from tests.runtime.driver_stage import run
from tests.runtime.http_server import HEAD, MOST, post, serving
from tests.runtime.test_server import answer_to, headers_of, one_answer

CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def get(*hosts: bytes, url: bytes = b"/", version: bytes = b"1.1") -> bytes:
    lines = b"".join(b"Host: %b\r\n" % host for host in hosts)
    return b"GET %b HTTP/%b\r\n%b\r\n" % (url, version, lines)


@pytest.mark.parametrize(
    "request_head",
    [
        get(b"127.0.0.1"),
        get(b"127.0.0.1:8701"),
        get(b"localhost:8701"),
        get(b"LOCALHOST"),
        get(b"localhost."),
        get(b"localhost", url=b"http://127.0.0.1:8701/"),
        get(version=b"1.0"),
    ],
)
def test_request_to_a_name_of_the_server_is_served(request_head: bytes) -> None:
    async def story() -> None:
        async with serving() as (_, address):
            assert status_of(await answer_to(address, request_head)) == 200

    run(story())


@pytest.mark.parametrize(
    "request_head",
    [
        get(b"evil.example:8701"),
        get(b"127.0.0.1.evil.example"),
        get(b"evil.example", version=b"1.0"),
        get(b"localhost", url=b"http://evil.example/"),
        get(b"10.0.0.1"),
        get(b"[::1]:8701"),
    ],
)
def test_request_with_a_foreign_host_name_gets_status_421(request_head: bytes) -> None:
    async def story() -> None:
        async with serving() as (_, address):
            answer = await answer_to(address, request_head)
            assert answer.startswith(b"HTTP/1.1 421 Misdirected Request\r\n")
            assert headers_of(answer)[b"connection"] == b"close"

    run(story())


@pytest.mark.parametrize(
    ("request_head", "words"),
    [
        (get(), b"no Host"),
        (get(b"localhost", b"localhost"), b"more than one Host"),
        (get(b"localhost", b"evil.example"), b"more than one Host"),
        (get(b""), b"no host name"),
        (get(b"localhost:port"), b"no host name"),
        (get(b"anna@localhost"), b"no host name"),
        (get(b"localhost/x"), b"no host name"),
    ],
)
def test_request_without_exactly_one_valid_host_is_refused(
    request_head: bytes, words: bytes
) -> None:
    async def story() -> None:
        async with serving() as (_, address):
            answer = await answer_to(address, request_head)
            assert status_of(answer) == 400
            assert words in answer

    run(story())


def test_host_name_has_no_port_brackets_or_capitals() -> None:
    assert host_name("Peer.Example:8701") == "peer.example"
    assert host_name("[::1]:80") == "::1"
    assert host_name("::1:80:[") == ""


@pytest.mark.parametrize("length", [MOST + 1, 100_000_000])
def test_announced_body_that_is_too_large_is_refused_before_it_arrives(length: int) -> None:
    """The client sends no byte of the body, and the time for a body does not pass."""

    async def story() -> None:
        async with serving(body_within_s=3_600.0) as (_, address):
            for more in (b"", b"Expect: 100-continue\r\n"):
                sent = HEAD + more + b"Content-Length: %d\r\n\r\n" % length
                answer = await answer_to(address, sent)
                assert b"Flaw(status=413, problem='the body has more than 1,000 bytes'" in answer
                assert headers_of(answer)[b"connection"] == b"close"

    run(story())


def test_chunked_body_that_is_too_large_is_refused_while_it_arrives() -> None:
    async def story() -> None:
        async with serving(body_within_s=3_600.0) as (_, address):
            answer = await answer_to(address, CHUNKED + b"7d0\r\n" + b"x" * 1_500)
            assert b"Flaw(status=413" in answer

    run(story())


def test_malformed_chunks_and_late_bodies_have_different_flaws() -> None:
    async def story() -> None:
        async with serving(body_within_s=0.02) as (_, address):
            assert b"Flaw(status=400, problem='the body is malformed" in await answer_to(
                address, CHUNKED + b"zz\r\n"
            )
            assert b"Flaw(status=408, problem='the body took too long" in await answer_to(
                address, post(b"abc")[:-1]
            )

    run(story())


def test_trailer_does_not_replace_a_header() -> None:
    async def story() -> None:
        async with serving() as (_, address):
            sent = CHUNKED + b"1\r\na\r\n0\r\nHost: evil.example\r\nX: y\r\n\r\n"
            assert status_of(await answer_to(address, sent)) == 200

    run(story())


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        HEAD + b"X: " + b"a" * 40_000 + b"\r\n\r\n",
        HEAD + b"X: " + b"a" * 40_000,
        HEAD + b"X: " + b"a" * 40_000 + b"\x00\r\n\r\n",
    ],
)
def test_request_with_a_long_head_gets_one_answer(sent: bytes) -> None:
    """The answer is sent once, also if the bytes arrive in one piece and go on afterwards."""

    async def story() -> None:
        async with serving() as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(sent)
            answer = await one_answer(reader)
            assert status_of(answer) in (400, 431)
            writer.write(b"more")
            assert await reader.read() == b""
            writer.close()

    run(story())
