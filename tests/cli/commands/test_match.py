"""Tests of `qns match`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from qns.cbr import oracle
from qns.cli.commands.match import FEW_EVENTS, FEW_SUBSCRIPTIONS
from qns.d2q.event_json import EventReader
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import WEATHER
from qns.d2q.subscription_xml import write_subscriptions
from tests.cli.conftest import Cli, Outcome

Write = Callable[[str, str | bytes], Path]
Match = Callable[..., Outcome]


@pytest.fixture
def match(cli: Cli, file: Write) -> Match:
    """Runs `qns match` with the schema weather: `match(subscriptions, events)`."""

    def run(subscriptions: str | bytes, events: str | bytes, *options: str) -> Outcome:
        subs, evs = file("subs", subscriptions), file("events", events)
        return cli(
            *("match", "--schema", "weather", "--subscriptions", subs, "--events", evs, *options)
        )

    return run


def event(id: object, **data: object) -> str:
    fields = {"id": id, "class": "Report/Wind", "source": "Met03", "data": data}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def test_ids_are_printed_unchanged_and_sorted_as_strings(match: Match) -> None:
    outcome = match(
        "10\tReport\n9\tReport/Wind\nè\tReport\n#1\tReport\n a \tReport\n",
        event(7) + event("7") + event("sì\n") + event(2**64 - 1) + event(-1),
    )
    assert outcome.status == 0
    assert [line["event"] for line in outcome.json_lines] == [7, "7", "sì\n", 2**64 - 1, -1]
    assert all(line["matches"] == [" a ", "#1", "10", "9", "è"] for line in outcome.json_lines)
    assert not outcome.err


def test_event_without_matches_has_a_line(match: Match) -> None:
    outcome = match("a\tReport/Pressure\n", event(1))
    assert outcome.out == '{"event":1,"matches":[]}\n'


def test_blank_lines_comments_and_all_notations_are_read(match: Match) -> None:
    xml = '<subscription xmlns="urn:qns:d2q:1" class="Report/Wind"/>'
    outcome = match(
        "# comment without a tab\r\n\r\n   \n"
        f"thesis\t<Report/Wind, Speed > 3>\r\nangle\t⟨Report/Wind : {{Met03}}, ⊥, ⊥⟩\nxml\t{xml}\n"
        "prefixed\t"
        '<q:subscription xmlns:q="urn:qns:d2q:1" class="Report/Wind"/>\nplain\tonly report/wind',
        "\n" + event(1, Speed=4) + "\r\n",
    )
    assert outcome.json_lines == [
        {"event": 1, "matches": ["angle", "plain", "prefixed", "thesis", "xml"]}
    ]


def test_subscriptions_are_read_from_an_xml_list(match: Match) -> None:
    wanted = [
        ("a", parse_subscription("Report", WEATHER)),
        ("b", parse_subscription("only Report", WEATHER)),
    ]
    outcome = match(write_subscriptions(wanted, WEATHER), event(1))
    assert outcome.out == '{"event":1,"matches":["a"]}\n'
    wrong = match(
        write_subscriptions(wanted, WEATHER).replace(b'"Report"', b'"Repot"', 1), event(1)
    )
    assert wrong.status == 2
    assert "unknown class 'Repot'" in wrong.err


def test_nothing_is_matched_if_any_subscription_is_wrong(match: Match) -> None:
    outcome = match(
        "a\tReport\nb\tRepot\nc\n d\tReport/Wind where Speed > NaN\na\tReport\n", event(1)
    )
    assert outcome.status == 2
    assert outcome.out == ""
    for line in (2, 3, 4, 5):
        assert f"subs:{line}: " in outcome.err
    assert outcome.err.count("qns: error: ") == 4


def test_wrong_event_is_reported_and_the_others_are_matched(match: Match) -> None:
    outcome = match("a\tReport\n", event(1) + "{bad}\n" + event(2, Sped=3) + event(1))
    assert outcome.status == 2
    assert [line["event"] for line in outcome.json_lines] == [1, 1]
    assert "events:2: not JSON" in outcome.err
    assert "events:3: event 2: data 'Sped': Report/Wind has no property 'Sped'" in outcome.err


def test_errors_are_json_with_the_json_option(match: Match) -> None:
    outcome = match("a\tReport\n", "{bad}\n" + event(1), "--json")
    assert outcome.status == 2
    assert json.loads(outcome.err)["line"] == 1
    assert json.loads(outcome.err).keys() == {"file", "line", "column", "problem", "remedy"}
    assert outcome.json_lines == [{"event": 1, "matches": ["a"]}]


def test_empty_files_are_accepted(match: Match) -> None:
    assert match("", "") == (0, "", "")
    assert match("", event(1)).out == '{"event":1,"matches":[]}\n'
    assert match("a\tReport\n", "") == (0, "", "")


def test_one_file_may_be_standard_input_but_not_both(cli: Cli, file: Write) -> None:
    subs, events = file("s", "a\tReport\n"), file("e", event(1))
    options = ("match", "--schema", "weather", "--subscriptions")
    expected = '{"event":1,"matches":["a"]}\n'
    assert cli(*options, "-", "--events", events, stdin=b"a\tReport\n").out == expected
    assert cli(*options, subs, "--events", "-", stdin=event(1).encode()).out == expected
    both = cli(*options, "-", "--events", "-")
    assert both.status == 2
    assert "cannot both come from standard input" in both.err


@pytest.mark.parametrize("missing", ["--subscriptions", "--events", "--schema"])
def test_missing_file_is_named_in_error(missing: str, cli: Cli, file: Write) -> None:
    given = {"--subscriptions": file("s", "a\tReport\n"), "--events": file("e", event(1))}
    words: dict[str, object] = {"--schema": "weather", **given, missing: "nowhere.dtd"}
    outcome = cli("match", *(word for pair in words.items() for word in pair))
    assert outcome.status == 2
    assert outcome.err.startswith("qns: error: nowhere.dtd: ")
    assert "No such file or directory" in outcome.err
    assert not outcome.out


@pytest.mark.parametrize(
    ("subscriptions", "events"), [(20, FEW_EVENTS + 700), (FEW_SUBSCRIPTIONS + 1, 50)]
)
def test_large_inputs_get_the_same_answers_as_small_ones(
    subscriptions: int, events: int, match: Match
) -> None:
    wanted = {
        f"s{n}": f"Report/Wind where Speed > {n % 40} and Region = 'R{n % 7}'"
        for n in range(subscriptions)
    }
    happened = [event(n, Speed=n % 50, Region=f"R{n % 11}") for n in range(events)]
    outcome = match("".join(f"{id}\t{text}\n" for id, text in wanted.items()), "".join(happened))
    assert outcome.status == 0
    reader = EventReader(WEATHER)
    parsed = {id: parse_subscription(text, WEATHER) for id, text in wanted.items()}
    assert outcome.json_lines == [
        {"event": n, "matches": oracle.match(parsed, reader.read(line))}
        for n, line in enumerate(happened)
    ]


def test_schema_mapping_is_ignored(match: Match) -> None:
    fields = '{"id": 1, "class": "Report/Visibility", "source": "Met01"}'
    assert match("a\tReport/Visibility from Met01\n", fields).json["matches"] == ["a"]
