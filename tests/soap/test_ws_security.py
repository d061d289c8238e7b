"""Requests that are signed one by one: what is accepted, and every attack is refused."""

from __future__ import annotations

from time import time

import pytest
from lxml import etree

from qns.errors import Busy, ValueRefused
from qns.federation.new_certificate import new_certificate
from qns.peer.inputs import Received
from qns.soap.endpoint import Endpoint, SoapRefusal
from qns.soap.message_ids import MessageIds
from qns.soap.peer_client import write_call
from qns.soap.shapes import Port
from qns.soap.ws_security import CLOCK_TOLERANCE_S, LONGEST_S
from qns.soap.ws_signing import VALID_S, CallSigner
from tests.soap.signed_requests import (
    ADDRESS,
    ATTACKS,
    COC,
    HEADERS,
    INAIL,
    NOW,
    STRANGER,
    Receiver,
    changed,
    one,
    request,
    signed,
    signed_again,
)

ALL = ("to", "message-id", "timestamp", "body")


def refusal(receiver: Receiver, body: bytes) -> str:
    with pytest.raises(SoapRefusal) as refused:
        receiver.read(body)
    assert b"<detail>" in refused.value.reply.body
    return str(refused.value.error)


def test_signed_request_is_read_like_an_unsigned_one() -> None:
    call = Receiver().read(signed())
    assert call.input == Received(request())
    assert call.message_id == "urn:uuid:1"


@pytest.mark.parametrize("algorithm", ["ecdsa-p256", "rsa-3072"])
def test_both_algorithms_of_the_pattern_are_accepted(algorithm: str) -> None:
    own = new_certificate("CoC", NOW - 10, algorithm=algorithm, is_tls=False)
    receiver = Receiver()
    assert receiver.endpoint.security is not None
    fingerprint = CallSigner.read(own.certificate, own.key).key.fingerprint
    receiver.endpoint.security.certificates = lambda: {fingerprint: ("CoC", own.certificate)}
    assert receiver.read(signed(own)).input == Received(request())


def test_unsigned_request_of_a_caller_that_must_sign_is_refused() -> None:
    body, _ = write_call(request("CoC"), "urn:uuid:1")
    assert "requests of 'CoC' must be signed" in refusal(Receiver(), body)
    odd = body.replace(b"<soap:Body>", b"<soap:Body >")  # another reader of the endpoint
    assert "requests of 'CoC' must be signed" in refusal(Receiver(), odd)
    other, _ = write_call(request("INAIL"), "urn:uuid:1")
    assert Receiver().read(other).input == Received(request("INAIL"))


def test_signature_of_a_caller_that_need_not_sign_is_checked_all_the_same() -> None:
    receiver = Receiver(required_of=frozenset())
    assert receiver.read(signed(INAIL, "INAIL")).input == Received(request("INAIL"))
    wrong = changed(ATTACKS["altered_body"])
    assert "the signature does not fit" in refusal(receiver, wrong)


def test_member_cannot_sign_in_the_name_of_another() -> None:
    assert "INAIL' has signed the message" in refusal(Receiver(), signed(INAIL, "CoC"))


def test_certificate_that_the_document_does_not_name_is_refused() -> None:
    assert "names no seal certificate" in refusal(Receiver(), signed(STRANGER))


def test_without_a_setting_the_header_is_not_understood() -> None:
    with pytest.raises(SoapRefusal) as refused:
        Endpoint(Receiver().endpoint.schema).decode(Port.PEER, HEADERS, signed())
    assert b"soap:MustUnderstand" in refused.value.reply.body


def test_port_local_does_not_understand_the_header() -> None:
    with pytest.raises(SoapRefusal) as refused:
        Receiver().endpoint.decode(Port.LOCAL, HEADERS, signed())
    assert b"soap:MustUnderstand" in refused.value.reply.body


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_refused_and_the_genuine_request_is_still_accepted(name: str) -> None:
    receiver = Receiver()
    assert refusal(receiver, changed(ATTACKS[name]))
    assert receiver.read(signed()).input == Received(request())


@pytest.mark.parametrize("missing", ALL)
def test_part_that_is_not_signed_is_refused(missing: str) -> None:
    references = tuple(each for each in ALL if each != missing)
    body = signed_again(lambda _: None, references)
    assert "is not signed" in refusal(Receiver(), body)


