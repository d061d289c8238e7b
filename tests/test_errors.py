"""Errors show the values they were given, and survive pickling."""

from __future__ import annotations

import copy
import pickle
import time
from datetime import date
from decimal import Decimal

import pytest

from qns import errors
from qns.cli.inputs import Unreadable
from qns.errors import (
    LanguageError,
    NameNotKnown,
    QnsError,
    Unsatisfiable,
    near_misses,
    show,
)


def classes(root: type[QnsError] = QnsError) -> list[type[QnsError]]:
    return [root, *(kind for below in root.__subclasses__() for kind in classes(below))]


SPECIAL: dict[type[QnsError], QnsError] = {
    NameNotKnown: NameNotKnown("class", "Reprot", ["Report"], place="here"),
    Unsatisfiable: Unsatisfiable("Report.Station", place="here"),
    LanguageError: LanguageError("expected a class", line=1, column=3, remedy="name one"),
}
"""The errors with parameters other than a problem, a place and a remedy."""

EXAMPLES = [
    SPECIAL.get(kind) or kind("wrong", place="here", remedy="mend it") for kind in classes()
]


def test_docstring_tree_names_every_error_class() -> None:
    assert errors.__doc__
    for kind in classes():
        assert kind.__module__ != errors.__name__ or kind.__name__ in errors.__doc__
    assert Unreadable in classes(), "those of other modules are tested here too"


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_survives_pickling_and_copying(error: QnsError) -> None:
    error.at_mark(4, 2).at("file.tsv")
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
        assert again.args == error.args
        assert (again.place, again.remedy) == (error.place, error.remedy)
        assert (again.line, again.column) == (error.line, error.column)


def test_unknown_name_has_no_remedy_if_no_name_is_known() -> None:
    assert str(NameNotKnown("subscription", "s1", [])) == "unknown subscription 's1'"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", r"'a\nb'"),
        ("a" * 100, f"'{'a' * 59}…'"),
        (42, "42"),
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        (Decimal("1.5"), "1.5"),
        (date(2024, 1, 31), "2024-01-31"),
        (10**5000, "a whole number of more than 38 digits"),
        (-(10**5000), "a whole number of more than 38 digits"),
        (Decimal("1" * 5000), "1" * 40),
        ([1], "a value of type list"),
        ({"a": 1}, "a value of type dict"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_can_be_shown(value: object, shown: str) -> None:
    assert show(value) == shown


def test_a_deeply_nested_value_can_be_shown() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert show(nested) == "a value of type list"


def test_similar_names_among_many_are_found_in_bounded_time() -> None:
    names = [f"Report/Station{number:05}.Temperature{number:05}" for number in range(50_000)]
    started = time.perf_counter()
    assert near_misses("Sped", [*names, "Report/Wind.Speed"]) == ["Report/Wind.Speed"]
    near_misses("Report/Station12345.Temprature12345", names)
    near_misses("x" * 200, names)
    assert time.perf_counter() - started < 5
