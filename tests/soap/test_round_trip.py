"""What is written is read back, for every message of the contract."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from qns.errors import QnsError, ValueRefused
from qns.iil.requests import Read, Subscribe
from qns.soap.local_client import write_local
from qns.soap.operations import EXCHANGES, INVALID, FaultDetail
from qns.soap.shapes_local import LocalCall
from qns.soap.validation import validate
from tests.soap.messages import MESSAGES, messages

ORIGIN = "<origin><organisation>INPS</organisation><document>1</document></origin>"


# A tenth of the usual number for each: there are 35 messages, made of the same parts.
@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=max(20, settings.default.max_examples // 10))
@given(data=st.data())
def test_every_message_is_valid_and_reads_back(name: str, data: st.DataObject) -> None:
    message = MESSAGES[name]
    told = data.draw(messages(message.shape))
    element = etree.fromstring(message.write(told).encode())
    validate(element)
    assert message.read(element) == told


def test_reserved_fields_are_accepted_and_not_looked_at() -> None:
    gossip = EXCHANGES["gossip"].request
    element = etree.fromstring(
        '<gossip xmlns="urn:qns:peer:1"><origin><organisation>INPS</organisation>'
        "<document>1</document><signature>c2lnbmVk</signature></origin></gossip>"
    )
    validate(element)
    assert gossip.read(element).sender == "INPS"


def test_a_name_that_xml_cannot_carry_is_refused_when_it_is_written() -> None:
    with pytest.raises(ValueRefused, match="U\\+0000"):
        write_local(Subscribe("me", "Thing", id="a\0b"))


def test_in_words_for_people_what_xml_cannot_carry_is_replaced() -> None:
    element = etree.fromstring(INVALID.write(FaultDetail("a\0b\ud800 <c>")))
    assert INVALID.read(element).problem == "a\ufffdb\ufffd <c>"


def test_words_for_people_are_cut_where_nobody_would_read_on() -> None:
    element = etree.fromstring(INVALID.write(FaultDetail("&" * 500_000)))
    assert INVALID.read(element).problem == "&" * 999 + "…"


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_time_that_is_none_is_refused_when_it_is_written(seconds: float) -> None:
    with pytest.raises(ValueRefused, match="seconds"):
        write_local(Subscribe("me", "Thing", lifetime_s=seconds))


@pytest.mark.parametrize("number", [-1, 2**63])
def test_a_number_that_the_wire_cannot_carry_is_refused(number: int) -> None:
    with pytest.raises(ValueRefused, match="number"):
        write_local(Read("me", "s1", after=number))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("renew", "<owner/><id/><lifetime>NaN</lifetime>", "NaN seconds"),
        ("acknowledge", f"<owner/><id/><upto>{'0' * 5_000}1</upto>", "cannot be read"),
        ("fetchDocumentResponse", f"{ORIGIN}<xml>YQ==é</xml>", "cannot be read"),
    ],
)
def test_what_libxml2_lets_pass_is_refused_by_the_reader(
    name: str, content: str, problem: str
) -> None:
    element = etree.fromstring(f"<{name} xmlns='urn:qns:peer:1'>{content}</{name}>")
    validate(element)
    with pytest.raises(ValueRefused, match=problem):
        MESSAGES[name].read(element)


def test_a_long_wait_is_sent_as_the_longest_allowed() -> None:
    pull = EXCHANGES["pull"].request
    element = etree.fromstring(pull.write(LocalCall("", Read("me", "s1"), 3_600.0)))
    validate(element)
    assert pull.read(element).wait_s == 60.0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("<wait>NaN</wait>", "'wait'"),
        ("<wait>-1</wait>", "'wait'"),
        ("<wait>61</wait>", "'wait'"),
        ("<limit>9223372036854775808</limit>", "'limit'"),
        ("<limit>-1</limit>", "'limit'"),
        ("<limit>1.0</limit>", "'limit'"),
        ("<colour>red</colour>", "'colour'"),
    ],
)
def test_what_the_schema_refuses_is_named_with_its_line(wrong: str, named: str) -> None:
    text = f"<pull xmlns='urn:qns:peer:1'>\n<owner/><id/><after>1</after>\n{wrong}</pull>"
    with pytest.raises(QnsError, match=named) as refused:
        validate(etree.fromstring(text))
    assert refused.value.line == 3
