"""The Interpreter reads a subscription in each of its three spellings (semantics §3)."""

from __future__ import annotations

import pytest

from qns.d2q.language import parse_subscription
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.d2q.subscription_xml import write_subscription
from qns.errors import DocumentError, LanguageError
from qns.iil.interpreter import interpret
from tests.iil.single_peer import SinglePeer

READABLE = 'Report/Wind from Met01, Met03 where Speed > 10 and Region = "north"'
THESIS = '<Report/Wind : {Met01, Met03}, Speed > 10 and Region = "north", ⊥>'
WANTED = parse_subscription(READABLE, WEATHER)
XML = write_subscription(WANTED, WEATHER).decode()

SPELLINGS = {
    "readable": READABLE,
    "thesis": THESIS,
    "XML": XML,
    "XML after blanks": f"\n  {XML[XML.index('<subscription') :]}",
    "XML without declaration": XML[XML.index("<subscription") :],
    "readable on two lines": READABLE.replace(" where", "\n where"),
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_has_the_same_normal_form(text: str) -> None:
    assert interpret(text, WEATHER) == WANTED


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_is_recovered_after_a_crash(peer: SinglePeer, text: str) -> None:
    peer.subscribe("s", text)
    peer.crash()
    peer.publish("calm", kind="Report/Wind", data={"Speed": 3, "Region": "north"})
    peer.publish("storm", kind="Report/Wind", data={"Speed": 30, "Region": "north"})
    assert peer.events("s") == ["storm"]
    assert [row.text for row in peer.rows()["subscriptions"]] == [text]


def test_error_points_to_the_place_in_the_original_text() -> None:
    with pytest.raises(LanguageError) as error:
        interpret("Enterprise where Code ~ 3", AGENCIES)
    assert error.value.column == 23
    with pytest.raises(DocumentError) as in_xml:
        interpret('<subscription xmlns="urn:qns:d2q:1"\n  klass="Enterprise"/>', AGENCIES)
    assert in_xml.value.line is not None


WIND_XML = write_subscription(parse_subscription("Report/Wind", WEATHER), WEATHER).decode()
BARE = WIND_XML[WIND_XML.index("<subscription") :]

XML_VARIANTS = {
    "another prefix": BARE.replace("<subscription xmlns=", "<q:subscription xmlns:q="),
    "a comment first": f"<!-- wind -->{BARE}",
    "a byte order mark": f"\ufeff{WIND_XML}",
}


@pytest.mark.parametrize("text", XML_VARIANTS.values(), ids=XML_VARIANTS)
def test_xml_with_a_prefix_comment_or_byte_order_mark_is_interpreted(text: str) -> None:
    assert interpret(text, WEATHER) == parse_subscription("Report/Wind", WEATHER)


def test_history_of_a_subscription_in_xml_has_no_violations() -> None:
    peer = SinglePeer()
    peer.subscribe("s", WIND_XML)
    peer.publish("e1", kind="Report/Wind")
    assert peer.events("s") == ["e1"]
    assert peer.violations() == []
