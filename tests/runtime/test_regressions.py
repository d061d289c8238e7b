"""Regression tests: large merge subscriptions, documents, files and answers of other peers."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qns.d2q.shipped import AGENCIES
from qns.edl.messages import Done, Envelope, Gossip
from qns.edl.requests import Send
from qns.errors import StoreFailed, ValueRefused
from qns.iil.requests import Deliveries, ListSubscriptions, PullDeliveries, Subscribe, Subscriptions
from qns.peer.inputs import Received
from qns.runtime.configuration import read_configuration
from qns.runtime.traffic import Traffic
from qns.runtime.transport import Transport
from qns.soap.endpoint import Call, Endpoint, HttpReply
from qns.soap.shapes import Port
from tests.runtime.peers import agencies, agencies_on_loopback, change, configure, eventually


def test_view_that_is_too_large_for_one_message_is_sent_in_parts(tmp_path: Path) -> None:
    with agencies(tmp_path) as peers:
        peers["INPS"].stop()
        for user in range(120):
            codes = ", ".join(f'"{user:06}{nth:010}"' for nth in range(400))
            text = f"Enterprise/Holder where FiscalCode in {{{codes}}}"
            peers["CoC"].ask(Subscribe("ann", text, id=f"s{user}"))
        peers["CoC"].ask(Subscribe("ann", 'Enterprise/Holder where Name = "M. Mecalla"', id="name"))
        peers["INPS"].start()

        def is_stable() -> bool:
            listed = peers["CoC"].ask(ListSubscriptions("ann"))
            assert isinstance(listed, Subscriptions)
            return not any(each.pending for each in listed.subscriptions)

        eventually(is_stable, "the whole view at INPS")
        metrics = peers["CoC"].metrics()
        parts = [value for name, value in metrics.items() if 'operation="viewPart"' in name]
        assert sum(parts) >= 2
        peers["INPS"].ask(change("e1"))
        answer = peers["CoC"].ask(PullDeliveries("ann", "name"), wait_s=30)
        assert isinstance(answer, Deliveries)
        assert [each.event for each in answer.deliveries] == ["e1"]


def test_health_reports_a_newer_document_of_another_federation(tmp_path: Path) -> None:
    with agencies(tmp_path) as peers:
        peers["INPS"].stop()
        path = tmp_path / "federation.xml"
        old, new = b'name="agencies" version="1"', b'name="others" version="2"'
        assert old in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(old, new))
        peers["INPS"].start()
        reasons = peers["INPS"].health()["reasons"]
        assert any("of the federation 'others'" in each for each in reasons), reasons


def test_only_the_owner_can_read_the_store(tmp_path: Path) -> None:
    with agencies(tmp_path):
        for path in tmp_path.glob("INPS.*db*"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.parametrize("line", ["notifications_per_call = 3000", "bytes_per_call = 9000000"])
def test_tuning_beyond_the_bounds_of_a_message_is_rejected(tmp_path: Path, line: str) -> None:
    path = configure(tmp_path, agencies_on_loopback(), "INPS", f"[tuning]\n{line}\n")
    with pytest.raises(ValueRefused, match="too much for one message"):
        read_configuration(path)


def test_fault_does_not_contain_the_path_of_the_store() -> None:
    call = Call(Port.LOCAL, "listSubscriptions", ListSubscriptions("ann"))
    error = StoreFailed("the disk gave an error", place="/srv/secret/inps.db")
    assert b"/srv/secret" not in Endpoint(AGENCIES).reply(call, error).body


@contextmanager
def answering(body: bytes) -> Iterator[Any]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        await writer.drain()
        writer.close()

    yield serve


def test_transport_ignores_the_answer_of_another_organisation() -> None:
    gossip = Envelope("INPS", 1, (), Gossip())
    call = Call(Port.PEER, "gossip", Received(gossip))

    async def asked(answers: str) -> Envelope | str:
        reply: HttpReply = Endpoint(AGENCIES).reply(call, Envelope(answers, 1, (), Done()))
        with answering(reply.body) as serve:
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            transport = Transport(lambda _: f"http://127.0.0.1:{port}/", Traffic())
            try:
                return await transport.send(Send("CoC", 1, gossip))
            finally:
                await transport.close()
                server.close()

    found = asyncio.run(asked("CoC"))
    assert isinstance(found, Envelope)
    assert found.sender == "CoC"
    assert asyncio.run(asked("INAIL")) == "the peer of INAIL answers there"