def test_further_signed_parts_at_their_place_are_accepted() -> None:
    body = signed_again(lambda _: None, (*ALL, "token"))
    assert Receiver().read(body).input == Received(request())


def test_signed_element_at_another_place_is_refused() -> None:
    def hide(root: etree._Element) -> None:
        ATTACKS["body_wrapped_into_a_header"](root)

    body = signed_again(hide, ("to", "message-id", "timestamp", "body"))
    assert "is no header, token or Body" in refusal(Receiver(), body)


def test_request_that_arrives_again_is_refused_until_it_has_expired() -> None:
    receiver = Receiver()
    receiver.read(signed())
    assert "was used before" in refusal(receiver, signed())
    assert receiver.read(signed(id="urn:uuid:2")).input == Received(request())
    receiver.now = NOW + VALID_S + CLOCK_TOLERANCE_S + 1
    assert "not valid now" in refusal(receiver, signed())


def test_refused_request_does_not_use_up_its_message_id() -> None:
    receiver = Receiver()
    refusal(receiver, changed(ATTACKS["altered_body"]))
    assert receiver.read(signed()).input == Received(request())


@pytest.mark.parametrize(
    ("offset", "is_accepted"),
    [
        (CLOCK_TOLERANCE_S - 1, True),
        (CLOCK_TOLERANCE_S + 1, False),
        (-VALID_S - CLOCK_TOLERANCE_S + 1, True),
        (-VALID_S - CLOCK_TOLERANCE_S - 1, False),
    ],
)
def test_timestamp_must_be_valid_within_the_tolerance(offset: float, is_accepted: bool) -> None:
    receiver = Receiver()
    body = signed(now=NOW + offset)
    if is_accepted:
        assert receiver.read(body).input == Received(request())
    else:
        assert "not valid now" in refusal(receiver, body)


@pytest.mark.parametrize(
    ("created", "expires", "reason"),
    [
        ("2027-01-15T08:00:00Z", "2027-01-15T09:00:00Z", f"use at most {LONGEST_S:.0f}"),
        ("2027-01-15T08:00:00Z", "2027-01-15T07:59:59Z", f"use at most {LONGEST_S:.0f}"),
        ("2027-01-15T08:00:00", "2027-01-15T08:01:00", "write a dateTime with a zone"),
        ("yesterday", "2027-01-15T08:01:00Z", "write a dateTime with a zone"),
        ("0001-01-01T00:00:00+14:00", "2027-01-15T08:01:00Z", "Timestamp"),
    ],
)
def test_odd_timestamp_is_refused_although_it_is_signed(
    created: str, expires: str, reason: str
) -> None:
    def change(root: etree._Element) -> None:
        one(root, "//wsu:Created").text = created
        one(root, "//wsu:Expires").text = expires

    assert reason in refusal(Receiver(), signed_again(change, ALL))


def test_request_for_another_peer_is_refused() -> None:
    body = signed(to="https://inail.example/peer")
    assert "is not the address of this peer" in refusal(Receiver(), body)
    assert Receiver().read(signed(to=ADDRESS)).input == Received(request())


def test_expired_certificate_is_refused() -> None:
    receiver = Receiver()
    receiver.now = NOW + 400 * 86_400
    assert "the signature does not fit" in refusal(receiver, signed(now=receiver.now))


@pytest.mark.parametrize("algorithm", ["ed25519"])
def test_key_that_the_pattern_does_not_know_is_refused_with_the_remedy(algorithm: str) -> None:
    own = new_certificate("CoC", time(), algorithm=algorithm, is_tls=False)
    with pytest.raises(ValueRefused, match="ecdsa-p256"):
        CallSigner.read(own.certificate, own.key)


def test_key_of_another_certificate_is_refused() -> None:
    with pytest.raises(ValueRefused, match="does not fit"):
        CallSigner.read(COC.certificate, INAIL.key)


def test_message_ids_are_bounded_and_forgotten_when_they_expire() -> None:
    ids = MessageIds(most=2)
    assert ids.take("a", now=0, ends=10)
    assert ids.take("b", now=0, ends=5)
    assert not ids.take("a", now=1, ends=10)
    with pytest.raises(Busy, match="no more can be remembered"):
        ids.take("c", now=5, ends=20)
    assert ids.take("c", now=6, ends=20)
    assert len(ids) == 2
    assert ids.take("a", now=11, ends=30)
