"""The direct writer and reader agree with the XML parser, for valid and invalid events."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import Key
from qns.cbr.event import Event
from qns.d2q.event_text import MOST_PLANS, OFTEN, Form, read_text
from qns.d2q.event_xml import read_event, read_tree, write_event
from qns.d2q.lexical import write_number
from qns.d2q.schema import Schema
from qns.d2q.shipped import WEATHER
from qns.errors import QnsError
from tests.d2q.event_tree import write_tree
from tests.d2q.test_event_xml import any_events
from tests.strategies import ALL_TYPES, events

WIND = Event(
    "e1",
    "Report/Wind",
    "Met01",
    {
        "Report.Region": "north",
        "Report/Wind.Speed": 30,
        "Report/Wind.Speed.accuracy": 500_000_000_000_000,
        "Report/Wind.Speed.currency": 200_000_000_000_000,
    },
    {"Report/Wind.Speed.accuracy": 700_000_000_000_000},
    published_us=1_700_000_000_000_000,
    available_s=60,
)
SPLICES = [
    *("<", ">", "&", "&amp;", "&#13;", "&#x41;", "]]>", "<!-- -->", "<?p?>", "\r", "\t", "\x00"),
    *("\n", " ", "\ufffe", "é", "p1", "p2", "0.5", "1e-1", "high", "true", "INF", "0", '"', "'"),
    *('<property id="p9" name="Speed">3</property>', "<data/>", "</data>", 'absent="true"', "x"),
    *('  <quality dimension="accuracy">', "  </quality>", "xmlns:a='b'", "NaN", "-", "+", "Z"),
]


@given(any_events())
def test_direct_writer_gives_the_same_bytes_as_the_tree_writer(event: Event) -> None:
    assert write_event(event, ALL_TYPES) == write_tree(event, ALL_TYPES)


@given(any_events())
def test_direct_reader_gives_the_same_event_as_the_parser(event: Event) -> None:
    written = write_event(event, ALL_TYPES)
    assert read_event(written, ALL_TYPES) == read_tree(written, ALL_TYPES)


@given(events())
def test_ordinary_events_are_read_without_the_parser(event: Event) -> None:
    if any("\\" in repr(value) or set("<>&") & set(str(value)) for value in event.values.values()):
        return
    assert read_text(write_event(event, ALL_TYPES), ALL_TYPES) is not None


def outcome(read: Callable[[bytes, Schema], Event], data: bytes) -> Event | str:
    try:
        return read(data, WEATHER)
    except QnsError as problem:
        return f"{type(problem).__name__}: {problem}"


def checked_outcome(data: bytes) -> Event | str:
    """Returns the parser's outcome, after checking that the direct reader does not differ."""
    expected = outcome(read_tree, data)
    assert outcome(read_event, data) == expected
    return expected


def read_until_pattern_exists(event: Event) -> None:
    """Reads the event until its frame has a pattern."""
    for _ in range(2 * OFTEN):
        assert read_text(write_event(event, WEATHER), WEATHER) == event
    latest = Form.of(WEATHER, event.data_class).latest
    assert latest is not None
    assert latest.find is not None


@given(st.data())
def test_both_readers_agree_on_mutated_bytes(data: st.DataObject) -> None:
    text = write_event(WIND, WEATHER).decode()
    read_until_pattern_exists(WIND)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        upto = data.draw(st.integers(at, min(len(text), at + 12)))
        text = text[:at] + data.draw(st.sampled_from(["", *SPLICES])) + text[upto:]
    checked_outcome(text.encode())


def test_both_readers_agree_on_each_small_change() -> None:
    text = write_event(WIND, WEATHER).decode()
    read_until_pattern_exists(WIND)
    chance = random.Random(7)
    outcomes = {str: 0, Event: 0}
    short = 0
    for at in range(len(text)):
        for splice in chance.sample(SPLICES, 6):
            for changed in (text[:at] + splice + text[at:], text[:at] + splice + text[at + 1 :]):
                outcomes[type(checked_outcome(changed.encode()))] += 1
                short += read_text(changed.encode(), WEATHER) is not None
    lines = text.split("\n")
    for first in range(len(lines)):
        for second in range(len(lines)):
            swapped = list(lines)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            doubled = [*lines[:first], lines[second], *lines[first:]]
            for changed_lines in (swapped, doubled, lines[:first] + lines[second:]):
                outcomes[type(checked_outcome("\n".join(changed_lines).encode()))] += 1
    assert min(outcomes.values()) > 400, outcomes
    assert short > 100


def test_direct_reader_leaves_invalid_utf8_to_the_parser() -> None:
    assert isinstance(
        checked_outcome(write_event(WIND, WEATHER).replace(b"north", b"n\xffrth")), str
    )


@pytest.mark.parametrize(
    "time",
    [
        *("2023-11-14T22:13:20Z", "2023-11-14T22:13:20.000001Z", "1000-01-01T00:00:00Z"),
        *("2023-02-29T22:13:20Z", "2023-13-14T22:13:20Z", "2023-11-14T24:00:00Z"),
        *("2023-11-14T23:59:60Z", "2023-11-14T22:13:20.5Z", "9999-12-31T23:59:59.999999Z"),
        *("0999-12-31T00:00:00Z", "2023-11-14T22:13:20+01:00", "2023-11-14 22:13:20Z", "٢٠٢٣"),
    ],
)
def test_both_readers_agree_on_times(time: str) -> None:
    text = write_event(WIND, WEATHER).decode()
    assert "2023-11-14T22:13:20Z" in text
    checked_outcome(text.replace("2023-11-14T22:13:20Z", time).encode())


@given(
    st.one_of(
        st.decimals(allow_nan=False, allow_infinity=False).map(str),
        st.floats(allow_nan=False, allow_infinity=False).map(write_number),
        st.from_regex(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", fullmatch=True),
        st.text("0123456789.-+eE ", max_size=18),
    )
)
def test_both_readers_agree_on_numbers(number: str) -> None:
    before, name, after = write_event(WIND, WEATHER).decode().partition('"Report/Wind.Speed">')
    checked_outcome(f"{before}{name}{number}{after[after.index('<') :]}".encode())


def test_alternating_events_of_two_frames_are_both_read() -> None:
    other = WIND._replace(id="e2", values={"Report/Wind.Speed": 7}, previous={})
    for event in (WIND, other) * OFTEN * 2:
        assert read_text(write_event(event, WEATHER), WEATHER) == event


def test_number_of_cached_frames_is_bounded() -> None:
    form = Form.of(WEATHER, "Report/Wind")
    qualities = sorted(form.qualities)
    data: dict[str, Key] = {"Report/Wind.Speed": 30, "Report/Wind.Direction": 5}
    for number in range(1, 2**9):
        told_ones = [name for nth, name in enumerate(qualities) if number >> nth & 1]
        quality = dict.fromkeys(told_ones, 500_000_000_000_000)
        previous = {qualities[0]: 0} if number >> len(qualities) else {}
        event = Event("e1", "Report/Wind", "Met01", {**data, **quality}, previous)
        assert read_text(write_event(event, WEATHER), WEATHER) == event
        assert len(form.plans) <= MOST_PLANS
    assert MOST_PLANS < 2**9
