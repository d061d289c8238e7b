"""Every message of the contract can be written, is valid, and reads back equal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from qns.errors import QnsError, ValueRefused
from qns.iil.requests import PullDeliveries, Subscribe
from qns.soap.local_client import write_local
from qns.soap.operations import INVALID, OPERATION_CODECS, FaultDetail
from qns.soap.shapes_local import LocalCall
from qns.soap.validation import validate
from tests.soap.messages import MESSAGES, messages

ORIGIN = "<origin><organisation>INPS</organisation><document>1</document></origin>"


# Each message gets a tenth of the usual examples: there are 35 messages with the same parts.
@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=max(20, settings.default.max_examples // 10))
@given(data=st.data())
def test_written_message_is_valid_and_reads_back_equal(name: str, data: st.DataObject) -> None:
    message = MESSAGES[name]
    value = data.draw(messages(message.shape))
    element = etree.fromstring(message.write(value).encode())
    validate(element)
    assert message.read(element) == value


def test_reserved_fields_are_accepted_and_ignored() -> None:
    gossip = OPERATION_CODECS["gossip"].request
    element = etree.fromstring(
        '<gossip xmlns="urn:qns:peer:1"><origin><organisation>INPS</organisation>'
        "<document>1</document><signature>c2lnbmVk</signature></origin></gossip>"
    )
    validate(element)
    assert gossip.read(element).sender == "INPS"


def test_writer_rejects_a_name_that_xml_cannot_carry() -> None:
    with pytest.raises(ValueRefused, match="U\\+0000"):
        write_local(Subscribe("me", "Thing", id="a\0b"))


def test_writer_replaces_characters_of_prose_that_xml_cannot_carry() -> None:
    element = etree.fromstring(INVALID.write(FaultDetail("a\0b\ud800 <c>")))
    assert INVALID.read(element).problem == "a\ufffdb\ufffd <c>"


def test_writer_shortens_a_long_problem_of_a_fault() -> None:
    element = etree.fromstring(INVALID.write(FaultDetail("&" * 500_000)))
    assert INVALID.read(element).problem == "&" * 999 + "…"


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_writer_rejects_a_negative_or_undefined_duration(seconds: float) -> None:
    with pytest.raises(ValueRefused, match="seconds"):
        write_local(Subscribe("me", "Thing", lifetime_s=seconds))


@pytest.mark.parametrize("number", [-1, 2**63])
def test_writer_rejects_a_number_out_of_range(number: int) -> None:
    with pytest.raises(ValueRefused, match="number"):
        write_local(PullDeliveries("me", "s1", after=number))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("renew", "<owner/><id/><lifetime>NaN</lifetime>", "NaN seconds"),
        ("acknowledge", f"<owner/><id/><upto>{'0' * 5_000}1</upto>", "cannot be read"),
        ("fetchDocumentResponse", f"{ORIGIN}<xml>YQ==é</xml>", "cannot be read"),
    ],
)
def test_reader_rejects_bad_values_that_libxml2_accepts(
    name: str, content: str, problem: str
) -> None:
    element = etree.fromstring(f"<{name} xmlns='urn:qns:peer:1'>{content}</{name}>")
    validate(element)
    with pytest.raises(ValueRefused, match=problem):
        MESSAGES[name].read(element)


def test_writer_reduces_a_long_wait_to_the_longest_allowed() -> None:
    pull = OPERATION_CODECS["pull"].request
    element = etree.fromstring(pull.write(LocalCall("", PullDeliveries("me", "s1"), 3_600.0)))
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
def test_validation_error_names_the_element_and_its_line(wrong: str, named: str) -> None:
    text = f"<pull xmlns='urn:qns:peer:1'>\n<owner/><id/><after>1</after>\n{wrong}</pull>"
    with pytest.raises(QnsError, match=named) as refused:
        validate(etree.fromstring(text))
    assert refused.value.line == 3
