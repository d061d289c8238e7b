"""Any text either parses or raises a QnsError that says what is wrong, and where."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.subscription import Subscription
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_readable, write_thesis
from qns.d2q.shipped import WEATHER
from qns.d2q.terms import MAX_TERMS, MAX_TEXT_LENGTH
from qns.errors import (
    LanguageError,
    LimitExceeded,
    NameNotKnown,
    QnsError,
    Unsatisfiable,
    ValueRefused,
)
from tests.strategies import ALL_TYPES, subscriptions


def error_of(text: str) -> QnsError:
    with pytest.raises(QnsError) as caught:
        parse_subscription(text, WEATHER)
    return caught.value


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        # the start and the class
        ("", 1, "expected a class, found the end"),
        ("  \n ", 1, "expected a class, found the end"),
        ("5", 1, "expected a class, found '5'"),
        ("where Speed > 5", 1, "expected a class, found 'where'"),
        ("only", 5, "expected a class, found the end"),
        ("Report /Wind", 8, "expected 'from', 'where' or the end, found '/'"),
        ("Report, Wind", 7, "expected 'from', 'where' or the end, found ','"),
        ("Report wher Station exists", 8, "found 'wher' (did you mean where?)"),
        ("Report form Met01", 8, "found 'form' (did you mean from?)"),
        # organisations
        ("Report from", 12, "expected an organisation, found the end"),
        ("Report from where Station exists", 13, "expected an organisation, found 'where'"),
        ("Report from Met01 Met02", 19, "expected 'where', ',' or the end, found 'Met02'"),
        ("Report from Met01, Met02 were Station exists", 26, "(did you mean where?)"),
        ("<Report : Met01>", 11, "expected '{', found 'Met01'"),
        ("<Report : {}>", 12, "expected an organisation, found '}' (list at least one)"),
        # conditions
        ("Report where", 13, "expected a property, found the end"),
        ("Report where = 5", 14, "expected a property, found '='"),
        ("Report where Station", 21, "expected an operator, found the end"),
        ("Report where Station betwen 1 and 2", 22, "(did you mean between?)"),
        ('Report where Station start with "a"', 22, "(did you mean starts with?)"),
        ('Report where Station startswith "a"', 22, "(did you mean starts with?)"),
        ('Report where Station contain "a"', 22, "(did you mean contains?)"),
        ('Report where Station starts "a"', 29, "expected 'with', found '\"a\"'"),
        ("Report where Station = where", 24, "expected a value, found 'where'"),
        ("Report where Station = and Region exists", 24, "expected a value, found 'and'"),
        ("Report where Station between 1, 2", 31, "expected 'and', found ','"),
        ("Report where Station == 5", 23, "expected a value, found '=' (write a single =)"),
        ("Report where Station => 5", 23, "found '>' (write >=)"),
        ("Report where Station =< 5", 23, "found '<' (write <=)"),
        ("Report where Station ! 5", 22, "expected an operator, found '!' (write !=)"),
        ("Report where Station exists Region exists", 29, "expected 'and' or the end"),
        ("Report where Station exists or Region exists", 29, "make one subscription for each"),
        ("Report where not Station exists", 18, "expected an operator, found 'Station'"),
        ("Report where (Station exists)", 14, "expected a property, found '(' (there are no pare"),
        ("Report where Station exists, Region exists", 28, "expected 'and' or the end, found ','"),
        ("Report where Station exists;", 28, "expected 'and' or the end, found ';'"),
        ("Report where Station exists and", 32, "expected a property, found the end"),
        ("Report where Station was falls below 1", 26, "expected an operator, found 'falls'"),
        ("Report where From exists", 14, "expected a property, found 'From'"),
        ("Report where `a b` exists", 14, "expected a property, found '`' (a name in backticks"),
        # sets
        ("Report where Station in 5", 25, "expected '{', found '5'"),
        ("Report where Station in (5)", 25, "expected '{', found '(' (there are no parentheses"),
        ("Report where Station in {}", 26, "expected a value, found '}' (list at least one)"),
        ("Report where Station in {1,}", 28, "expected a value, found '}'"),
        ("Report where Station in {1 2}", 28, "expected 'to', ',' or '}', found '2'"),
        ("Report where Station in {1", 27, "expected 'to', ',' or '}', found the end"),
        ("Report where Station in {!= 2}", 26, "expected a value, found '!='"),
        # strings
        ('Report where Station = "a', 24, 'a string without its closing "'),
        ("Report where Station = 'a", 24, "a string without its closing '"),
        ('Report where Station = “a"', 24, "a string without its closing ”"),
        ('Report where Station = "a\nb"', 24, "a string without its closing"),
        (r'Report where Station = "a\x"', 26, r"unknown escape '\x' (a backslash is written \\"),
        (r'Report where Station = "\u12"', 25, r"unknown escape '\u'"),
        # the thesis notation
        ("<Report", 8, "expected ':', ',' or '>', found the end"),
        ("<Report⟩", 8, "expected '>', found '⟩'"),
        ("<<<<<<", 2, "expected a class, found '<'"),
        ("<" * 100_000, 2, "expected a class, found '<'"),
        ("<Report> <Report>", 10, "expected the end, found '<'"),
        ("<Report, 5>", 10, "expected a property, ⊥, ',' or '>', found '5'"),
        ("<Report where Station exists>", 9, "expected ':', ',' or '>', found 'where'"),
        ("<Report, Station exists ⊥>", 25, "expected 'and', ',' or '>', found '⊥'"),
        ("<Report, _, _, _>", 14, "expected '>', found ',' (three parts at most"),
        # not a text
        ("Report\x00", 7, r"found '\x00'"),
        ("Report where Station\x1c exists", 21, r"expected an operator, found '\x1c'"),
        ("Report \ud800", 8, r"found '\ud800'"),
        ("Report \U0010ffff", 8, r"found '\U0010ffff'"),
        # XML
        ('<?xml version="1.0"?><subscription/>', 1, "this is the XML spelling"),
        (' <subscription class="Report">', 2, "this is the XML spelling"),
    ],
)
def test_parse_error_shows_the_column_and_the_message(text: str, column: int, message: str) -> None:
    error = error_of(text)
    assert isinstance(error, LanguageError)
    assert (error.line, error.column) == (1, column)
    assert message in str(error)
    assert str(error).startswith(f"column {column}: ")


@pytest.mark.parametrize(
    ("text", "kind", "column", "message"),
    [
        ("Reprot", NameNotKnown, 1, "unknown class 'Reprot' (did you mean Report"),
        ("only Wind", NameNotKnown, 6, "(did you mean Report/Wind?)"),
        ("<subscription, ⊥>", NameNotKnown, 2, "unknown class 'subscription'"),
        ("<subscription>", NameNotKnown, 2, "unknown class 'subscription'"),
        ("Report where Statoin exists", NameNotKnown, 14, "(did you mean Station?)"),
        ("Report/Wind where Speed.acuracy > 0", NameNotKnown, 19, "(did you mean accuracy or"),
        ("Report/Wind where Speed.accuracy < lo", NameNotKnown, 36, "(did you mean low?)"),
        ("Report/Wind where Speed > fast", ValueRefused, 27, "'fast' is not a decimal"),
        ("Report/Wind where Direction = 1.5", ValueRefused, 31, "'1.5' is not an integer"),
        ("Report/Wind where Direction in {1, 2x}", ValueRefused, 36, "'2x' is not an integer"),
        (
            "Report/Wind where Direction in {5 to 3, 7}",
            ValueRefused,
            33,
            "the range '5 to 3' of Report/Wind.Direction is empty (give the lower end first",
        ),
        (
            "Report/Wind where Speed.accuracy in {0.5, < 0}",
            ValueRefused,
            45,
            "the range '< 0' of Report/Wind.Speed.accuracy is empty",
        ),
        (
            "Report/Wind where Speed > 1.00000000000000000000000000000001",
            ValueRefused,
            27,
            "more than 15 significant digits",
        ),
        (
            "Report/Wind where Speed > 1e-300",
            ValueRefused,
            27,
            "is out of range (give 0, or a magnitude from 1e-290 to below 1e291)",
        ),
        ("Report/Wind where Speed > 1e-400", ValueRefused, 27, "is out of range"),
        ("Report/Wind where Speed = '5'", ValueRefused, 27, "(write it without quotes)"),
        ("Report/Wind where Speed.accuracy > 2", ValueRefused, 36, "outside [0, 1]"),
        ("Report where Station = Rome", ValueRefused, 24, 'not quoted (write "Rome")'),
        ("Report where Station < 'a'", ValueRefused, 14, "the operator < does not apply"),
        ("Report where Observed > 2024-01-31T12:00:00", ValueRefused, 25, "has no zone"),
        ("Report where Observed > 2024-13-31T12:00:00Z", ValueRefused, 25, "month must be"),
        ("Report where Station = 'a\x00'", ValueRefused, 24, "character U+0000 in a string"),
        (r"Report where Station = '\ud800'", ValueRefused, 24, "character U+D800 in a string"),
        ("Report where Observed = '\ud800'", ValueRefused, 25, r"'\ud800' is not a dateTime"),
        ("Report from Met01, ' '", ValueRefused, 20, "' ' is not an organisation's name"),
        ("Report from 'a\x01'", ValueRefused, 13, "character U+0001"),
        ("Report/Wind where Speed.accuracy = 1 and Speed was = 1", ValueRefused, 42, "no previous"),
        ("<Report/Wind, Speed.accuracy = 1>", ValueRefused, 15, "stand in the third part"),
        ("<Report/Wind, _, Speed = 1>", ValueRefused, 18, "stand in the second part"),
        ("Report/Wind where Station.accuracy = 1", QnsError, 19, "the enclosing class Report"),
    ],
)
def test_schema_error_shows_the_position_and_the_message(
    text: str, kind: type[QnsError], column: int, message: str
) -> None:
    error = error_of(text)
    assert type(error) is kind
    assert (error.line, error.column) == (1, column)
    assert message in str(error)


def test_contradiction_error_names_the_attribute_and_the_last_condition() -> None:
    error = error_of("Report/Wind where Speed > 5 and\n Speed < 3")
    assert isinstance(error, Unsatisfiable)
    assert error.attribute == "Report/Wind.Speed"
    assert (error.line, error.column) == (2, 2)


def test_error_on_a_later_line_has_the_line() -> None:
    assert str(error_of("Report\nwhere Station exists\n  adn Region exists")) == (
        "line 3, column 3: expected 'and' or the end, found 'adn' (did you mean and?)"
    )


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("Report where " + " and ".join(["Station exists"] * 10_000), 14 + 19 * MAX_TERMS),
        ("Report where Station in {" + "1," * 10_000 + "1}", 26 + 2 * MAX_TERMS),
        ("Report from " + "a," * 10_000 + "a", 13 + 2 * MAX_TERMS),
        ("Report where " + " and ".join(["Station in {'a', 'b', 'c'}"] * 3_000), 14 + 31 * 2730),
    ],
)
def test_too_many_conditions_are_rejected_at_the_first_excess_one(text: str, column: int) -> None:
    error = error_of(text)
    assert isinstance(error, LimitExceeded)
    assert (error.line, error.column) == (1, column)


def test_too_long_text_is_rejected_before_parsing() -> None:
    for text in (
        "<" * 1_100_000,
        f'Report where Station = "{"a" * 1_100_000}"',
        "\ud800" * 1_100_000,
    ):
        error = error_of(text)
        assert isinstance(error, LimitExceeded)
        assert f"a subscription of {len(text):,} characters" in str(error)


@pytest.mark.parametrize(
    "filler", ["a", "a.", "a/", "`a`.", '"', "'", "\\", "1", " ", "\n", "<=", "{"]
)
@pytest.mark.parametrize("start", ["", "Report where Station = ", "Report where Station = '"])
def test_long_texts_are_parsed_in_linear_time(start: str, filler: str) -> None:
    text = start + filler * ((MAX_TEXT_LENGTH - 100) // len(filler))
    started = time.perf_counter()
    assert len(str(error_of(text))) < 500
    assert time.perf_counter() - started < 20


REFERENCE = Path(__file__).parents[2].joinpath("docs", "language.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "error"),
    re.findall(r"^(.+)\n((?:line \d+, )?column \d+: .+)$", REFERENCE, re.MULTILINE),
)
def test_language_page_shows_errors_verbatim(text: str, error: str) -> None:
    assert str(error_of(text)) == error


# -- arbitrary texts ------------------------------------------------------------------------


def outcome(text: str) -> Subscription | QnsError:
    try:
        return parse_subscription(text, ALL_TYPES)
    except QnsError as error:
        return error


def assert_parses_or_raises_qns_error(text: str) -> None:
    found = outcome(text)
    if isinstance(found, QnsError):
        str(found).encode()  # it can be printed
        lines = text.split("\n")
        assert found.line is not None, str(found)
        assert found.line in range(1, len(lines) + 1)
        assert found.column in range(1, len(lines[found.line - 1]) + 2)
    else:
        for write in (write_readable, write_thesis):
            assert parse_subscription(write(found, ALL_TYPES), ALL_TYPES) == found
        assert not NOT_IN_XML.search(text)


NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
PIECES = """
    Thing Thing/Part Other only from where and between in to exists starts with ends contains
    falls below rises above changes by was or not Code Count Weight.accuracy Name.currency Since
    Broken Checked Part.Code low high true false 0 1 0.5 -3 2024-02-29 2024-01-31T12:00:00Z
    'a' "b" “c” '' `Code` ` _ ⊥ , : { } < > ⟨ ⟩ = != <> <= >= ≤ ≥ ≠ ∈ ∧ ( ) . / \\ " ' “
    <?xml <subscription>
""".split()  # noqa: SIM905
ANY_CHARACTER = st.characters(exclude_categories=())


@given(st.text(ANY_CHARACTER))
def test_any_text_parses_or_raises_a_qns_error(text: str) -> None:
    assert_parses_or_raises_qns_error(text)


@given(st.lists(st.sampled_from([*PIECES, "\n"])), st.sampled_from([" ", ""]))
def test_any_sequence_of_words_parses_or_raises_a_qns_error(pieces: list[str], space: str) -> None:
    assert_parses_or_raises_qns_error(space.join(pieces))


@given(st.data())
def test_mistyped_subscription_parses_or_raises_a_qns_error(data: st.DataObject) -> None:
    subscription: Subscription = data.draw(subscriptions())
    text = data.draw(st.sampled_from([write_readable, write_thesis]))(subscription, ALL_TYPES)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 5)))
        slip = data.draw(st.sampled_from(["", " ", text[start:end] * 2, *PIECES]) | ANY_CHARACTER)
        text = text[:start] + slip + text[end:]
    assert_parses_or_raises_qns_error(text)


@given(st.text(ANY_CHARACTER))
def test_any_text_at_any_position_parses_or_raises_a_qns_error(text: str) -> None:
    for around in ("Thing from {}", "Thing where {}", "<Thing, {}>", "Thing where Code = '{}'"):
        assert_parses_or_raises_qns_error(around.replace("{}", text))
