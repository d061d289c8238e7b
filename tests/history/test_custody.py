"""Tests of Custody: at a lull, promised events have arrived at the organisations present."""

from __future__ import annotations

import pytest

from tests.history.builder import History


def promised(*members: str) -> History:
    """Returns a history with three members or more: P publishes e1 (record 5 with three members),
    F takes it and promises to deliver it to R (record 7)."""
    history = History("P", "F", "R", *members).pub("P", "e1").take("F", "P", 1, "e1")
    return history.promise("F", "R", "P", "e1")


def test_broken_promise_is_reported_at_the_lull() -> None:
    history = promised().lull("P")
    assert history.broken() == {"Custody": 1}
    text = history.explained()
    assert "F took event e1 of P in custody for R at 3 s (record 7). Both are present" in text
    assert "R had not received it when nothing was under way any more at 4 s (record 8)" in text
    (violation,) = history.verdict().violations
    assert [number for number, _ in violation.records] == [7, 8]


@pytest.mark.parametrize("absent", [(), ("P",)])
def test_promise_is_kept_when_the_receiver_takes_the_event(absent: tuple[str, ...]) -> None:
    history = promised().take("R", "P", 1, "e1").lull(*absent)
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 1


def test_early_event_that_is_held_back_counts_as_arrived() -> None:
    assert promised().early("R", "P", 4, "e1").lull("P").broken() == {}
    assert promised().early("R", "P", 4, "e2").lull("P").broken() == {"Custody": 1}
    assert promised("S").early("S", "P", 4, "e1").lull("P").broken() == {"Custody": 1}


def test_promise_is_kept_when_the_event_arrived_before_it() -> None:
    history = History("P", "F", "R").pub("P", "e1").take("R", "P", 1, "e1")
    assert history.promise("F", "R", "P", "e1").lull("P").broken() == {}


def test_promises_are_not_judged_without_a_lull() -> None:
    history = promised().calm()
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 0


@pytest.mark.parametrize("absent", ["F", "R"])
def test_promise_is_not_judged_while_one_end_is_absent(absent: str) -> None:
    history = promised().lull("P", absent)
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 0
    assert history.copy().lull("P").broken() == {"Custody": 1}
    assert history.take("R", "P", 1, "e1").lull("P").broken() == {}


def test_broken_promise_is_reported_once() -> None:
    history = promised().lull("P").lull("P")
    assert history.broken() == {"Custody": 1}
    assert history.verdict().checks["Custody"] == 1


def test_each_promise_is_judged_separately() -> None:
    history = promised("S").promise("F", "S", "P", "e1").take("S", "P", 1, "e1").lull("P")
    assert history.broken() == {"Custody": 1}
    assert "in custody for R" in history.explained()


def test_calm_discards_earlier_promises() -> None:
    """At a calm all organisations are present; what has not arrived, its producer owes."""
    assert promised().calm().lull("P").broken() == {}
    assert promised().calm().promise("F", "R", "P", "e1").lull("P").broken() == {"Custody": 1}


# -- restores -------------------------------------------------------------------------------------


def test_promise_that_a_restore_undid_is_not_judged() -> None:
    history = promised().restore("F", 2.0).lull("P")
    assert history.broken() == {}
    assert history.verdict().counts.void == 1


def test_promise_older_than_the_backup_must_be_kept() -> None:
    assert promised().restore("F", 3.0).lull("P").broken() == {"Custody": 1}
    assert promised().restore("F", 3.0).take("R", "P", 1, "e1").lull("P").broken() == {}


def test_promise_made_after_a_restore_must_be_kept() -> None:
    history = promised().restore("F", 2.0).promise("F", "R", "P", "e1")
    assert history.lull("P").broken() == {"Custody": 1}


def test_promise_counts_again_after_a_restore_to_a_state_that_has_it() -> None:
    history = promised().restore("F", 2.0)
    assert history.copy().restore("F", 3.0).lull("P").broken() == {"Custody": 1}
    assert history.restore("F", 1.0).lull("P").broken() == {}


@pytest.mark.parametrize("org", ["P", "R"])
def test_promise_is_not_judged_after_a_restore_of_producer_or_receiver(org: str) -> None:
    after = promised().restore(org, 1.0).lull("P")
    assert after.broken() == {}
    assert after.verdict().checks["Custody"] == 0
    before = History("P", "F", "R").pub("P", "e1").restore(org, 1.0).take("F", "P", 1, "e1")
    assert before.promise("F", "R", "P", "e1").lull("P").broken() == {}


