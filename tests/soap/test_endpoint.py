"""The endpoint: which requests become calls, which are rejected, and with which fault."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import pytest
from lxml import etree

from qns.cbr.event import Event
from qns.edl.messages import Envelope, Fault, Gossip, Notified, Notify
from qns.errors import Busy, DuplicateId, NotAllowed, QnsError, StoreFailed, ValueRefused
from qns.iil.requests import (
    Answer,
    Deliveries,
    Delivery,
    ListSubscriptions,
    Ok,
    Pause,
    Publish,
    Published,
    PullDeliveries,
    Renew,
    Request,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Subscriptions,
    Unsubscribe,
    Unsubscribed,
)
from qns.peer.inputs import Received
from qns.soap.endpoint import Call, Endpoint, HttpReply, SoapRefusal
from qns.soap.local_client import read_local, write_local
from qns.soap.peer_client import read_reply, write_call
from qns.soap.shapes import Port
from tests.strategies import ALL_TYPES

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
ADDRESSING = "http://www.w3.org/2005/08/addressing"
HEADERS = {"Content-Type": "text/xml; charset=utf-8"}
GOSSIP = Envelope("INPS", 1, (), Gossip())
GOSSIP_TEXT = (
    '<gossip xmlns="urn:qns:peer:1"><origin><organisation>INPS</organisation>'
    "<document>1</document></origin></gossip>"
)


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint(ALL_TYPES)


def enveloped(content: str, *, header: str = "", around: str = "") -> bytes:
    return (
        f'<s:Envelope xmlns:s="{SOAP}" xmlns:a="{ADDRESSING}">{header}'
        f"<s:Body>{content}</s:Body>{around}</s:Envelope>"
    ).encode()


def refused(
    endpoint: Endpoint,
    body: bytes,
    headers: Mapping[str, str] = HEADERS,
    port: Port = Port.PEER,
) -> tuple[str, str, str]:
    """Returns the fault code, the name of the typed fault and its problem."""
    with pytest.raises(SoapRefusal) as refusal:
        endpoint.decode(port, headers, body)
    assert refusal.value.error.problem
    return fault_in(refusal.value.reply)


def fault_in(reply: HttpReply) -> tuple[str, str, str]:
    assert reply.status == 500
    assert reply.content_type == "text/xml; charset=utf-8"
    fault = etree.fromstring(reply.body).find(f".//{{{SOAP}}}Fault")
    assert fault is not None
    code = fault.findtext("faultcode", "")
    typed = fault.find("detail/*")
    if typed is None:
        return code, "", fault.findtext("faultstring", "")
    return code, etree.QName(typed).localname, typed.findtext("{urn:qns:peer:1}problem", "")


LOCAL: list[tuple[Request, Answer]] = [
    (Subscribe("me", "Thing", "s1", "g", 5.0), Subscribed("s1", ("INPS", "CoC"), 17.25)),
    (Subscribe("me", "<subscription/>"), Subscribed("s2", (), inf)),
    (Subscribe("me", "Thing from X"), Subscribed("s3", (), inf, ("X is no member", "a & b"))),
    (Unsubscribe("me", "s1"), Unsubscribed("s1", 3)),
    (Renew("me", "s1"), Subscribed("s1", (), inf)),
    (Pause("me", "s1"), Ok()),
    (
        ListSubscriptions("me"),
        Subscriptions((SubscriptionInfo("s1", "Thing", "", True, inf, ("CoC",), 1, 2, 3),)),
    ),
    (PullDeliveries("me", "s1", 3, 7), Deliveries((Delivery(4, "INPS", "e1", b"<event/>"),))),
    (
        Publish(Event("e1", "Thing", "INPS", {"Thing.Code": "a"}, {}, None, inf)),
        Published("e1", ("CoC",), again=True),
    ),
]


@pytest.mark.parametrize(("request_", "answer"), LOCAL)
def test_local_request_and_answer_arrive_unchanged(
    endpoint: Endpoint, request_: Request, answer: Answer
) -> None:
    body, action = write_local(request_, wait_s=2.5, token="secret", schema=ALL_TYPES)
    call = endpoint.decode(Port.LOCAL, {**HEADERS, "SOAPAction": action}, body)
    assert call.input == request_
    assert call.port is Port.LOCAL
    assert call.wait_s == (2.5 if isinstance(request_, PullDeliveries) else 0.0)
    reply = endpoint.reply(call, answer)
    assert reply.status == 200
    assert read_local(request_, reply.status, reply.body) == answer


def test_replies_and_faults_carry_the_message_id_as_relates_to(endpoint: Endpoint) -> None:
    body, action = write_call(GOSSIP, "urn:uuid:a&b")
    call = endpoint.decode(Port.PEER, {**HEADERS, "SOAPAction": action}, body)
    assert call == Call(Port.PEER, "gossip", Received(GOSSIP), "urn:uuid:a&b")
    fault = Envelope("CoC", 1, (), Fault("not now"))
    for reply in (endpoint.reply(call, fault), endpoint.failure(call)):
        related = etree.fromstring(reply.body).findtext(f".//{{{ADDRESSING}}}RelatesTo")
        assert related == "urn:uuid:a&b"
    with pytest.raises(SoapRefusal) as refusal:
        endpoint.decode(Port.LOCAL, HEADERS, body)
    assert b">urn:uuid:a&amp;b</wsa:RelatesTo>" in refusal.value.reply.body


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (ValueRefused("wrong"), "soap:Client", "InvalidFault"),
        (NotAllowed("wrong"), "soap:Client", "RefusedFault"),
        (DuplicateId("wrong"), "soap:Client", "RefusedFault"),
        (Busy("wrong"), "soap:Server", "BusyFault"),
        (StoreFailed("wrong"), "soap:Server", "BusyFault"),
    ],
)
def test_error_becomes_the_fault_of_its_kind(
    endpoint: Endpoint, error: QnsError, code: str, kind: str
) -> None:
    call = Call(Port.LOCAL, "pause", Pause("me", "s1"))
    assert fault_in(endpoint.reply(call, error)) == (code, kind, "wrong")


def test_unexpected_failure_gives_a_fault_without_details(endpoint: Endpoint) -> None:
    code, kind, problem = fault_in(endpoint.failure(None))
    assert (code, kind) == ("soap:Server", "BusyFault")
    assert problem == "the peer could not serve this request"


def test_fault_of_the_peer_carries_its_origin(endpoint: Endpoint) -> None:
    body, _ = write_call(GOSSIP)
    call = endpoint.decode(Port.PEER, HEADERS, body)
    for permanent in (True, False):
        fault = Envelope("CoC", 4, (), Fault("no <member>", permanent))
        reply = endpoint.reply(call, fault)
        assert read_reply(GOSSIP, reply.status, reply.body) == fault


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({}, "content type"),
        ({"Content-Type": "application/soap+xml"}, "content type"),
        ({"Content-Type": "multipart/related; boundary=x"}, "content type"),
        ({"Content-Type": "text/xml; charset=utf-16"}, "charset"),
        ({**HEADERS, "Content-Encoding": "gzip"}, "content encoding"),
        ({**HEADERS, "SOAPAction": '"hello"'}, "SOAPAction"),
    ],
)
def test_endpoint_rejects_headers_of_anything_but_plain_soap_1_1(
    endpoint: Endpoint, headers: dict[str, str], problem: str
) -> None:
    code, kind, reported = refused(endpoint, enveloped(GOSSIP_TEXT), headers)
    assert (code, kind) == ("soap:Client", "InvalidFault")
    assert problem in reported


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "TEXT/XML"},
        {"CONTENT-TYPE": 'text/xml; charset="UTF-8"', "soapaction": '""'},
        {**HEADERS, "SOAPAction": "gossip", "Content-Encoding": "identity"},
    ],
)
def test_endpoint_accepts_all_spellings_of_headers_that_http_allows(
    endpoint: Endpoint, headers: dict[str, str]
) -> None:
    call = endpoint.decode(Port.PEER, headers, enveloped(GOSSIP_TEXT))
    assert call.input == Received(GOSSIP)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "no XML"),
        (b"<x/>", "root element"),
        (enveloped(""), "Body with 0"),
        (enveloped(GOSSIP_TEXT * 2), "Body with 2"),
        (enveloped(GOSSIP_TEXT, around=f"<s:Body>{GOSSIP_TEXT}</s:Body>"), "second Body"),
        (enveloped(GOSSIP_TEXT, around="<s:Header/>"), "in an envelope"),
        (enveloped(f"please {GOSSIP_TEXT}"), "'please ' in"),
        (enveloped(f"{GOSSIP_TEXT} please"), "' please' in"),
        (enveloped(GOSSIP_TEXT, header="please"), "'please' in"),
        (f'<s:Envelope xmlns:s="{SOAP}"/>'.encode(), "without a Body"),
        (enveloped("<delete/>"), "no operation"),
        (enveloped("<s:Fault/>"), "no operation"),
        (enveloped('<gossip xmlns="urn:other"/>'), "no operation"),
        (enveloped('<gossip xmlns="urn:qns:peer:1"/>'), "Element 'gossip'"),
        (enveloped(GOSSIP_TEXT, header="<s:Header/>" * 2), "second Header"),
    ],
)
def test_fault_for_a_malformed_request_names_the_problem(
    endpoint: Endpoint, body: bytes, problem: str
) -> None:
    _, kind, reported = refused(endpoint, body)
    assert kind == "InvalidFault"
    assert problem in reported


def test_soap_1_2_envelope_is_a_version_mismatch(endpoint: Endpoint) -> None:
    body = enveloped(GOSSIP_TEXT).replace(SOAP.encode(), b"http://www.w3.org/2003/05/soap-envelope")
    assert refused(endpoint, body)[:2] == ("soap:VersionMismatch", "InvalidFault")


def test_operation_of_the_other_port_is_refused(endpoint: Endpoint) -> None:
    code, kind, reported = refused(endpoint, enveloped(GOSSIP_TEXT), port=Port.LOCAL)
    assert (code, kind) == ("soap:Client", "RefusedFault")
    assert "gossip is no operation of the port Local" in reported


def test_unknown_must_understand_header_gives_a_fault_without_detail(
    endpoint: Endpoint,
) -> None:
    wanted = '<s:Header><o:Signed xmlns:o="urn:o" s:mustUnderstand="{}"{}/></s:Header>'
    body = enveloped(GOSSIP_TEXT, header=wanted.format("1", ""))
    code, kind, reported = refused(endpoint, body)
    assert (code, kind) == ("soap:MustUnderstand", "")
    assert "Signed" in reported
    for flag, actor in (("0", ""), ("1", ' s:actor="urn:somebody-else"')):
        body = enveloped(GOSSIP_TEXT, header=wanted.format(flag, actor))
        assert endpoint.decode(Port.PEER, HEADERS, body).input == Received(GOSSIP)


def test_endpoint_understands_addressing_headers_and_ignores_the_reply_address(
    endpoint: Endpoint,
) -> None:
    header = (
        '<s:Header><a:To s:mustUnderstand="1">http://here/</a:To><a:ReplyTo s:mustUnderstand="1">'
        "<a:Address>http://elsewhere/</a:Address></a:ReplyTo>"
        "<a:MessageID> urn:1 </a:MessageID></s:Header>"
    )
    call = endpoint.decode(Port.PEER, HEADERS, enveloped(GOSSIP_TEXT, header=header))
    assert (call.input, call.message_id) == (Received(GOSSIP), "urn:1")


def test_endpoint_rejects_a_second_or_long_message_id(endpoint: Endpoint) -> None:
    twice = "<s:Header><a:MessageID>1</a:MessageID><a:MessageID>2</a:MessageID></s:Header>"
    assert "second MessageID" in refused(endpoint, enveloped(GOSSIP_TEXT, header=twice))[2]
    long = f"<s:Header><a:MessageID>{'x' * 2_000}</a:MessageID></s:Header>"
    assert "MessageID of 2,000" in refused(endpoint, enveloped(GOSSIP_TEXT, header=long))[2]


@pytest.mark.parametrize(
    "attribute", ['xsi:type="q:gossip" xmlns:q="urn:qns:peer:1"', 'xsi:schemaLocation="urn:x y"']
)
def test_envelope_with_attributes_gives_the_same_call(endpoint: Endpoint, attribute: str) -> None:
    instance = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    content = GOSSIP_TEXT.replace("<gossip", f"<gossip {instance} {attribute}")
    assert endpoint.decode(Port.PEER, HEADERS, enveloped(content)).input == Received(GOSSIP)


def test_invalid_request_gives_the_same_fault_in_an_unusual_envelope(
    endpoint: Endpoint,
) -> None:
    wrong = GOSSIP_TEXT.replace("<document>1", "<document>-1")
    header = '<s:Header><o:Other xmlns:o="urn:o"/></s:Header>'
    usual, unusual = enveloped(wrong), enveloped(wrong, header=header)
    assert refused(endpoint, usual) == refused(endpoint, unusual)
    assert "Element 'document'" in refused(endpoint, usual)[2]


def test_notify_without_notifications_is_accepted(endpoint: Endpoint) -> None:
    sent = Envelope("INPS", 1, (), Notify(()))
    call = endpoint.decode(Port.PEER, HEADERS, write_call(sent)[0])
    assert call.input == Received(sent)
    answer: Any = Envelope("CoC", 1, (), Notified((), None))
    reply = endpoint.reply(call, answer)
    assert read_reply(sent, reply.status, reply.body) == answer
