"""The way to other peers: every kind of silence is no answer, and nobody is followed elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from qns.d2q.shipped import AGENCIES
from qns.edl.layer import Send
from qns.edl.messages import Done, Envelope, Gossip
from qns.inputs import Received
from qns.runtime.traffic import Kind, Traffic
from qns.runtime.transport import Transport
from qns.soap.endpoint import Endpoint
from qns.soap.hardening import PEER
from qns.soap.shapes import Port
from tests.runtime.peers import free_ports
from tests.runtime.test_driver import run

SEND = Send("CoC", 1, Envelope("INPS", 1, (), Gossip()))
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def other(talk: Talk) -> AsyncIterator[str]:
    """Whoever is at the other end; its endpoint."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def request_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().splitlines()
        if line.startswith(b"content-length")
    )
    return await reader.readexactly(length)


def http(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


async def exchange(
    endpoint: str, traffic: Traffic | None = None, answer_within_s: float = 30.0
) -> Envelope | None:
    transport = Transport(lambda _: endpoint, traffic or Traffic(), answer_within_s=answer_within_s)
    try:
        return await transport.exchange(SEND)
    finally:
        await transport.close()


def test_calls_share_a_connection_and_are_answered() -> None:
    connections: list[object] = []
    endpoint_of_coc = Endpoint(AGENCIES)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        for _ in range(2):
            headers = {"Content-Type": "text/xml"}
            call = endpoint_of_coc.decode(Port.PEER, headers, await request_of(reader))
            assert isinstance(call.input, Received)
            assert call.message_id.startswith("urn:uuid:")
            reply = endpoint_of_coc.reply(call, Envelope("CoC", 1, (), Done()))
            writer.write(http(reply.body))
        writer.close()

    async def story() -> None:
        traffic = Traffic()
        async with other(talk) as endpoint:
            transport = Transport(lambda _: endpoint, traffic)
            answers = [await transport.exchange(SEND) for _ in range(2)]
            await transport.close()
        assert answers == [Envelope("CoC", 1, (), Done())] * 2
        assert len(connections) == 1
        assert traffic.messages == {Kind("peer", "gossip", "sent", "ok"): 2}

    run(story())


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (http(b"hello"), "unusable"),
        (http(b"", "302 Found", "Location: http://127.0.0.1:9/\r\n"), "unusable"),
        (http(b"")[:-8], "unanswered"),
        (b"", "unanswered"),
        (b"not HTTP at all\r\n\r\n", "unanswered"),
        (http(b"x" * (PEER.bytes + 1)), "unanswered"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "unanswered"),
    ],
    ids=["no SOAP", "elsewhere", "cut head", "hung up", "no HTTP", "too long", "cut body"],
)
def test_what_is_no_answer_counts_as_none(answer: bytes, outcome: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(answer)
        writer.close()

    async def story() -> None:
        traffic = Traffic()
        async with other(talk) as endpoint:
            assert await exchange(endpoint, traffic) is None
        assert [kind.outcome for kind in traffic.messages] == [outcome]

    run(story())


def test_nobody_is_waited_for_for_ever_and_the_dead_delay_nobody() -> None:
    over = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async def story() -> None:
        async with other(silent) as endpoint:
            traffic = Traffic()
            assert await exchange(endpoint, traffic, answer_within_s=0.05) is None
            assert [kind.outcome for kind in traffic.messages] == ["timeout"]
            dead = asyncio.create_task(exchange(endpoint))
            assert await exchange(f"http://127.0.0.1:{free_ports(1)[0]}/") is None
            assert not dead.done()
            over.set()
            assert await dead is None

    run(story())


@pytest.mark.parametrize(
    "endpoint", ["", "http://192.0.2.1:8701/", "https://127.0.0.1:8701/", "http://example.org/"]
)
def test_who_is_not_on_loopback_is_not_called(
    endpoint: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        traffic = Traffic()
        assert await exchange(endpoint, traffic) is None
        assert not traffic.messages

    run(story())
    assert [record.getMessage() for record in caplog.records] == (
        ["a peer is not called"] if endpoint else []
    )
