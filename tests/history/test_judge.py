"""Tests of the judge as a whole: what it counts, how much it reports, and what it rejects."""

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


def test_verdict_counts_records_and_separately_losses_and_excuses() -> None:
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


def test_verdict_explains_the_first_violations_of_a_rule_and_counts_all() -> None:
    history = History("A", "B").pub("B", "e1")
    for number in range(50):
        history.ntfy("A", f"U{number}", "B", "e1")
    history.take("A", "B", 3, "e1")
    verdict = history.verdict()
    assert verdict.broken[Rule.LEGALITY] == 50
    explained = [each.rule for each in verdict.violations]
    assert explained == [Rule.LEGALITY] * 20 + [Rule.NO_GAP]
    assert len(judge(history.records, most_per_rule=3).violations) == 4
    assert not verdict.holds


def test_violation_holds_the_records_concerned() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").usub("A", "U1")
    history.ntfy("A", "U1", "B", "e1")
    (violation,) = history.verdict().violations
    assert violation.rule is Rule.LEGALITY
    assert [record["do"] for _, record in violation.records] == ["sub", "usub", "ntfy"]
    for number, record in violation.records:
        assert history.records[number - 1] is record
    assert len(violation.explain().splitlines()) == 1


def test_verdict_can_be_pickled() -> None:
    verdict = History("A").sub("A", "U1").pub("A", "e1").calm().verdict()
    again = pickle.loads(pickle.dumps(verdict))
    assert again == verdict
    assert again.violations[0].explain() == verdict.violations[0].explain()


def test_judge_accepts_an_iterator_of_records() -> None:
    history = History("A").sub("A", "U1").pub("A", "e1").ntfy("A", "U1", "A", "e1").calm()
    assert judge(iter(history.records)).holds


def test_judge_accepts_times_that_go_backwards() -> None:
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
def test_invalid_record_is_rejected_with_its_number(record: Record, words: str) -> None:
    with pytest.raises(QnsError) as caught:
        judge([*History("A", "B").records, record])
    assert str(caught.value).startswith("record 4: ")
    assert words in str(caught.value)


def test_reused_subscription_id_is_rejected() -> None:
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
def test_history_without_a_valid_schema_first_is_rejected(records: list[Record]) -> None:
    with pytest.raises(QnsError, match="record 1: "):
        judge(records)
