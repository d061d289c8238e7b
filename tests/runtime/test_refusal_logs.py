"""Log lines of refused requests and calls: the reason and the caller, and no content."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import AGENCIES
from qns.edl.messages import Envelope, Fault, Gossip
from qns.errors import (
    Busy,
    DocumentError,
    LanguageError,
    NameNotKnown,
    NotAllowed,
    QnsError,
    ValueRefused,
)
from qns.federation.document_xml import write_federation
from qns.iil.requests import InstallDocument, Publish, Subscribe
from qns.peer.inputs import Received
from qns.runtime.incidents import Incidents
from qns.runtime.log_reason import log_reason
from qns.runtime.traffic import Traffic
from qns.runtime.transport import Transport
from qns.soap.endpoint import Endpoint
from qns.soap.local_client import write_local
from qns.soap.peer_client import write_call
from qns.soap.shapes import Port
from tests.runtime.driver_stage import FEDERATION, run, staged
from tests.runtime.peers import change, post
from tests.runtime.test_server import answer_to, request_bytes, serving
from tests.runtime.test_transport import SEND, http, other, request_of

SECRET = "MCLMSM73H17H501F"


def fields_of(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [
        record.__dict__["fields"] for record in caplog.records if record.getMessage() == message
    ]


def publish_bytes(publish: Publish) -> bytes:
    body, action = write_local(publish, schema=AGENCIES)
    return post("/local", body, action)


REFUSED = {
    "unreadable": (post("/local", b"<a/>", '""'), "unreadable", "", "the root element is '…'"),
    "unknown class": (
        request_bytes(Subscribe("anna", "Enterprise/Holdr", id="S1")),
        "subscribe",
        "anna",
        "unknown class '…'",
    ),
    "subscription with a wrong value": (
        request_bytes(Subscribe("anna", f'Enterprise where Code = {SECRET}x"', id="S1")),
        "subscribe",
        "anna",
        "column",
    ),
    "event of another organisation": (
        publish_bytes(change("e1", source="CoC")),
        "publish",
        "CoC",
        "CoC",
    ),
    "peer that is no member": (
        post("/peer", *write_call(Envelope("Nobody", 1, (), Gossip()))),
        "gossip",
        "Nobody",
        "Nobody is not a member of the federation",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_request_is_logged_with_reason_and_caller(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    sent, operation, caller, words = REFUSED[name]

    async def story() -> None:
        async with serving(tmp_path) as (_, address):
            assert b"Fault>" in await answer_to(address, sent)

    run(story())
    (fields,) = fields_of(caplog, "a request was refused")
    assert fields["operation"] == operation
    assert fields.get("caller", "") == caller
    assert words in fields["reason"]
    assert fields["address"].startswith("127.0.0.1:")
    assert SECRET not in caplog.text
    assert SECRET not in str(fields)


def test_request_that_is_no_http_is_logged_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (_, address):
            await answer_to(address, b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n")

    run(story())
    (fields,) = fields_of(caplog, "a request was refused unread")
    assert fields["status"] == 421
    assert "another name" in fields["reason"]
    assert fields["address"].startswith("127.0.0.1:")


def test_call_that_another_peer_refuses_is_logged_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A newcomer's hellos are refused until the others have the newer document."""
    endpoint_of_coc = Endpoint(AGENCIES)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers = {"Content-Type": "text/xml"}
        call = endpoint_of_coc.decode(Port.PEER, headers, await request_of(reader))
        assert isinstance(call.input, Received)
        fault = Fault("INPS is not a member of the federation", permanent=True)
        reply = endpoint_of_coc.reply(call, Envelope("CoC", 1, (), fault))
        writer.write(http(reply.body, "500 Internal Server Error"))
        writer.close()

    async def story() -> None:
        async with other(talk) as endpoint:
            transport = Transport(lambda _: endpoint, Traffic())
            await transport.send(SEND)
            await transport.close()

    run(story())
    (fields,) = fields_of(caplog, "another peer refused a call")
    assert fields["to"] == "CoC"
    assert fields["operation"] == "gossip"
    assert fields["reason"] == "INPS is not a member of the federation"
    assert fields["permanent"] is True


def test_newer_document_is_logged_when_it_comes_into_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    newer = replace(FEDERATION, version=FEDERATION.version + 1)
    caplog.set_level(logging.INFO)

    async def story() -> None:
        async with staged(tmp_path) as stage:
            stage.driver.observers = (Incidents().observe,)
            await stage.ask(InstallDocument(write_federation(newer)))
            await stage.ask(InstallDocument(write_federation(newer)))

    run(story())
    (fields,) = fields_of(caplog, "a newer federation document is in force")
    assert (fields["before"], fields["document"]) == (1, 2)
    assert fields["members"] == "CoC, INAIL, INPS"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueRefused(f"'{SECRET}' is not a date"), "'…' is not a date"),
        (
            ValueRefused("quality value 0.123 is outside [0, 1]"),
            "quality value … is outside […, …]",
        ),
        (ValueRefused("'O'Brien' is not an integer"), "'…' is not an integer"),
        (LanguageError(f"unexpected '{SECRET}'", line=1, column=7), "column 7: unexpected '…'"),
        (DocumentError(f'the value "{SECRET}"'), "the value '…'"),
        (NameNotKnown("label", SECRET, ()), "unknown label '…'"),
        (NameNotKnown("subscription", "S1", ()), "unknown subscription 'S1'"),
        (NotAllowed("CoC is not a member"), "CoC is not a member"),
        (Busy("10,000 requests are waiting already"), "10,000 requests are waiting already"),
        (
            ValueRefused(f"'{SECRET}' is empty", place=f"object '{SECRET}'"),
            "object '…': '…' is empty",
        ),
    ],
)
def test_reason_in_a_log_has_no_content_of_the_request(error: QnsError, reason: str) -> None:
    assert log_reason(error) == reason


def test_value_of_an_event_is_not_logged_although_the_fault_quotes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fields = {"id": "e1", "class": "Enterprise", "source": "INPS", "data": {"Code": SECRET}}
    publish = Publish(EventReader(AGENCIES).from_fields(fields))
    sent = publish_bytes(publish).replace(b"Enterprise", b"Enterprize")

    async def story() -> None:
        async with serving(tmp_path) as (_, address):
            assert b"Fault>" in await answer_to(address, sent)

    run(story())
    assert fields_of(caplog, "a request was refused")
    assert not [record for record in caplog.records if SECRET in str(record.__dict__)]
