"""Events to XML and back."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import DATETIME, QUALITY, STRING, Key
from qns.cbr.event import Event
from qns.d2q.event_xml import read_event, write_event
from qns.d2q.shipped import AGENCIES
from qns.errors import QnsError
from tests.d2q.test_document import texts
from tests.strategies import ALL_TYPES, events, keys

HOLDER = "Enterprise/Holder"
E1 = Event(
    "e1",
    HOLDER,
    "CoC",
    {
        f"{HOLDER}.Name": "M. Mecalla",
        f"{HOLDER}.FiscalCode": "MCLMSM73H17H501F",
        f"{HOLDER}.Name.accuracy": QUALITY.key(0.3),
    },
    {f"{HOLDER}.Name.accuracy": QUALITY.key(0.9)},
    published_us=1_700_000_000_123_456,
    available_s=3600,
)
WRITTEN = write_event(E1, AGENCIES)


FIELDS = ("id", "data_class", "source", "values", "previous", "published_us", "available_s")


def replace(event: Event, **changes: Any) -> Event:
    return Event(**{name: getattr(event, name) for name in FIELDS} | changes)


@st.composite
def any_events(draw: st.DrawFn) -> Event:
    """Draws events with all strings that XML can carry, publication times and availabilities."""
    event = draw(events())
    values: dict[str, Key] = dict(event.values)
    for attribute in ALL_TYPES.attributes(event.data_class):
        if attribute.domain is STRING and attribute.name in values:
            values[attribute.name] = draw(texts() | keys(STRING))
    return replace(
        event,
        id=draw(texts().filter(bool)),
        source=draw(texts().filter(lambda text: text != "" and text == text.strip())),
        values=values,
        published_us=draw(st.none() | st.integers(DATETIME.lo, DATETIME.hi)),
        available_s=draw(st.floats(0, allow_nan=False) | st.integers(0, 10**9)),
    )


@given(any_events())
def test_written_event_is_read_back_unchanged(event: Event) -> None:
    written = write_event(event, ALL_TYPES)
    assert read_event(written, ALL_TYPES) == event
    assert read_event(written.decode(), ALL_TYPES) == event


@given(any_events())
def test_equal_events_give_equal_bytes_in_any_order_of_values(event: Event) -> None:
    turned = replace(
        event,
        values=dict(reversed(event.values.items())),
        previous=dict(reversed(event.previous.items())),
    )
    assert write_event(turned, ALL_TYPES) == write_event(event, ALL_TYPES)


def test_white_space_is_kept_only_in_strings() -> None:
    event = replace(E1, values={f"{HOLDER}.Name": " a\r\nb\t "}, previous={})
    assert read_event(write_event(event, AGENCIES), AGENCIES) == event
    spaced = WRITTEN.replace(b">0.3<", b">\n  0.3\t<")
    assert read_event(spaced, AGENCIES) == E1


def test_names_are_resolved_and_labels_are_accepted() -> None:
    edited = WRITTEN.replace(b'"Enterprise/Holder.Name"', b'"holder.NAME"')
    edited = edited.replace(b">0.3<", b">Low<").replace(
        b'"Enterprise/Holder"', b'"enterprise/HOLDER"'
    )
    assert read_event(edited, AGENCIES) == E1


def test_absent_value_with_quality_differs_from_the_empty_string() -> None:
    quality = {f"{HOLDER}.Name.currency": 0}
    for values in (quality, quality | {f"{HOLDER}.Name": ""}):
        event = replace(E1, values=values)
        assert read_event(write_event(event, AGENCIES), AGENCIES).values == values


def test_comments_and_instructions_are_ignored_and_cdata_is_read() -> None:
    edited = WRITTEN.replace(b"M. Mecalla", b"M.<!-- x --> <?x y?><![CDATA[Mecalla]]>")
    assert read_event(edited, AGENCIES) == E1


def test_availability_is_a_number_of_seconds_or_infinite() -> None:
    for text, seconds in ((b"INF", inf), (b"0", 0), (b"1e3", 1000), (b".5", 0.5)):
        edited = WRITTEN.replace(b'available="3600"', b'available="' + text + b'"')
        assert read_event(edited, AGENCIES).available_s == seconds
    assert read_event(WRITTEN.replace(b' available="3600"', b""), AGENCIES).available_s == 0
    assert b"available" not in write_event(replace(E1, available_s=0), AGENCIES)


REFUSED = [
    ("unknown class", b'class="Enterprise/', b'class="Enterprize/', "did you mean Enterprise/H", 2),
    ("no class", b' class="Enterprise/Holder"', b"", "'class' is required", 2),
    ("empty id", b'id="e1"', b'id=""', "minLength", 2),
    ("no id", b' id="e1"', b"", "'id' is required", 2),
    ("empty source", b'"CoC"', b'""', "minLength", 2),
    ("blanks around a source", b'"CoC"', b'"CoC "', "'CoC ' is not an organisation's name", 2),
    ("unknown attribute", b'id="e1"', b'id="e1" di="e1"', "'di' is not allowed", 2),
    ("published without a zone", b"56Z", b"56", "has no zone", 2),
    ("published too finely", b"56Z", b"567Z", "finer than a microsecond", 2),
    ("published never", b"2023-11", b"2023-13", "not a valid value", 2),
    ("available for less than nothing", b'"3600"', b'"-1"', "less than the minimum", 2),
    ("available for no number", b'"3600"', b'"NaN"', "available for 'NaN'", 2),
    ("available -INF", b'"3600"', b'"-INF"', "less than the minimum", 2),
    ("available too long", b'"3600"', b'"1e999"', "available for '1e999'", 2),
    ("no data", b"data>", b"dat>", "Expected is ( data )", 3),
    ("text among the data", b"<data>", b"<data>text", "Character content", 3),
    ("unknown property", b"Holder.Name", b"Holder.Nmae", "did you mean Enterprise/Holder.Name", 4),
    ("property of no lineage", b"Enterprise/Holder.Name", b"Region", "no property 'Region'", 4),
    ("a dimension as a property", b'Name"', b'Name.accuracy"', "among the data", 4),
    ("property twice", b"Holder.FiscalCode", b"holder.name", "Holder.Name is given twice", 5),
    ("id twice", b'id="p2"', b'id="p1"', "'p1' is no ID: it is given twice", 5),
    ("id that is no name", b'id="p2"', b'id="2"', "'2' is no ID", 5),
    ("absent, with a value", b'id="p2"', b'id="p2" absent="true"', "absent and has a value", 5),
    ("absent maybe", b'id="p2"', b'id="p2" absent="maybe"', "'xs:boolean'", 5),
    ("element in a value", b"M. Mecalla", b"<b/>", "Element content is not allowed", 4),
    ("unknown dimension", b'"accuracy"', b'"acuracy"', "{'accuracy', 'completeness'", 7),
    ("dangling reference", b'of="p1">0.3', b'of="p3">0.3', "has the id 'p3'", 8),
    (
        "quality given twice",
        b'"p1">0.3</value>',
        b'"p1">0.3</value><value of="p1">0.3</value>',
        "tw",
        8,
    ),
    ("quality 1.2", b">0.3<", b">1.2<", "quality value 1.2 is outside [0, 1]", 8),
    ("quality -0.1", b">0.3<", b">-0.1<", "outside [0, 1]", 8),
    ("quality NaN", b">0.3<", b">NaN<", "unknown label 'NaN'", 8),
    ("quality INF", b">0.3<", b">INF<", "unknown label 'INF'", 8),
    ("no quality", b">0.3<", b"><", "is not a number from 0 to 1", 8),
    ("unknown label", b">0.3<", b">lwo<", "did you mean low?", 8),
    ("previous 1.2", b">0.9<", b">1.2<", "outside [0, 1]", 11),
]


@pytest.mark.parametrize(
    ("old", "new", "said", "line"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_invalid_event_is_rejected_with_the_line(
    old: bytes, new: bytes, said: str, line: int
) -> None:
    assert old in WRITTEN
    with pytest.raises(QnsError) as caught:
        read_event(WRITTEN.replace(old, new), AGENCIES)
    assert said in str(caught.value)
    assert (caught.value.line, caught.value.place) == (line, f"line {line}")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("Count", "1.5", "is not an integer"),
        ("Count", "9007199254740993", "within ±2^53"),
        ("Count", "1" * 500, "is not an integer"),
        ("Count", "", "is not an integer"),
        ("Since", "2024-02-30", "is not a date"),
        ("Since", "2024-02-28T12:00:00Z", "is not a date"),
        ("Weight", "1.0000000000000001", "15 significant digits"),
        ("Weight", "NaN", "is not a decimal"),
        ("Weight", "1e999", "is too large, or no number"),
        ("Broken", "yes", "true or false"),
        ("Checked", "2024-01-31T12:00:00", "has no zone"),
        ("Checked", "2024-01-31T24:00:00Z", "is not a dateTime"),
        ("Part.Code", "x" * 70_000, "a string of 70,000 characters"),
    ],
)
def test_value_of_the_wrong_type_is_rejected(name: str, text: str, said: str) -> None:
    event = (
        '<event xmlns="urn:qns:d2q:1" id="e" class="Thing/Part/Screw" source="INPS">\n'
        f'<data><property name="{name}">{text}</property></data></event>'
    )
    with pytest.raises(QnsError) as caught:
        read_event(event, ALL_TYPES)
    assert said in str(caught.value)
    assert caught.value.line == 2
    assert len(str(caught.value)) < 400


def test_quality_of_an_enclosing_class_is_rejected() -> None:
    edited = WRITTEN.replace(b"Enterprise/Holder.Name", b"Enterprise.Code")
    with pytest.raises(QnsError, match=r"line 8: .* is a quality of the enclosing class"):
        read_event(edited, AGENCIES)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data_class": "Holder"}, "unknown class"),
        ({"id": ""}, "is empty"),
        ({"source": "\0"}, "U+0000"),
        ({"source": " CoC"}, "' CoC' is not an organisation's name"),
        ({"values": {"Name": "x"}}, "write Enterprise/Holder.Name"),
        ({"values": {"Nmae": "x"}}, "no property 'Nmae'"),
        ({"values": {f"{HOLDER}.Name": 3}}, "3 is not a string"),
        ({"values": {"Enterprise.Code.accuracy": 3}}, "quality of the enclosing class"),
        ({"values": {f"{HOLDER}.Name.accuracy": -1}}, "no key of the type quality"),
        ({"previous": {f"{HOLDER}.Name": 3}}, "names no quality dimension"),
        ({"published_us": DATETIME.hi + 1}, "no key of the type dateTime"),
        ({"available_s": -1}, "available for -1 seconds"),
        ({"available_s": nan}, "available for nan seconds"),
    ],
)
def test_event_that_could_not_be_read_again_is_not_written(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(QnsError) as caught:
        write_event(replace(E1, **changes), AGENCIES)
    assert said in str(caught.value)
