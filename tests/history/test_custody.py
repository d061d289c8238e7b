"""Custody: at a lull, what forwarders have promised to those who are there has arrived."""

from __future__ import annotations

import pytest

from tests.history.builder import History


def promised(*members: str) -> History:
    """P publishes e1 (record 5 with three members), F takes it and promises it to R (record 7)."""
    history = History("P", "F", "R", *members).pub("P", "e1").take("F", "P", 1, "e1")
    return history.promise("F", "R", "P", "e1")


def test_a_promise_that_is_not_kept_is_told_at_the_lull() -> None:
    history = promised().lull("P")
    assert history.broken() == {"Custody": 1}
    told = history.explained()
    assert "F took event e1 of P in custody for R at 3 s (record 7), and both are there" in told
    assert "R had not received it when nothing was under way any more at 4 s (record 8)" in told
    (violation,) = history.verdict().violations
    assert [number for number, _ in violation.records] == [7, 8]


@pytest.mark.parametrize("absent", [(), ("P",)])
def test_what_was_promised_and_taken_is_settled(absent: tuple[str, ...]) -> None:
    history = promised().take("R", "P", 1, "e1").lull(*absent)
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 1


def test_what_is_held_back_until_its_turn_has_arrived() -> None:
    assert promised().early("R", "P", 4, "e1").lull("P").broken() == {}
    assert promised().early("R", "P", 4, "e2").lull("P").broken() == {"Custody": 1}
    assert promised("S").early("S", "P", 4, "e1").lull("P").broken() == {"Custody": 1}


def test_it_may_have_arrived_before_it_was_promised() -> None:
    history = History("P", "F", "R").pub("P", "e1").take("R", "P", 1, "e1")
    assert history.promise("F", "R", "P", "e1").lull("P").broken() == {}


def test_without_a_lull_nothing_is_judged() -> None:
    history = promised().calm()
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 0


@pytest.mark.parametrize("absent", ["F", "R"])
def test_a_promise_of_or_to_one_who_is_absent_waits(absent: str) -> None:
    history = promised().lull("P", absent)
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 0
    assert history.copy().lull("P").broken() == {"Custody": 1}
    assert history.take("R", "P", 1, "e1").lull("P").broken() == {}


def test_a_broken_promise_is_told_once() -> None:
    history = promised().lull("P").lull("P")
    assert history.broken() == {"Custody": 1}
    assert history.verdict().checks["Custody"] == 1


def test_each_promise_is_judged_by_itself() -> None:
    history = promised("S").promise("F", "S", "P", "e1").take("S", "P", 1, "e1").lull("P")
    assert history.broken() == {"Custody": 1}
    assert "in custody for R" in history.explained()


def test_a_calm_settles_what_was_promised_before() -> None:
    """Then everybody is there, and what has not come is owed by its producer as ever."""
    assert promised().calm().lull("P").broken() == {}
    assert promised().calm().promise("F", "R", "P", "e1").lull("P").broken() == {"Custody": 1}


# -- restores -------------------------------------------------------------------------------------


def test_a_promise_that_a_restore_has_undone_need_not_be_kept() -> None:
    history = promised().restore("F", 2.0).lull("P")
    assert history.broken() == {}
    assert history.verdict().counts.void == 1


def test_a_promise_that_is_older_than_the_backup_is_to_be_kept() -> None:
    assert promised().restore("F", 3.0).lull("P").broken() == {"Custody": 1}
    assert promised().restore("F", 3.0).take("R", "P", 1, "e1").lull("P").broken() == {}


def test_a_promise_made_after_a_restore_is_to_be_kept() -> None:
    history = promised().restore("F", 2.0).promise("F", "R", "P", "e1")
    assert history.lull("P").broken() == {"Custody": 1}


def test_a_restore_may_return_to_a_promise_that_an_earlier_one_had_undone() -> None:
    history = promised().restore("F", 2.0)
    assert history.copy().restore("F", 3.0).lull("P").broken() == {"Custody": 1}
    assert history.restore("F", 1.0).lull("P").broken() == {}


