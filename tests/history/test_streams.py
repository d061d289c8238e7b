"""Tests that a consumer takes a stream without gaps, and that each event crosses once."""

from __future__ import annotations

import pytest

from tests.history.builder import History


def taking(*numbers: int) -> History:
    history = History("A", "B")
    for number in numbers:
        history.take("A", "B", number, f"e{number}")
    return history


def test_consecutive_numbers_from_one_keep_no_gap() -> None:
    assert taking(1, 2, 3).broken() == {}


@pytest.mark.parametrize(
    ("numbers", "times"), [((2,), 1), ((1, 3), 1), ((1, 3, 4), 1), ((1, 4, 8), 2), ((0,), 1)]
)
def test_each_gap_is_reported_once(numbers: tuple[int, ...], times: int) -> None:
    assert taking(*numbers).broken() == {"No gap": times}


def test_explanation_of_a_gap_names_the_missing_numbers() -> None:
    text = taking(1, 5).explained()
    assert "A consumed number 5 (event e5) of the stream of B (incarnation 1) at 2 s" in text
    assert "when number 2 was due: numbers 2 to 4 had been neither consumed nor declared" in text


def test_repeated_number_is_reported_and_the_stream_continues() -> None:
    history = taking(1, 2, 3, 2, 4)
    assert history.broken() == {"No gap": 1}
    assert "number 2 had been consumed before" in history.explained()


def test_skipped_numbers_count_as_consumed() -> None:
    assert taking(1).skip("A", "B", 2, 4).take("A", "B", 5, "e").broken() == {}
    assert taking(1).skip("A", "B", 3, 4).take("A", "B", 5, "e").broken() == {"No gap": 1}
    assert taking(1, 2).skip("A", "B", 2, 4).take("A", "B", 5, "e").broken() == {"No gap": 1}


def test_rewind_sets_a_stream_back_only_if_it_was_further() -> None:
    assert taking(1, 2, 3).rewind("A", "B", 2).take("A", "B", 2, "x").broken() == {}
    assert taking(1, 2, 3).rewind("A", "B", 2).take("A", "B", 4, "x").broken() == {"No gap": 1}
    assert taking(1).rewind("A", "B", 3).take("A", "B", 2, "e2").broken() == {}
    assert taking(1).rewind("A", "B", 3).take("A", "B", 3, "e3").broken() == {"No gap": 1}
    assert History("A", "B").rewind("A", "B", 1).take("A", "B", 1, "x").broken() == {}


def test_numbers_are_separate_for_each_producer_incarnation_and_consumer() -> None:
    history = taking(1, 2).join("C").take("A", "C", 1, "c1").take("C", "B", 1, "e1")
    assert history.take("A", "B", 1, "x", joined=2).take("A", "B", 3, "e3").broken() == {}


def test_consumer_that_rejoined_starts_at_one() -> None:
    history = taking(1, 2).leave("A").join("A", 2)
    history.take("A", "B", 1, "e1", own=2).skip("A", "B", 2, 3, own=2)
    assert history.take("A", "B", 4, "e4", own=2).broken() == {}
    again = taking(1, 2).leave("A").join("A", 2)
    assert again.take("A", "B", 3, "e3", own=2).broken() == {"No gap": 1}


def test_consumer_continues_its_old_stream_until_it_learns_that_it_rejoined() -> None:
    history = taking(1, 2).leave("A").join("A", 2).take("A", "B", 3, "e3")
    assert history.take("A", "B", 1, "e1", own=2).broken() == {}
    again = taking(1, 2).leave("A").join("A", 2)
    assert again.take("A", "B", 1, "e1").broken() == {"No gap": 1}


def test_rewind_sets_back_only_the_stream_of_the_consumers_incarnation() -> None:
    history = taking(1, 2).take("A", "B", 1, "e1", own=2).rewind("A", "B", 1, own=2)
    assert history.take("A", "B", 1, "x", own=2).broken() == {}
    assert history.take("A", "B", 1, "x").broken() == {"No gap": 1}


def test_restore_of_the_consumer_sets_its_stream_back() -> None:
    assert taking(1, 2, 3).restore("A", 1.0).take("A", "B", 2, "e2").broken() == {}
    assert taking(1, 2, 3).restore("A", 1.0).take("A", "B", 4, "e4").broken() == {"No gap": 1}
    assert taking(1, 2, 3).restore("B", 1.0).take("A", "B", 2, "x").broken() == {"No gap": 1}


# -- crossing once --------------------------------------------------------------------------------


def crossing() -> History:
    return History("A", "B").pub("B", "e1").cross("B", "A", 1, "e1")


def test_second_number_for_an_event_in_a_stream_breaks_minimality() -> None:
    history = crossing().cross("B", "A", 2, "e1")
    assert history.broken() == {"Minimality": 1}
    text = history.explained()
    assert "B gave event e1 number 2 in its stream to A" in text
    assert "had given it number 1 already, at 2 s (record 5)" in text


def test_event_may_cross_to_other_consumers_and_incarnations() -> None:
    history = crossing().join("C").cross("B", "C", 1, "e1")
    assert history.leave("A").join("A", 2).cross("B", "A", 1, "e1", joined=2).broken() == {}


@pytest.mark.parametrize("org", ["A", "B"])
def test_event_may_cross_again_after_a_restore_of_either_end(org: str) -> None:
    history = crossing().restore(org, 0.0).cross("B", "A", 1, "e1", epoch=1)
    assert history.broken() == {}
    assert history.cross("B", "A", 2, "e1", epoch=1).broken() == {"Minimality": 1}


def test_restore_of_a_third_organisation_excuses_no_second_crossing() -> None:
    history = crossing().join("C").restore("C", 0.0).cross("B", "A", 2, "e1")
    assert history.broken() == {"Minimality": 1}


def test_dropped_event_may_cross_once_more() -> None:
    history = crossing().drop("B", "A", 1, "e1").cross("B", "A", 2, "e1")
    assert history.broken() == {}
    assert history.cross("B", "A", 3, "e1").broken() == {"Minimality": 1}


def test_drop_of_another_event_or_for_another_consumer_allows_nothing() -> None:
    other_event = crossing().pub("B", "e2").cross("B", "A", 2, "e2").drop("B", "A", 2, "e2")
    assert other_event.cross("B", "A", 3, "e1").broken() == {"Minimality": 1}
    other_consumer = crossing().join("C").cross("B", "C", 1, "e1").drop("B", "C", 1, "e1")
    assert other_consumer.cross("B", "A", 2, "e1").broken() == {"Minimality": 1}


def test_producer_that_has_not_learned_that_it_left_sends_each_event_once() -> None:
    history = crossing().leave("B").cross("B", "A", 2, "e1")
    assert history.broken() == {"Minimality": 1}
    again = crossing().leave("B").join("B", 2).cross("B", "A", 2, "e1")
    assert again.broken() == {"Minimality": 1}
