"""A change of any size can be sent in parts, and it is applied only when all parts are there."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from qns.d2q.shipped import AGENCIES
from qns.edl.messages import ChangeSub, Document, Envelope, FetchDocument, Gossip
from qns.errors import Busy
from qns.federation.document_xml import MAX_FEDERATION_BYTES
from qns.peer.inputs import Received
from qns.soap.endpoint import Endpoint
from qns.soap.parts import Assembly, PartedChange, ViewPart, in_parts
from qns.soap.peer_client import read_reply, write_call
from qns.soap.shapes import Port

HEADERS = {"Content-Type": "text/xml; charset=utf-8"}
CHANCE = Random(5)
TEXTS = ("x&" * CHANCE.randrange(400) for _ in range(9_000))
ELEMENTS = tuple(f"<subscription>{text}{n}</subscription>" for n, text in enumerate(TEXTS))
LARGE = ChangeSub(1, 1, 3, 7, 8, ELEMENTS[:7_000], ELEMENTS[7_000:], "d")


def carried(envelope: Envelope) -> object:
    """Returns the body of an envelope after it was written and read."""
    call = Endpoint(AGENCIES).decode(Port.PEER, HEADERS, write_call(envelope)[0])
    assert isinstance(call.input, Received)
    return call.input.envelope.body


def parts_of_large() -> tuple[list[ViewPart], PartedChange]:
    *parts, last = [carried(each) for each in in_parts(Envelope("INPS", 1, (), LARGE))]
    assert isinstance(last, PartedChange)
    return [part for part in parts if isinstance(part, ViewPart)], last


def test_small_change_is_sent_in_one_envelope() -> None:
    small = Envelope("INPS", 1, (), replace(LARGE, added=("a",), removed=("b",)))
    assert in_parts(small) == [small]
    assert in_parts(Envelope("INPS", 1, (), Gossip()))[0].body == Gossip()


def test_assembly_joins_the_parts_of_a_large_change() -> None:
    assembly = Assembly()
    parts, last = parts_of_large()
    assert len(parts) == last.parts > 3
    for part in parts:
        assembly.keep("INPS", part)
        if part.part:
            assembly.keep("INPS", part)  # a duplicate is ignored
    assert assembly.whole("INPS", last) == LARGE
    assert assembly.whole("INPS", last) is None


def test_assembly_returns_none_unless_all_parts_of_the_change_are_there() -> None:
    parts, last = parts_of_large()
    assembly = Assembly()
    with pytest.raises(Busy, match="missing"):
        assembly.keep("INPS", parts[1])
    assembly.keep("INPS", parts[0])
    assert assembly.whole("INPS", last) is None
    for part in parts:
        assembly.keep("CoC", part)
    assert assembly.whole("INPS", last) is None
    for part in parts:
        assembly.keep("INPS", replace(part, version=9))
    assert assembly.whole("INPS", last) is None


def test_parts_of_a_newer_change_replace_those_of_an_older_one() -> None:
    parts, last = parts_of_large()
    assembly = Assembly()
    assembly.keep("INPS", ViewPart(3, 7, "c", 0, ("old",), ()))
    for part in parts:
        assembly.keep("INPS", part)
    assert assembly.whole("INPS", last) == LARGE


def test_largest_federation_document_can_be_fetched() -> None:
    sent = Envelope("INPS", 1, (), FetchDocument())
    answer = Envelope("CoC", 2, (), Document(b"x" * MAX_FEDERATION_BYTES))
    call = Endpoint(AGENCIES).decode(Port.PEER, HEADERS, write_call(sent)[0])
    reply = Endpoint(AGENCIES).reply(call, answer)
    assert read_reply(sent, reply.status, reply.body) == answer
