"""The clients work with a peer of QNS 0.2.0, which rejects elements that it does not know.

The peer here is a server that reads requests with the released schema and answers as 0.2.0 does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest
from lxml import etree

from qns import AsyncClient
from qns.client import Client
from qns.errors import ValueRefused
from qns.iil.requests import Answer, Deliveries, Delivery, Ok, Subscribed
from qns.soap.envelope import write_envelope, write_fault
from qns.soap.operations import INVALID, OPERATION_CODECS, FaultDetail
from tests.soap.test_released_contract import released_schema

SOAP = "{http://schemas.xmlsoap.org/soap/envelope/}"


class OldPeer(BaseHTTPRequestHandler):
    requests: ClassVar[list[etree._Element]] = []
    answers: ClassVar[dict[str, Answer]] = {}
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        (request,) = etree.fromstring(body).find(f"{SOAP}Body")
        self.requests.append(request)
        schema = released_schema()
        if schema.validate(request):
            name = etree.QName(request).localname
            answer = self.answers.get(name, Subscribed("s1", (), 60.0))
            reply = OPERATION_CODECS[name].reply
            self._answer(200, write_envelope(reply.write(answer, contract=1)))
        else:
            problem = schema.error_log[0].message.replace("{urn:qns:peer:1}", "")
            self._answer(500, write_fault(INVALID, FaultDetail(problem)))

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def old_peer() -> Iterator[str]:
    OldPeer.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), OldPeer) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_client_repeats_a_request_without_the_elements_that_an_older_peer_rejects(
    old_peer: str,
) -> None:
    with Client(old_peer, "anna", token="secret") as client:
        made = client.subscribe("Enterprise", id="s1")
        assert made.ends is not None
        assert made.ends.isoformat() == "1970-01-01T00:01:00+00:00"
        client.renew("s1")
    contracts = [request.findtext("{*}contract") for request in OldPeer.requests]
    assert contracts == ["2", None, None]  # the client asks once


def test_client_leaves_the_series_of_a_cursor_out_for_an_older_peer(
    old_peer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        "pull": Deliveries((Delivery(4, "INPS", "e4", b"<event/>", "newer"),)),
        "acknowledge": Ok(),
    }
    monkeypatch.setattr(OldPeer, "answers", answers)
    with Client(old_peer, "anna") as client:
        (delivered,) = client.pull("s1", after="3@9f86d081884c7d65")
        assert delivered.cursor == "4"
        client.acknowledge("s1", "3@9f86d081884c7d65")
    first, pull, acknowledge = OldPeer.requests
    assert first.findtext("{*}series") == "9f86d081884c7d65"
    assert (pull.findtext("{*}after"), pull.findtext("{*}series")) == ("3", None)
    assert (acknowledge.findtext("{*}upto"), acknowledge.findtext("{*}series")) == ("3", None)


def test_asynchronous_client_repeats_it_too(old_peer: str) -> None:
    async def subscribe() -> Subscribed:
        async with AsyncClient(old_peer, "anna") as client:
            return await client.subscribe("Enterprise", id="s1")

    assert asyncio.run(subscribe()).expires_at == 60.0


def test_other_rejections_of_an_older_peer_are_raised(
    old_peer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        OldPeer,
        "do_POST",
        lambda self: self._answer(500, write_fault(INVALID, FaultDetail("Element 'id' is wrong"))),
    )
    with Client(old_peer, "anna") as client, pytest.raises(ValueRefused, match="'id' is wrong"):
        client.subscribe("Enterprise", id="s1")
