"""The judge as a whole: what it counts, how much it tells, and what it refuses to read."""

from __future__ import annotations

import pickle
from math import inf
from typing import Any

import pytest

from qns.errors import QnsError
from qns.history.judge import judge
from qns.history.records import Record, new_record
from qns.history.verdict import Rule
from tests.history.builder import History
from tests.history.state import XML


def test_everything_is_counted_and_what_is_apart_is_counted_apart() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B")
    history.pub("B", "e1").cross("B", "A", 1, "e1").drop("B", "A", 1, "e1").skip("A", "B", 1, 1)
    history.pub("B", "e2").cross("B", "A", 2, "e2").take("A", "B", 2, "e2")
    history.ntfy("A", "U1", "B", "e2").sub("A", "U2").restore("A", 10.0).calm()
    history.pub("B", "e3").restore("B", 13.0)
    counts = history.verdict().counts
    assert counts.records == len(history.records)
    assert (counts.events, counts.lost) == (3, 1)
    assert (counts.subscriptions, counts.notifications, counts.void) == (1, 1, 1)
    assert (counts.skipped, counts.dropped, counts.excused) == (1, 1, 1)


def test_of_many_violations_the_first_are_told_and_all_are_counted() -> None:
    history = History("A", "B").pub("B", "e1")
    for number in range(50):
        history.ntfy("A", f"U{number}", "B", "e1")
    history.take("A", "B", 3, "e1")
    verdict = history.verdict()
    assert verdict.broken[Rule.LEGALITY] == 50
    told = [each.rule for each in verdict.violations]
    assert told == [Rule.LEGALITY] * 20 + [Rule.NO_GAP]
    assert len(judge(history.records, most_per_rule=3).violations) == 4
    assert not verdict.holds


def test_a_violation_carries_the_records_that_it_is_about() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").usub("A", "U1")
    history.ntfy("A", "U1", "B", "e1")
    (violation,) = history.verdict().violations
    assert violation.rule is Rule.LEGALITY
    assert [record["do"] for _, record in violation.records] == ["sub", "usub", "ntfy"]
    for number, record in violation.records:
        assert history.records[number - 1] is record
    assert len(violation.explain().splitlines()) == 1


def test_a_verdict_travels_between_processes() -> None:
    verdict = History("A").sub("A", "U1").pub("A", "e1").calm().verdict()
    again = pickle.loads(pickle.dumps(verdict))
    assert again == verdict
    assert again.violations[0].explain() == verdict.violations[0].explain()


def test_records_may_come_one_by_one() -> None:
    history = History("A").sub("A", "U1").pub("A", "e1").ntfy("A", "U1", "A", "e1").calm()
    assert judge(iter(history.records)).holds


def test_a_time_that_goes_backwards_is_allowed() -> None:
    history = History("A").sub("A", "U1").pub("A", "e1").calm()
    history.records[-1] = {**history.records[-1], "t": 0.5}
    assert history.broken() == {"Liveness": 1}


def event(**fields: Any) -> dict[str, Any]:
    return {"id": "e1", "class": "Thing", "source": "A", "data": {}, "quality": {}, **fields}


def published(**fields: Any) -> Record:
    return new_record("pub", 1.0, "A", event=event(**fields), joined=1, epoch=0, sequence=1)


def subscribed(text: str, org: str = "A") -> Record:
    return new_record("sub", 1.0, org, sub="U1", text=text, group="")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (new_record("schema", 1.0, xml=XML), "a second schema"),
        (subscribed("Thing", "C"), "sub of C, which has not joined (record its join before)"),
        (
            subscribed("Thing where Cont > 3"),
            "the text of subscription U1: Thing has no property 'Cont' (did you mean Count?)",
        ),
        (subscribed("Thing wher"), "the text of subscription U1, column 7: expected 'from'"),
        (published(source="B"), "A publishes an event of B"),
        (published(id=3), "with the id 3"),
        (published(available=-1), "'available' is -1 (seconds from 0 on, or INF)"),
        (published(available=inf), "'available' is inf"),
        (published(data={"Count": "x"}), "Thing.Count is 'x', not of type integer"),
        (published(**{"class": "Thong"}), "unknown class 'Thong' (did you mean Thing?)"),
        ({"t": 1.0, "do": "pause", "org": "A"}, "pause has no 'sub'"),
        (
            new_record("lull", 1.0, absent=["B", "C"]),
            "a lull without C, which has not joined (record its join before)",
        ),
    ],
)
def test_what_is_no_history_is_refused_with_the_record(record: Record, words: str) -> None:
    with pytest.raises(QnsError) as caught:
        judge([*History("A", "B").records, record])
    assert str(caught.value).startswith("record 4: ")
    assert words in str(caught.value)


def test_an_id_of_a_subscription_is_never_used_again() -> None:
    history = History("A").sub("A", "U1").usub("A", "U1").sub("A", "U1")
    with pytest.raises(QnsError, match="record 5: A has a subscription 'U1' since record 3"):
        history.verdict()


@pytest.mark.parametrize(
    "records",
    [
        [],
        [new_record("calm", 1.0)],
        [new_record("schema", 1.0, xml="<schema/>")],
        [{"t": 1.0, "do": "schema"}],
        [{}],
    ],
)
def test_a_history_begins_with_its_schema(records: list[Record]) -> None:
    with pytest.raises(QnsError, match="record 1: "):
        judge(records)
