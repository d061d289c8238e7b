"""The interpreter takes a subscription in any of its three spellings (semantics §3)."""

from __future__ import annotations

import pytest

from qns.d2q.language import parse_subscription
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.d2q.subscription_xml import write_subscription
from qns.errors import DocumentError, LanguageError
from qns.iil.interpreter import interpret
from tests.iil.office import Office

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
    "readable, on lines of its own": READABLE.replace(" where", "\n where"),
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_means_the_same(text: str) -> None:
    assert interpret(text, WEATHER) == WANTED


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_is_understood_again_after_a_crash(office: Office, text: str) -> None:
    office.subscribe("s", text)
    office.crash()
    office.publish("calm", kind="Report/Wind", data={"Speed": 3, "Region": "north"})
    office.publish("storm", kind="Report/Wind", data={"Speed": 30, "Region": "north"})
    assert office.events("s") == ["storm"]
    assert [row.text for row in office.rows()["subscriptions"]] == [text]


def test_an_error_points_into_the_text_as_it_was_written() -> None:
    with pytest.raises(LanguageError) as error:
        interpret("Enterprise where Code ~ 3", AGENCIES)
    assert error.value.column == 23
    with pytest.raises(DocumentError) as in_xml:
        interpret('<subscription xmlns="urn:qns:d2q:1"\n  klass="Enterprise"/>', AGENCIES)
    assert in_xml.value.line is not None