@pytest.mark.parametrize("org", ["P", "R"])
def test_promises_are_judged_again_after_a_calm(org: str) -> None:
    history = History("P", "F", "R").restore(org, 0.0).calm().pub("P", "e1")
    history.take("F", "P", 1, "e1").promise("F", "R", "P", "e1")
    assert history.lull("P").broken() == {"Custody": 1}


def test_event_that_a_restored_receiver_forgot_counts_as_arrived() -> None:
    """R had acknowledged the event, so F does not hold it any more."""
    history = promised().take("R", "P", 1, "e1").restore("R", 3.0).calm()
    history.promise("F", "R", "P", "e1").lull("P")
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 1


def test_restore_of_a_third_organisation_excuses_no_broken_promise() -> None:
    assert promised("S").restore("S", 0.0).lull("P").broken() == {"Custody": 1}


# -- leaving, and declared losses -----------------------------------------------------------------


@pytest.mark.parametrize("org", ["F", "R"])
@pytest.mark.parametrize("returns", [False, True])
def test_promise_is_void_when_its_forwarder_or_receiver_leaves(org: str, returns: bool) -> None:
    history = promised().leave(org)
    if returns:
        history.join(org, 2)
    assert history.lull("P").broken() == {}


def test_promise_to_an_earlier_incarnation_is_not_judged() -> None:
    history = promised().leave("R").join("R", 2).promise("F", "R", "P", "e1")
    assert history.lull("P").broken() == {}
    assert history.promise("F", "R", "P", "e1", joined=2).lull("P").broken() == {"Custody": 1}


def test_event_taken_by_an_earlier_incarnation_has_not_arrived_at_the_present_one() -> None:
    history = promised().take("R", "P", 1, "e1").leave("R").join("R", 2)
    history.promise("F", "R", "P", "e1", joined=2)
    assert history.copy().lull("P").broken() == {"Custody": 1}
    assert history.take("R", "P", 1, "e1", own=2).lull("P").broken() == {}


def test_promise_of_a_forwarder_that_has_left_is_not_judged() -> None:
    history = History("P", "F", "R").pub("P", "e1").take("F", "P", 1, "e1").leave("F")
    assert history.promise("F", "R", "P", "e1").lull("P").broken() == {}


def test_promise_must_be_kept_after_the_publisher_left() -> None:
    assert promised().leave("P").lull().broken() == {"Custody": 1}


def test_dropped_event_need_not_arrive() -> None:
    history = promised().cross("P", "R", 1, "e1").drop("P", "R", 1, "e1").lull("P")
    assert history.broken() == {}
    other = promised("S").cross("P", "S", 1, "e1").drop("P", "S", 1, "e1").lull("P")
    assert other.broken() == {"Custody": 1}


def test_skipped_event_need_not_arrive() -> None:
    history = promised().cross("P", "R", 1, "e1").skip("R", "P", 1, 1).lull("P")
    assert history.broken() == {}
    other = promised().pub("P", "e0").cross("P", "R", 1, "e0").cross("P", "R", 2, "e1")
    assert other.skip("R", "P", 1, 1).lull("P").broken() == {"Custody": 1}


def test_promise_of_an_event_whose_id_was_published_again_is_not_judged() -> None:
    history = History("P", "F", "R").pub("P", "e1").restore("P", 0.0).calm().pub("P", "e1")
    assert history.promise("F", "R", "P", "e1").lull("P").broken() == {}


def test_promise_of_an_event_of_a_producer_that_rejoined_is_not_judged() -> None:
    """Only the producer can fill the gap in its old stream, and it does so before it rejoins."""
    assert promised().leave("P").lull("P").broken() == {"Custody": 1}
    history = promised().leave("P").join("P", 3).lull("P")
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 0


def test_promise_is_not_judged_after_the_operator_dropped_its_dead_letter() -> None:
    assert promised().discard("F", "R", "P", "e1").lull("P").broken() == {}
    assert promised().discard("F", "R", "P", "e2").lull("P").broken() == {"Custody": 1}
    assert promised().discard("F", "P", "P", "e1").lull("P").broken() == {"Custody": 1}
    assert promised().discard("F", "R", "P", "e1").verdict().counts.discarded == 1
