"""The clients' side: what is made of an answer, and of what is none."""

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
    Request,
    SendAll,
    Skip,
    SubChanged,
)
from qns.errors import Busy, DocumentError, NotAllowed, QnsError, ValueRefused
from qns.iil.requests import InstallDocument, Pause, Publish, Published, Subscribe
from qns.inputs import Received
from qns.soap.endpoint import Endpoint
from qns.soap.local_client import read_local, write_local
from qns.soap.operations import EXCHANGES
from qns.soap.peer_client import read_reply, write_call
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
def test_outcomes_come_back_in_the_order_of_what_was_sent(kinds: list[bool]) -> None:
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
    assert answer is not None
    assert isinstance(answer.body, Notified)
    assert [outcome.reason for outcome in answer.body.outcomes] == [_name(item) for item in items]


def _name(item: Item) -> str:
    return item.event if isinstance(item, Notification) else f"skip {item.last}"


def test_an_answer_with_another_number_of_outcomes_is_none() -> None:
    sent = enveloped(Notify((notification(1),)))
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    reply = ENDPOINT.reply(call, Envelope("INAIL", 1, (), Notified((), None)))
    assert read_reply(sent, reply.status, reply.body) is None


@pytest.mark.parametrize("body", [SendAll(), SubChanged(1, 2, 3, 4, ())])
def test_a_change_is_in_force_or_to_be_sent_anew(body: SendAll | SubChanged) -> None:
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
    assert read_reply(sent, reply.status, contradiction) is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (404, b"<html>not here</html>"),
        (502, b"Bad Gateway"),
        (200, b"\xff\xfe"),
        (200, write_call(enveloped(CHANGE))[0]),
        (500, ENDPOINT.failure(None).body),
    ],
)
def test_what_is_no_answer_of_a_peer_is_none_and_never_an_exception(
    status: int, body: bytes
) -> None:
    assert read_reply(enveloped(CHANGE), status, body) is None


@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_no_answer(body: bytes) -> None:
    assert read_reply(enveloped(CHANGE), 200, body) is None
    with pytest.raises(DocumentError):
        read_local(Pause("me", "s1"), 200, body)


@given(messages(EXCHANGES["changeSub"].reply.shape), st.data())
def test_an_answer_cut_short_is_none(answer: Envelope, data: st.DataObject) -> None:
    sent = enveloped(CHANGE)
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    reply = ENDPOINT.reply(call, answer)
    assert read_reply(sent, 200, reply.body) == answer
    cut = data.draw(st.integers(0, len(reply.body) - 1))
    assert read_reply(sent, 200, reply.body[:cut]) is None


def test_a_fault_of_the_peer_is_its_answer() -> None:
    sent = enveloped(CHANGE)
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    fault = Envelope("INAIL", 7, (), Fault("INPS is not a member", permanent=True))
    reply = ENDPOINT.reply(call, fault)
    assert read_reply(sent, reply.status, reply.body) == fault


def test_an_error_of_the_process_is_no_answer_of_the_peer() -> None:
    sent = enveloped(CHANGE)
    call = ENDPOINT.decode(Port.PEER, HEADERS, write_call(sent)[0])
    reply = ENDPOINT.reply(call, Busy("too much to do"))
    assert read_reply(sent, reply.status, reply.body) is None


# -- users' programs --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueRefused("wrong", place="column 3", remedy="mend it"), ValueRefused),
        (NotAllowed("wrong", place="column 3", remedy="mend it"), NotAllowed),
        (Busy("wrong", place="column 3", remedy="mend it"), Busy),
    ],
)
def test_a_program_is_told_the_peers_error(error: QnsError, told: type[QnsError]) -> None:
    request = Subscribe("me", "Thing")
    call = ENDPOINT.decode(Port.LOCAL, HEADERS, write_local(request)[0])
    reply = ENDPOINT.reply(call, error)
    with pytest.raises(told) as raised:
        read_local(request, reply.status, reply.body)
    assert str(raised.value) == str(error)


def test_a_fault_of_somebody_else_is_told_with_its_reason() -> None:
    body = ENDPOINT.failure(None).body
    start, end = body.index(b"<detail>"), body.index(b"</soap:Fault>")
    with pytest.raises(DocumentError, match="could not serve"):
        read_local(Pause("me", "s1"), 500, body[:start] + body[end:])


@given(events())
def test_an_event_is_published_as_it_is(event: object) -> None:
    request = Publish(event)  # type: ignore[arg-type]
    body, action = write_local(request, schema=ALL_TYPES)
    assert action == '"publish"'
    assert ENDPOINT.decode(Port.LOCAL, HEADERS, body).input == request


def test_a_program_without_the_schema_publishes_texts() -> None:
    typed = TypedEvent("e1", "thing", "INPS", data=(TypedValue("CODE", "a"),))
    request = TypedPublish("me", typed)
    call = ENDPOINT.decode(Port.LOCAL, HEADERS, write_local(request)[0])
    assert isinstance(call.input, Publish)
    assert call.input.event.values == {"Thing.Code": "a"}
    answer = Published("e1", ("CoC",))
    reply = ENDPOINT.reply(call, answer)
    assert read_local(request, reply.status, reply.body) == answer


def test_what_the_port_does_not_offer_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueRefused, match="InstallDocument"):
        write_local(InstallDocument(b""))
    with pytest.raises(ValueRefused, match="schema"):
        write_local(Publish(None))  # type: ignore[arg-type]
