"""Sends every request of the hostile corpus to a gateway, without HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from qns.cbr.index import DictionaryIndex
from qns.federation.document_xml import write_federation
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.peer.gateway import Gateway
from qns.peer.recovery import Settings
from qns.peer.tuning import Tuning
from qns.soap.endpoint import Endpoint, HttpReply, SoapRefusal
from qns.soap.shapes import Port
from qns.store.lineage import MemoryLineage
from qns.store.sqlite import SqliteStore
from tests.soap.hostile.answers import BEFORE, kind_of
from tests.soap.hostile.case import Answer
from tests.soap.hostile.corpus import CASES
from tests.soap.hostile.wire import notify
from tests.store.rows import content

NOW = 1_000.0
_PLAIN = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '""'}


@dataclass
class Desk:
    """The gateway of INPS with its endpoint; an unexpected exception is not caught."""

    gateway: Gateway
    endpoint: Endpoint

    def answer(self, port: Port, headers: dict[str, str], body: bytes) -> HttpReply:
        try:
            call = self.endpoint.decode(port, headers, body)
        except SoapRefusal as refusal:
            return refusal.reply
        (output,) = self.gateway.run([call.input], NOW).answers
        assert output is not None
        return self.endpoint.reply(call, output)


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    store = SqliteStore.in_memory("hostile corpus")
    gateway = Gateway.open(
        Settings("INPS", Tuning(), DictionaryIndex),
        store,
        MemoryLineage(),
        document=write_federation(AGENCIES_FEDERATION),
        nonce="n1",
        now=NOW,
    )
    desk = Desk(gateway, Endpoint(AGENCIES_FEDERATION.schema))
    for port, body in BEFORE:
        reply = desk.answer(port, _PLAIN, body)
        assert kind_of(reply.status, reply.body) is Answer.SERVED, reply.body
    yield desk
    store.close()
    SqliteStore.forget("hostile corpus")


@pytest.mark.parametrize("name", CASES)
def test_hostile_request_gets_the_expected_answer_and_changes_nothing(
    desk: Desk, name: str
) -> None:
    case = CASES[name]
    body = case.make()
    for each in dict.fromkeys((body, with_header(body))):
        before = content(desk.gateway.store)
        reply = desk.answer(case.port, case.all_headers, each)
        assert kind_of(reply.status, reply.body) is case.answer, reply.body[:2_000]
        assert content(desk.gateway.store) == before


def with_header(body: bytes) -> bytes:
    """Returns the body with an optional unknown header, so that spyne reads the envelope."""
    if b"<s:Header" in body:
        return body
    header = b'<s:Header><h:x xmlns:h="urn:some:header"/></s:Header>'
    return body.replace(b"<s:Body>", header + b"<s:Body>", 1)


def test_corpus_has_at_least_60_cases_and_every_kind_of_answer() -> None:
    assert len(CASES) >= 60
    assert {case.answer for case in CASES.values()} == set(Answer)


def test_valid_request_changes_the_store(desk: Desk) -> None:
    """Shows that the comparison in the test of the corpus can detect a change."""
    store = desk.gateway.store
    before = content(store)
    assert {"subscriptions", "deliveries", "custody", "events", "inbound"} <= set(before)
    reply = desk.answer(Port.PEER, _PLAIN, notify())
    assert kind_of(reply.status, reply.body) is Answer.SERVED
    assert content(store) != before
