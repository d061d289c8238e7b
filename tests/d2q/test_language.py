"""The two textual spellings: their meaning, and that parsing is the inverse of printing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import INTEGER, QUALITY_ONE
from qns.cbr.intervals import Intervals
from qns.cbr.region import EVERY_QUALITY, Region
from qns.cbr.strings import EVERY_STRING, Strings
from qns.cbr.subscription import Subscription
from qns.cli.subscription_file import read_any_spelling
from qns.d2q.language import parse_statement, parse_subscription
from qns.d2q.printing import write_readable, write_thesis
from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.d2q.terms import Operator, Position, Written
from tests.strategies import ALL_TYPES, subscriptions

WORDS = Schema(
    "words",
    {
        "Only": {"From": "integer", "In": "string", "_": "decimal"},
        "Only/Where": {"And": "date", "was": "boolean", "Façade-2": "string"},
        "subscription": {"Exists": "dateTime", "To": "integer", "With": "integer"},
    },
    {"between": 0.5, "_": 0.25},
)
LOW, MEDIUM, HIGH = (QUALITY_ONE * tenths // 10 for tenths in (3, 6, 9))
CODE = "MCLMSM73H17H501F"


def agencies(text: str) -> Subscription:
    return parse_subscription(text, AGENCIES)


def weather(text: str) -> Subscription:
    return parse_subscription(text, WEATHER)


def assert_parsing_inverts_printing(subscription: Subscription, schema: Schema) -> None:
    for write in (write_readable, write_thesis):
        text = write(subscription, schema)
        again = parse_subscription(text, schema)
        assert again == subscription, text
        assert write(again, schema) == text
        assert again.text == text


@given(subscriptions())
def test_printed_subscription_parses_to_the_same_subscription(subscription: Subscription) -> None:
    assert_parsing_inverts_printing(subscription, ALL_TYPES)


@given(st.data(), st.sampled_from([AGENCIES, WEATHER]))
def test_subscriptions_of_shipped_schemas_print_and_parse(
    data: st.DataObject, schema: Schema
) -> None:
    assert_parsing_inverts_printing(data.draw(subscriptions(schema)), schema)


@given(subscriptions(WORDS))
def test_names_that_are_words_of_the_language_print_and_parse(subscription: Subscription) -> None:
    assert_parsing_inverts_printing(subscription, WORDS)


CHARACTERS = st.characters(exclude_categories=["Cs", "Cc", "Cn"]) | st.sampled_from(
    "\t\n\r\x7f\x85"
)
ORGANISATION = st.text(CHARACTERS, min_size=1).filter(
    lambda name: name == name.strip()
) | st.sampled_from(["from", "Where", "`x`", "_", "a.b/c", "Camera di Commercio", "3M", '"', "\\"])


@given(subscriptions(), st.frozensets(ORGANISATION, min_size=1, max_size=3))
def test_any_organisation_name_prints_and_parses(
    subscription: Subscription, names: frozenset[str]
) -> None:
    assert_parsing_inverts_printing(replace(subscription, sources=names), ALL_TYPES)


@given(st.text(CHARACTERS))
def test_any_string_value_prints_and_parses(text: str) -> None:
    wanted = Subscription(
        AGENCIES.scope("Enterprise"), None, {"Enterprise.Code": Strings.of([text])}, "Enterprise"
    )
    assert_parsing_inverts_printing(wanted, AGENCIES)


# -- the worked case of the thesis (semantics §10) ------------------------------------------

S1 = "⟨Enterprise/Holder, ⊥, ⊥⟩"
S2 = "⟨Enterprise/Holder, ⊥, Name.Accuracy ≤ medium⟩"
S3 = f'⟨Enterprise/Holder, FiscalCode = "{CODE}", Name.Accuracy ≤ medium⟩'
S4 = f'⟨Enterprise/Holder : {{INPS, INAIL}}, FiscalCode = "{CODE}", Name.Accuracy ≤ medium⟩'


def test_containment_of_the_thesis_subscriptions_is_as_in_the_thesis() -> None:
    first, second, third, fourth = (agencies(text) for text in (S1, S2, S3, S4))
    assert first.contains(second)
    assert second.contains(third)
    assert third.contains(fourth)
    assert not fourth.contains(third)
    assert fourth.sources == frozenset({"INPS", "INAIL"})


@pytest.mark.parametrize(
    ("thesis", "readable"),
    [
        (S1, "Enterprise/Holder"),
        (S2, "Enterprise/Holder where Name.accuracy <= medium"),
        (S3, f'Enterprise/Holder where FiscalCode = "{CODE}" and Name.accuracy <= medium'),
        (
            S4,
            f'Enterprise/Holder from INPS, INAIL where FiscalCode = "{CODE}" '
            "and Name.accuracy <= medium",
        ),
        (
            '<Enterprise/Holder : {INPS, INAIL}, FiscalCode = "x" and Code exists, '
            "Name.Accuracy <= medium>",
            'Enterprise/Holder from INAIL, INPS where Name.accuracy <= 0.6 and FiscalCode = "x" '
            "and Enterprise.Code exists",
        ),
        ("<only Enterprise>", "only Enterprise"),
        ("<Enterprise/Holder, _, _>", "Enterprise/Holder"),
        ("〈Enterprise/Holder,⊥, Name.Accuracy ≤ medium 〉", S2),
        ("\u2329Enterprise\u232a", "⟨Enterprise, ⊥⟩"),
        ("<Enterprise/Holder, , Name.accuracy <= medium>", S2),
        ("<Enterprise,,>", "Enterprise"),
        ("<Enterprise : {'INPS'}, Code = 'a'>", 'Enterprise from "INPS" where Code = “a”'),
        (
            "<Enterprise, Code = 'a' ∧ EntName exists>",
            'Enterprise where EntName exists and Code="a"',
        ),
        ("\n<\tEnterprise\u00a0>\ufeff", "ENTERPRISE"),
        ("<enterprise/HOLDER, ENTERPRISE.code = 'a'>", "Enterprise/Holder where Code = 'a'"),
    ],
)
def test_both_notations_give_the_same_subscription(thesis: str, readable: str) -> None:
    assert agencies(thesis) == agencies(readable)


# -- operators ------------------------------------------------------------------------------


def whole_numbers(*spans: tuple[int, int]) -> Intervals:
    return Intervals.of(spans)


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("= 5", whole_numbers((5, 5))),
        ("= +5", whole_numbers((5, 5))),
        ("=-5", whole_numbers((-5, -5))),
        ("≠ 5", whole_numbers((INTEGER.lo, 4), (6, INTEGER.hi))),
        ("!= 5", whole_numbers((INTEGER.lo, 4), (6, INTEGER.hi))),
        ("<> 5", whole_numbers((INTEGER.lo, 4), (6, INTEGER.hi))),
        ("< 5", whole_numbers((INTEGER.lo, 4))),
        ("≤ 5", whole_numbers((INTEGER.lo, 5))),
        ("<= 5", whole_numbers((INTEGER.lo, 5))),
        ("> 5", whole_numbers((6, INTEGER.hi))),
        ("≥ 5", whole_numbers((5, INTEGER.hi))),
        (">=5", whole_numbers((5, INTEGER.hi))),
        ("between 5 and 7", whole_numbers((5, 7))),
        ("BETWEEN 5 AND 7 and Direction != 6", whole_numbers((5, 5), (7, 7))),
        ("in {5}", whole_numbers((5, 5))),
        ("IN {5, 7}", whole_numbers((5, 5), (7, 7))),
        ("∈ {5,7}", whole_numbers((5, 5), (7, 7))),
        (
            "in {1, 3 to 5, >= 9, < 0}",
            whole_numbers((INTEGER.lo, -1), (1, 1), (3, 5), (9, INTEGER.hi)),
        ),
        ("in {≤ 1, > 8}", whole_numbers((INTEGER.lo, 1), (9, INTEGER.hi))),
        ("exists", whole_numbers((INTEGER.lo, INTEGER.hi))),
        ("Exists", whole_numbers((INTEGER.lo, INTEGER.hi))),
    ],
)
def test_operator_on_a_number_gives_the_intervals(condition: str, values: Intervals) -> None:
    expected = {"Report/Wind.Direction": values}
    assert weather(f"Report/Wind where Direction {condition}").constraints == expected
    assert weather(f"<Report/Wind, Direction {condition}>").constraints == expected


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ('= "a"', Strings.of(["a"])),
        (r'= "\"\\\/\n\r\t\u00e8\uD83D\uDE00"', Strings.of(['"\\/\n\r\tè😀'])),
        ('!= "a"', Strings.described(excluded=["a"])),
        ("in {'a', \"b\", “c”}", Strings.of("abc")),
        ("= '“it\\'s”'", Strings.of(["“it's”"])),
        ('= “say "hi"”', Strings.of(['say "hi"'])),
        ('starts with "ab"', Strings.described(prefix="ab")),
        ('STARTS  WITH "ab"', Strings.described(prefix="ab")),
        ('ends with "yz"', Strings.described(suffix="yz")),
        ('contains "m"', Strings.described(fragments=["m"])),
        ('starts with "a" and Code ends with "z"', Strings.described(prefix="a", suffix="z")),
        ("exists", EVERY_STRING),
        ('= ""', Strings.of([""])),
    ],
)
def test_operator_on_a_string_gives_the_string_set(condition: str, values: Strings) -> None:
    assert agencies(f"Enterprise where Code {condition}").constraints == {"Enterprise.Code": values}


@pytest.mark.parametrize(
    ("condition", "region"),
    [
        ("<= medium", Region.of(Intervals.of([(0, MEDIUM)]))),
        ("<= 0.6", Region.of(Intervals.of([(0, MEDIUM)]))),
        ("<= 6e-1", Region.of(Intervals.of([(0, MEDIUM)]))),
        ("= LOW", Region.of(Intervals.of([(LOW, LOW)]))),
        ("between low and .9", Region.of(Intervals.of([(LOW, HIGH)]))),
        ("in {low, medium to high}", Region.of(Intervals.of([(LOW, LOW), (MEDIUM, HIGH)]))),
        ("falls below low", Region.falls_below(LOW)),
        ("Rises Above 0.9", Region.rises_above(HIGH)),
        ("changes by 0.3", Region.changes_by(LOW)),
        ("was <= low", Region.of(EVERY_QUALITY, Intervals.of([(0, LOW)]))),
        ("was in {low, high}", Region.of(EVERY_QUALITY, Intervals.of([(LOW, LOW), (HIGH, HIGH)]))),
        ("was exists", Region.changes_by(0)),
        ("exists", Region.of(EVERY_QUALITY)),
        (
            "was between low and high and Name.accuracy < low",
            Region.of(Intervals.of([(0, LOW - 1)]), Intervals.of([(LOW, HIGH)])),
        ),
    ],
)
def test_operator_on_quality_gives_the_region(condition: str, region: Region) -> None:
    expected = {"Enterprise/Holder.Name.accuracy": region}
    for text in (
        f"Enterprise/Holder where Name.Accuracy {condition}",
        f"<Enterprise/Holder, ⊥, Name.Accuracy {condition}>",
    ):
        assert agencies(text).constraints == expected
        assert agencies(text).only


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Dangerous = true", "Dangerous != false"),
        ("Peak = 12.50", "Peak = +1.25e1"),
        (
            "Peak > 3 and Peak < 9 and Peak != 5",
            "Peak in {> 3, < 5, > 5} and Peak < 9 and Peak != 5 and Peak > 3",
        ),
        ("Observed >= 2024-01-31T12:00:00Z", 'Observed >= "2024-01-31T13:00:00.000+01:00"'),
        ("Report.Station = 'a'", "`Report`.`Station` = 'a'"),
        ("Report/Wind.Speed = 1", "Wind.Speed = 1"),
    ],
)
def test_values_and_names_have_more_than_one_spelling(left: str, right: str) -> None:
    assert weather(f"Report/Wind/Gust where {left}") == weather(f"Report/Wind/Gust where {right}")


def test_dates_are_accepted_bare_and_quoted() -> None:
    bare = parse_subscription("Thing where Since > 2024-02-29", ALL_TYPES)
    assert bare == parse_subscription('Thing where Since > "2024-02-29"', ALL_TYPES)
    assert write_readable(bare, ALL_TYPES) == "Thing where Since >= 2024-03-01"


def test_words_of_the_language_are_names_in_backticks_or_in_longer_names() -> None:
    text = "`only` from `from`, 'where' where `from` = 1 and Only.In exists and `_` > 2"
    subscription = parse_subscription(text, WORDS)
    assert subscription.data_class == "Only"
    assert subscription.sources == frozenset({"from", "where"})
    assert set(subscription.constraints) == {"Only.From", "Only.In", "Only._"}
    assert write_readable(subscription, WORDS) == (
        '`Only` from "from", "where" where `From` = 1 and `In` exists and `_` > 2'
    )


def test_label_can_be_a_word_of_the_language() -> None:
    spelled = parse_subscription("`Only` where From.accuracy = `between`", WORDS)
    assert spelled == parse_subscription("`Only` where From.accuracy = 0.5", WORDS)
    assert parse_subscription("`Only` where From.accuracy = `_`", WORDS) == parse_subscription(
        "`Only` where From.accuracy = 0.25", WORDS
    )


@pytest.mark.parametrize("label", ["Ⅷ", "_", "é", "high-2"])
def test_every_label_of_the_schema_can_be_used(label: str) -> None:
    schema = Schema("labels", {"A": {"X": "string"}}, {label: 0.8})
    written = f"`{label}`" if label == "_" else label
    found = parse_subscription(f"A where X.accuracy >= {written}", schema)
    assert found == parse_subscription("A where X.accuracy >= 0.8", schema)


def test_class_named_subscription_is_not_mistaken_for_xml() -> None:
    for text in ("<subscription>", "< subscription >", "<Subscription, To = 3>"):
        assert parse_subscription(text, WORDS).data_class == "subscription"
        assert read_any_spelling(text, WORDS).data_class == "subscription"


def test_original_text_is_kept_and_labels_become_numbers() -> None:
    subscription = agencies(S4)
    assert subscription.text == S4
    assert write_readable(subscription, AGENCIES) == (
        f'Enterprise/Holder from INAIL, INPS where FiscalCode = "{CODE}" and Name.accuracy <= 0.6'
    )
    assert write_thesis(subscription, AGENCIES) == (
        f'⟨Enterprise/Holder : {{INAIL, INPS}}, FiscalCode = "{CODE}", Name.accuracy ≤ 0.6⟩'
    )


def test_statement_records_the_position_of_each_part() -> None:
    statement = parse_statement('<only Report : {"a", b},\n Speed = 5 and Station in {"x"}, _>')
    speed, station = statement.terms
    assert (statement.data_class, statement.class_mark) == ("Report", Position(1, 7))
    assert (statement.sources, statement.source_marks) == (
        ("a", "b"),
        (Position(1, 17), Position(1, 22)),
    )
    assert (speed.mark, speed.part, speed.operator) == (Position(2, 2), "data", Operator.EQUALS)
    assert speed.values == (Written("5", "bare", Position(2, 10)),)
    assert station.mark == Position(2, 16)
    assert station.members[0].values == (Written("x", "quoted", Position(2, 28)),)
    assert parse_statement("<R, , A.accuracy exists>").terms[0].part == "quality"
    assert parse_statement("R where A.accuracy exists").terms[0].part is None


# -- docs/language.md -----------------------------------------------------------------------

REFERENCE = Path(__file__).parents[2].joinpath("docs", "language.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| `(.+)` \| `([⟨<].+)` \|$", REFERENCE, re.MULTILINE)


@pytest.mark.parametrize(("written", "readable", "thesis"), ROWS)
def test_language_page_shows_two_spellings_of_the_same_subscription(
    written: str, readable: str, thesis: str
) -> None:
    assert weather(readable) == weather(thesis)
    if written.startswith("`"):  # the output of QNS
        subscription = weather(written.strip("`"))
        assert write_readable(subscription, WEATHER) == readable
        assert write_thesis(subscription, WEATHER) == thesis


def test_language_page_shows_every_operator() -> None:
    shown = {term.operator for row in ROWS for term in parse_statement(row[1]).terms}
    assert shown == set(Operator)
