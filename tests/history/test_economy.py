"""Tests of Economy: an event crosses only to organisations with a matching subscription."""

from __future__ import annotations

import pytest

from tests.history.builder import History


def test_crossing_of_an_unwanted_event_breaks_economy() -> None:
    history = History("A", "B").sub("A", "U1", "Thing/Part").calm().pub("B", "e1")
    assert history.cross("B", "A", 1, "e1").broken() == {"Economy": 1}
    text = history.explained()
    assert "B sent event e1, published at 3 s (record 6), to A as number 1 at 4 s" in text
    assert "since all was calm at 2 s (record 5)" in text


def test_crossing_of_a_wanted_event_keeps_economy() -> None:
    history = History("A", "B").sub("A", "U1").calm().pub("B", "e1").cross("B", "A", 1, "e1")
    assert history.broken() == {}
    assert history.verdict().checks["Economy"] == 1


def test_paused_subscription_justifies_a_crossing() -> None:
    history = History("A", "B").sub("A", "U1").pause("A", "U1").calm().pub("B", "e1")
    assert history.cross("B", "A", 1, "e1").broken() == {}


def test_ended_subscription_justifies_a_crossing_only_if_it_ended_after_the_calm() -> None:
    after = History("A", "B").sub("A", "U1").calm().usub("A", "U1").pub("B", "e1")
    assert after.cross("B", "A", 1, "e1").broken() == {}
    before = History("A", "B").sub("A", "U1").usub("A", "U1").calm().pub("B", "e1")
    assert before.cross("B", "A", 1, "e1").broken() == {"Economy": 1}


def test_subscription_justifies_a_crossing_only_if_it_began_before_it() -> None:
    late = History("A", "B").calm().pub("B", "e1", 60).sub("A", "U1").cross("B", "A", 1, "e1")
    assert late.broken() == {}
    too_late = History("A", "B").calm().pub("B", "e1", 60).cross("B", "A", 1, "e1").sub("A", "U1")
    assert too_late.broken() == {"Economy": 1}


def test_economy_is_not_judged_without_a_calm_before_the_publication() -> None:
    history = History("A", "B").pub("B", "e1").calm().cross("B", "A", 1, "e1")
    assert history.broken() == {}
    assert history.verdict().checks["Economy"] == 0


@pytest.mark.parametrize("org", ["A", "B"])
@pytest.mark.parametrize("what", ["restore", "join"])
def test_economy_is_not_judged_between_a_disturbance_and_the_next_calm(org: str, what: str) -> None:
    history = History("A", "B").calm()
    joined = {"A": 1, "B": 1}
    if what == "restore":
        history.restore(org, 0.0)
    else:
        joined[org] = 2
        history.leave(org).join(org, 2)
    history.pub("B", "e1", joined=joined["B"])
    history.cross("B", "A", 1, "e1", joined=joined["A"])
    assert history.broken() == {}
    history.calm().pub("B", "e2", joined=joined["B"])
    history.cross("B", "A", 2, "e2", joined=joined["A"])
    assert history.broken() == {"Economy": 1}


def test_economy_is_not_judged_between_a_start_of_the_producer_and_the_next_calm() -> None:
    history = History("A", "B").calm().start("B", 2).pub("B", "e1").cross("B", "A", 1, "e1")
    assert history.broken() == {}
    assert history.verdict().checks["Economy"] == 0
    assert history.calm().pub("B", "e2").cross("B", "A", 2, "e2").broken() == {"Economy": 1}


def test_start_of_the_consumer_does_not_justify_a_crossing() -> None:
    history = History("A", "B").calm().start("A", 2).pub("B", "e1").cross("B", "A", 1, "e1")
    assert history.broken() == {"Economy": 1}


def test_subscription_of_an_earlier_incarnation_does_not_justify_a_crossing() -> None:
    history = History("A", "B").sub("A", "U1").leave("A").join("A", 2).calm().pub("B", "e1")
    assert history.cross("B", "A", 1, "e1", joined=2).broken() == {"Economy": 1}


def test_relay_of_an_event_that_is_not_owed_to_its_receiver_breaks_economy() -> None:
    history = History("A", "B", "C").pub("A", "e1").relay("B", "C", "A", "e1").calm()
    assert history.broken() == {"Economy": 1}
    assert "B relayed event e1 of A to C at 2 s (record 6), though A had given" in (
        history.explained()
    )


def test_relay_of_an_owed_event_keeps_economy_and_is_counted_apart() -> None:
    history = History("A", "B", "C").pub("A", "e1").relay("B", "C", "A", "e1")
    history = history.cross("A", "C", 1, "e1").calm()  # the clock of A is behind that of B
    assert history.broken() == {}
    assert history.verdict().checks["Economy"] == 1
    assert history.verdict().counts.relayed == 1
