"""The transport: unusable answers count as none, redirects are not followed, only loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from qns.d2q.shipped import AGENCIES
from qns.edl.messages import Done, Envelope, Fault, Gossip
from qns.edl.requests import Send
from qns.peer.inputs import Received
from qns.runtime.causes import BROKEN_OFF, REFUSED, TIMEOUT
from qns.runtime.traffic import Kind, Traffic
from qns.runtime.transport import Transport
from qns.soap.endpoint import Endpoint
from qns.soap.hardening import PEER
from qns.soap.shapes import Port
from tests.runtime.driver_stage import run
from tests.runtime.peers import free_ports

SEND = Send("CoC", 1, Envelope("INPS", 1, (), Gossip()))
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def other(talk: Talk) -> AsyncIterator[str]:
    """Runs a server that answers with `talk`; yields its endpoint."""
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


async def send(
    endpoint: str, traffic: Traffic | None = None, answer_within_s: float = 30.0
) -> Envelope | str:
    transport = Transport(lambda _: endpoint, traffic or Traffic(), answer_within_s=answer_within_s)
    try:
        return await transport.send(SEND)
    finally:
        await transport.close()


def test_calls_to_a_peer_share_a_connection() -> None:
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
            answers = [await transport.send(SEND) for _ in range(2)]
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
    ids=["no SOAP", "redirect", "cut head", "closed", "no HTTP", "too long", "cut body"],
)
def test_transport_returns_the_reason_for_an_unusable_answer(answer: bytes, outcome: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(answer)
        writer.close()

    async def story() -> None:
        traffic = Traffic()
        async with other(talk) as endpoint:
            assert isinstance(await send(endpoint, traffic), str)
        assert [kind.outcome for kind in traffic.messages] == [outcome]

    run(story())


def test_silent_peer_times_out_and_does_not_delay_other_calls() -> None:
    over = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async def story() -> None:
        async with other(silent) as endpoint:
            traffic = Traffic()
            assert await send(endpoint, traffic, answer_within_s=0.05) == TIMEOUT
            assert [kind.outcome for kind in traffic.messages] == ["timeout"]
            dead = asyncio.create_task(send(endpoint))
            assert await send(f"http://127.0.0.1:{free_ports(1)[0]}/") == REFUSED
            assert not dead.done()
            over.set()
            assert await dead == BROKEN_OFF

    run(story())


@pytest.mark.parametrize(
    "endpoint", ["", "http://192.0.2.1:8701/", "https://127.0.0.1:8701/", "http://example.org/"]
)
def test_peer_calls_only_http_endpoints_on_loopback(
    endpoint: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        traffic = Traffic()
        assert isinstance(await send(endpoint, traffic), str)
        assert not traffic.messages

    run(story())
    assert [record.getMessage() for record in caplog.records] == (
        ["a peer is not called"] if endpoint else []
    )


@pytest.mark.parametrize(("more", "pause_s"), [("Retry-After: 3\r\n", 3.0), ("", 0.0)])
def test_fault_has_the_pause_that_its_response_asks_for(more: str, pause_s: float) -> None:
    busy = Endpoint(AGENCIES).busy(Envelope("CoC", 1, (), Fault("too many requests")))

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(http(busy.body, "429 Too Many Requests", more))
        writer.close()

    async def story() -> None:
        async with other(talk) as endpoint:
            answer = await send(endpoint)
        assert answer == Envelope("CoC", 1, (), Fault("too many requests", False, pause_s))

    run(story())
