"""The two clients: what they make of replies, of faults and of bytes that are neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl.messages import (
    ChangeSub,
    Entry,
    Envelope,
    Fault,
    Item,
    Notification,
    Notified,
    Notify,
    Outcome,
    RelayAcknowledgement,
    Request,
    SendAll,
    Skip,
    Standing,
    SubChanged,
)
from qns.errors import (
    Busy,
    DocumentError,
    NotAllowed,
    QnsError,
    StoreFailed,
    ValueRefused,
)
from qns.iil.requests import InstallDocument, Pause, Publish, Published, Subscribe
from qns.peer.inputs import Received
from qns.soap.endpoint import Endpoint, SoapRefusal
from qns.soap.local_client import read_local, write_local
from qns.soap.operations import OPERATION_CODECS
from qns.soap.peer_client import UNUSABLE, read_reply, write_call
from qns.soap.shapes import Port
from qns.soap.typed_event import TypedEvent, TypedPublish, TypedValue
from tests.soap.messages import messages
from tests.strategies import ALL_TYPES, events

ENDPOINT = Endpoint(ALL_TYPES)
HEADERS = {"Content-Type": "text/xml; charset=utf-8"}
ENTRY = Entry("INAIL", 1, 2, 3, 2)
CHANGE = ChangeSub(1, 1, 1, None, 1, (), (), "0")


def enveloped(body: Request) -> Envelope:
    return Envelope("INPS", 1, (), body)


def notification(number: int) -> Notification:
    return Notification("INPS", 1, 1, number, f"e{number}", b"<event/>", 0.0, ENTRY, ("INPS",))


def skip(number: int) -> Skip:
    return Skip("INPS", 1, ENTRY, number, "too old")


@given(st.lists(st.booleans(), max_size=6))
def test_outcomes_are_returned_in_the_order_of_the_sent_items(kinds: list[bool]) -> None:
    items: list[Item] = [notification(at) if kind else skip(at) for at, kind in enumerate(kinds)]
    sent = enveloped(Notify(tuple(items)))
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    assert isinstance(call.input, Received)
    received = call.input.envelope.body
    assert isinstance(received, Notify)
    assert sorted(map(str, received.items)) == sorted(map(str, items))
    outcomes = [Outcome(False, _name(item)) for item in received.items]
    reply = ENDPOINT.reply(call, Envelope("INAIL", 1, (), Notified(tuple(outcomes), None)))
    answer = read_reply(sent, reply.status, reply.body)
    assert isinstance(answer, Envelope)
    assert isinstance(answer.body, Notified)
    assert [outcome.reason for outcome in answer.body.outcomes] == [_name(item) for item in items]


def _name(item: Item) -> str:
    return item.event if isinstance(item, Notification) else f"skip {item.last}"


def test_reply_with_another_number_of_outcomes_is_not_used() -> None:
    sent = enveloped(Notify((notification(1),)))
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    reply = ENDPOINT.reply(call, Envelope("INAIL", 1, (), Notified((), None)))
    assert read_reply(sent, reply.status, reply.body) == UNUSABLE


@pytest.mark.parametrize("body", [SendAll(), SubChanged(1, 2, 3, 4, ())])
def test_reply_to_change_sub_is_ignored_if_send_all_contradicts_its_content(
    body: SendAll | SubChanged,
) -> None:
    sent = enveloped(CHANGE)
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    answer = Envelope("INAIL", 1, (), body)
    reply = ENDPOINT.reply(call, answer)
    assert read_reply(sent, reply.status, reply.body) == answer
    contradiction = reply.body.replace(b"<sendAll>true", b"<sendAll>?").replace(
        b"<sendAll>false", b"<sendAll>true"
    )
    contradiction = contradiction.replace(b"<sendAll>?", b"<sendAll>false")
    assert contradiction != reply.body
    assert read_reply(sent, reply.status, contradiction) == UNUSABLE


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (404, b"<html>not here</html>"),
        (502, b"Bad Gateway"),
        (200, b"\xff\xfe"),
        (200, write_call(enveloped(CHANGE))[0]),
    ],
)
def test_peer_client_does_not_use_a_body_that_is_not_a_reply(status: int, body: bytes) -> None:
    assert read_reply(enveloped(CHANGE), status, body) == UNUSABLE


def test_peer_client_tells_what_the_process_of_the_other_peer_reports() -> None:
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(enveloped(CHANGE))[0])
    failed = StoreFailed("the store cannot be read now", place="/var/lib/qns/peer.db")
    reply = ENDPOINT.reply(call, failed)
    assert read_reply(enveloped(CHANGE), reply.status, reply.body) == (
        "its process cannot serve it: 'the store cannot be read now'"
    )
    internal = ENDPOINT.failure(None)
    answer = read_reply(enveloped(CHANGE), internal.status, internal.body)
    assert isinstance(answer, str)
    assert answer.startswith("its process cannot serve it: ")


@given(st.binary(max_size=200))
def test_clients_reject_arbitrary_bytes_as_a_reply(body: bytes) -> None:
    assert read_reply(enveloped(CHANGE), 200, body) == UNUSABLE
    with pytest.raises(DocumentError):
        read_local(Pause("me", "s1"), 200, body)


@given(messages(OPERATION_CODECS["changeSub"].reply.shape), st.data())
def test_peer_client_does_not_use_a_truncated_reply(answer: Envelope, data: st.DataObject) -> None:
    sent = enveloped(CHANGE)
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    reply = ENDPOINT.reply(call, answer)
    assert read_reply(sent, 200, reply.body) == answer
    cut = data.draw(st.integers(0, len(reply.body) - 1))
    assert read_reply(sent, 200, reply.body[:cut]) == UNUSABLE


def test_peer_client_returns_a_fault_of_the_peer_as_its_reply() -> None:
    sent = enveloped(CHANGE)
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    fault = Envelope("INAIL", 7, (), Fault("INPS is not a member", permanent=True))
    reply = ENDPOINT.reply(call, fault)
    assert read_reply(sent, reply.status, reply.body) == fault


def test_version_that_cannot_relay_acknowledgements_answers_with_a_permanent_fault() -> None:
    """A missing answer would mean that the other peer is unreachable."""
    standing = Standing(1, 1, 1, 1, 3)
    sent = enveloped(RelayAcknowledgement("CoC", "INPS", standing, ("INPS",)))
    body, _ = write_call(sent)
    unknown = body.replace(b"relayAcknowledgement", b"operationOfLater")
    with pytest.raises(SoapRefusal) as refusal:
        ENDPOINT.decode(Port.PEER, {**HEADERS, "SOAPAction": '"operationOfLater"'}, unknown)
    reply = refusal.value.reply
    answer = read_reply(sent, reply.status, reply.body, "INAIL")
    assert isinstance(answer, Envelope)
    assert answer.sender == "INAIL"
    assert isinstance(answer.body, Fault)
    assert answer.body.permanent
    busy = ENDPOINT.failure(None)
    assert isinstance(read_reply(sent, busy.status, busy.body, "INAIL"), str)


def test_peer_client_returns_the_reason_for_an_error_of_the_process() -> None:
    sent = enveloped(CHANGE)
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    reply = ENDPOINT.reply(call, Busy("too much to do"))
    found = read_reply(sent, reply.status, reply.body)
    assert found == "its process cannot serve it: 'too much to do'"


# -- users' programs --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "raised_type"),
    [
        (ValueRefused("wrong", place="column 3", remedy="mend it"), ValueRefused),
        (NotAllowed("wrong", place="column 3", remedy="mend it"), NotAllowed),
        (Busy("wrong", place="column 3", remedy="mend it"), Busy),
    ],
)
def test_local_client_raises_the_error_of_the_peer(
    error: QnsError, raised_type: type[QnsError]
) -> None:
    request = Subscribe("me", "Thing")
    call = ENDPOINT.decode(Port.LOCAL, HEADERS, write_local(request)[0])
    reply = ENDPOINT.reply(call, error)
    with pytest.raises(raised_type) as raised:
        read_local(request, reply.status, reply.body)
    assert str(raised.value) == str(error)


def test_local_client_reports_the_reason_of_a_fault_without_detail() -> None:
    body = ENDPOINT.failure(None).body
    start, end = body.index(b"<detail>"), body.index(b"</soap:Fault>")
    with pytest.raises(DocumentError, match="could not serve"):
        read_local(Pause("me", "s1"), 500, body[:start] + body[end:])


@given(events())
def test_published_event_arrives_unchanged(event: object) -> None:
    request = Publish(event)  # type: ignore[arg-type]
    body, action = write_local(request, schema=ALL_TYPES)
    assert action == '"publish"'
    assert ENDPOINT.decode(Port.LOCAL, HEADERS, body).input == request


def test_program_without_the_schema_publishes_an_event_as_texts() -> None:
    typed = TypedEvent("e1", "thing", "INPS", data=(TypedValue("CODE", "a"),))
    request = TypedPublish("me", typed)
    call = ENDPOINT.decode(Port.LOCAL, HEADERS, write_local(request)[0])
    assert isinstance(call.input, Publish)
    assert call.input.event.values == {"Thing.Code": "a"}
    answer = Published("e1", ("CoC",))
    reply = ENDPOINT.reply(call, answer)
    assert read_local(request, reply.status, reply.body) == answer


def test_local_client_rejects_a_request_that_the_port_does_not_offer() -> None:
    with pytest.raises(ValueRefused, match="InstallDocument"):
        write_local(InstallDocument(b""))
    with pytest.raises(ValueRefused, match="schema"):
        write_local(Publish(None))  # type: ignore[arg-type]