@pytest.mark.parametrize("org", ["P", "R"])
def test_after_a_restore_of_the_producer_or_the_receiver_it_may_not_be_understood(org: str) -> None:
    after = promised().restore(org, 1.0).lull("P")
    assert after.broken() == {}
    assert after.verdict().checks["Custody"] == 0
    before = History("P", "F", "R").pub("P", "e1").restore(org, 1.0).take("F", "P", 1, "e1")
    assert before.promise("F", "R", "P", "e1").lull("P").broken() == {}


@pytest.mark.parametrize("org", ["P", "R"])
def test_a_calm_after_a_restore_puts_it_right(org: str) -> None:
    history = History("P", "F", "R").restore(org, 0.0).calm().pub("P", "e1")
    history.take("F", "P", 1, "e1").promise("F", "R", "P", "e1")
    assert history.lull("P").broken() == {"Custody": 1}


def test_what_arrived_and_was_forgotten_by_a_restore_has_arrived() -> None:
    """R had said that it has it, so F holds it no longer."""
    history = promised().take("R", "P", 1, "e1").restore("R", 3.0).calm()
    history.promise("F", "R", "P", "e1").lull("P")
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 1


def test_a_restore_of_somebody_else_excuses_nothing() -> None:
    assert promised("S").restore("S", 0.0).lull("P").broken() == {"Custody": 1}


# -- leaving, and declared losses -----------------------------------------------------------------


@pytest.mark.parametrize("org", ["F", "R"])
@pytest.mark.parametrize("returns", [False, True])
def test_a_promise_ends_when_who_made_it_or_who_waits_for_it_leaves(
    org: str, returns: bool
) -> None:
    history = promised().leave(org)
    if returns:
        history.join(org, 2)
    assert history.lull("P").broken() == {}


def test_a_promise_to_a_former_self_is_none() -> None:
    history = promised().leave("R").join("R", 2).promise("F", "R", "P", "e1")
    assert history.lull("P").broken() == {}
    assert history.promise("F", "R", "P", "e1", joined=2).lull("P").broken() == {"Custody": 1}


def test_what_a_former_self_took_has_not_arrived_at_the_present_one() -> None:
    history = promised().take("R", "P", 1, "e1").leave("R").join("R", 2)
    history.promise("F", "R", "P", "e1", joined=2)
    assert history.copy().lull("P").broken() == {"Custody": 1}
    assert history.take("R", "P", 1, "e1", own=2).lull("P").broken() == {}


def test_what_a_forwarder_promises_when_it_has_left_is_not_judged() -> None:
    history = History("P", "F", "R").pub("P", "e1").take("F", "P", 1, "e1").leave("F")
    assert history.promise("F", "R", "P", "e1").lull("P").broken() == {}


def test_a_promise_does_not_need_the_publisher() -> None:
    assert promised().leave("P").lull().broken() == {"Custody": 1}


def test_what_the_producer_has_dropped_need_not_arrive() -> None:
    history = promised().cross("P", "R", 1, "e1").drop("P", "R", 1, "e1").lull("P")
    assert history.broken() == {}
    other = promised("S").cross("P", "S", 1, "e1").drop("P", "S", 1, "e1").lull("P")
    assert other.broken() == {"Custody": 1}


def test_what_the_receiver_has_consumed_as_skipped_need_not_arrive() -> None:
    history = promised().cross("P", "R", 1, "e1").skip("R", "P", 1, 1).lull("P")
    assert history.broken() == {}
    other = promised().pub("P", "e0").cross("P", "R", 1, "e0").cross("P", "R", 2, "e1")
    assert other.skip("R", "P", 1, 1).lull("P").broken() == {"Custody": 1}


def test_an_event_whose_id_was_published_again_may_be_refused() -> None:
    history = History("P", "F", "R").pub("P", "e1").restore("P", 0.0).calm().pub("P", "e1")
    assert history.promise("F", "R", "P", "e1").lull("P").broken() == {}


def test_what_a_producer_that_was_let_in_again_owed_comes_from_itself() -> None:
    """Its stream has a hole that only it can fill, and it does before it comes back."""
    assert promised().leave("P").lull("P").broken() == {"Custody": 1}
    history = promised().leave("P").join("P", 3).lull("P")
    assert history.broken() == {}
    assert history.verdict().checks["Custody"] == 0
