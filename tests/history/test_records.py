"""Tests of records: written records are read again, invalid lines are rejected with a remedy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import QnsError
from qns.history.records import (
    FIELDS,
    Record,
    checked,
    new_record,
    read_record,
    read_records,
    write_record,
)

NAMES = st.text(st.characters(codec="utf-8"), max_size=5)
VALUES: dict[type, st.SearchStrategy[Any]] = {
    str: NAMES,
    int: st.integers(0, 9),
    bool: st.booleans(),
    float: st.floats(0, 1e9),
    list: st.lists(NAMES, max_size=2),
    dict: st.dictionaries(NAMES, NAMES, max_size=2),
}


@st.composite
def any_record(draw: st.DrawFn) -> Record:
    do = draw(st.sampled_from(list(FIELDS)))
    fields = {name: draw(VALUES[kind]) for name, kind in FIELDS[do].items()}
    if do == "skip":
        fields["last"] += fields["first"]
    return {"t": draw(st.floats(0, 1e9)), "do": do, **fields}


@given(st.lists(any_record(), max_size=5))
def test_written_records_are_read_again(records: list[Record]) -> None:
    lines = "".join(map(write_record, records)).split("\n")
    assert lines.pop() == ""
    assert list(read_records(lines)) == records


@given(any_record(), st.data())
def test_record_without_one_of_its_fields_is_rejected(record: Record, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(record)))
    with pytest.raises(QnsError, match=f"'{name}'"):
        checked({key: value for key, value in record.items() if key != name})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not JSON: Expecting property name.* (one record on one line)"),
        ("[" * 100_000, "not JSON"),
        ('{"t": NaN, "do": "calm"}', "not JSON: NaN"),
        ("[]", "a value of type list is not a record"),
        ('{"t": 1}', "'do' is missing (one of schema, join"),
        ('{"t": 1, "do": 3}', "'do' is 3"),
        ('{"t": 1, "do": "ntyf", "org": "INPS"}', "unknown record 'ntyf' (did you mean ntfy?)"),
        ('{"do": "calm"}', "calm has no 't' (give a number of seconds, as in 12.5)"),
        ('{"t": "1", "do": "calm"}', "'t' of calm is '1', not a number of seconds"),
        ('{"t": 1e999, "do": "calm"}', "'t' of calm is inf"),
        ('{"t": 1, "do": "join", "org": "INPS"}', "join has no 'joined' (give a whole number"),
        ('{"t": 1, "do": "join", "org": "INPS", "joined": true}', "'joined' of join is True"),
        ('{"t": 1, "do": "join", "org": 1, "joined": 1}', "'org' of join is 1, not a string"),
        (
            '{"t": 1, "do": "stable", "org": "a", "sub": "b", "producer": "c", "joined": 1, '
            '"epoch": 0, "classes": [1]}',
            "'classes' of stable is a value of type list, not a list of strings",
        ),
        (
            '{"t": 1, "do": "skip", "org": "a", "source": "b", "joined": 1, "own": 1, '
            '"epoch": 0, "first": 3, "last": 2, "why": ""}',
            "a skip from 3 to 2 (first is at most last)",
        ),
        ('{"t": 1, "do": "restore", "org": "a", "since": 1e999}', "'since' of restore is inf"),
        (
            '{"t": 1, "do": "take", "org": "a", "source": "b", "joined": 1, "own": true, '
            '"epoch": 0, "number": 1, "event": "e"}',
            "'own' of take is True, not a whole number (give it as in 3)",
        ),
        (
            '{"t": 1, "do": "start", "org": "a", "epoch": 1, "restored": 0}',
            "'restored' of start is 0, not true or false (give it as in true)",
        ),
        (
            '{"t": 1, "do": "start", "org": "a", "epoch": false, "restored": false}',
            "'epoch' of start is False, not a whole number",
        ),
        (
            '{"t": 1, "do": "start", "org": "a", "epoch": 1}',
            "start has no 'restored' (give true or false, as in true)",
        ),
        ('{"t": 1, "do": "lull"}', "lull has no 'absent' (give a list of strings"),
        ('{"t": 1, "do": "lull", "absent": "a"}', "'absent' of lull is 'a', not a list of strings"),
        ('{"t": 1, "do": "lull", "absent": [true]}', "'absent' of lull is a value of type list"),
        (
            '{"t": 1, "do": "host", "org": "a", "classes": [null]}',
            "'classes' of host is a value of type list, not a list of strings",
        ),
    ],
)
def test_invalid_line_is_rejected_with_its_number_and_a_remedy(line: str, words: str) -> None:
    reading = read_records(['{"t": 0, "do": "calm"}', "", line])
    assert next(reading)["do"] == "calm"
    with pytest.raises(QnsError) as caught:
        next(reading)
    message = str(caught.value)
    assert message.startswith("line 3: ")
    for part in words.split(".*"):
        assert part in message
    assert caught.value.remedy


def test_reading_accepts_times_that_go_backwards_and_unknown_fields() -> None:
    lines = ['{"t": 5, "do": "calm"}', b'{"t": 4.5, "do": "calm", "note": "x"}']
    assert [record["t"] for record in read_records(lines)] == [5, 4.5]


def test_record_is_written_on_one_line_whatever_it_contains() -> None:
    record = new_record("sub", 1, "INPS", sub="U\n1", text="Thing", group="né")
    line = write_record(record)
    assert line.count("\n") == 1
    assert "né" in line
    assert read_record(line) == json.loads(line) == record
