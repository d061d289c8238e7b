"""The clients wait as long as a busy peer says with Retry-After."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic
from typing import ClassVar

import pytest

from qns import AsyncClient
from qns.client import Client
from qns.errors import Busy
from qns.iil.requests import Subscribed
from qns.soap.envelope import write_envelope, write_fault
from qns.soap.operations import BUSY, OPERATION_CODECS, FaultDetail
from qns.soap.retry_after import LONGEST_S, read_retry_after, write_retry_after


class BusyPeer(BaseHTTPRequestHandler):
    at: ClassVar[list[float]] = []
    """When each request came; only the first one is refused."""
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.at.append(monotonic())
        is_first = len(self.at) == 1
        reply = OPERATION_CODECS["subscribe"].reply
        body = (
            write_fault(BUSY, FaultDetail("too many requests"))
            if is_first
            else write_envelope(reply.write(Subscribed("s1", (), 60.0), contract=2))
        )
        self.send_response(503 if is_first else 200)
        if is_first:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def busy_peer() -> Iterator[str]:
    BusyPeer.at.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), BusyPeer) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_client_repeats_a_request_when_the_peer_says(busy_peer: str) -> None:
    with Client(busy_peer, "anna") as client:
        client.subscribe("Enterprise", id="s1")
    first, second = BusyPeer.at
    assert second - first >= 1.0


def test_asynchronous_client_repeats_it_then_too(busy_peer: str) -> None:
    async def subscribe() -> None:
        async with AsyncClient(busy_peer, "anna") as client:
            await client.subscribe("Enterprise", id="s1")

    asyncio.run(subscribe())
    first, second = BusyPeer.at
    assert second - first >= 1.0


def test_client_without_patience_raises_busy_with_the_pause(busy_peer: str) -> None:
    with (
        Client(busy_peer, "anna", patience_s=0.5) as client,
        pytest.raises(Busy) as raised,
    ):
        client.subscribe("Enterprise", id="s1")
    assert raised.value.retry_after_s == 1.0
    assert len(BusyPeer.at) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("-1", 0.0),
        ("1.5", 0.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
        ("999999", LONGEST_S),
        ("9" * 5_000, 0.0),
        ("٣", 0.0),
    ],
)
def test_header_is_read_as_seconds_or_ignored(header: str | None, seconds: float) -> None:
    assert read_retry_after(header) == seconds


def test_header_is_written_in_whole_seconds_of_at_least_one() -> None:
    assert [write_retry_after(each) for each in (0.001, 1.0, 1.2)] == ["1", "1", "2"]
