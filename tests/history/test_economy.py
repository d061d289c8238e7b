"""Economy: an event crosses only to an organisation with a subscription that matches it."""

from __future__ import annotations

import pytest

from tests.history.builder import History


def test_an_event_that_nobody_wants_should_stay() -> None:
    history = History("A", "B").sub("A", "U1", "Thing/Part").calm().pub("B", "e1")
    assert history.cross("B", "A", 1, "e1").broken() == {"Economy": 1}
    told = history.explained()
    assert "B sent event e1, published at 3 s (record 6), to A as number 1 at 4 s" in told
    assert "since all was calm at 2 s (record 5)" in told


def test_an_event_that_somebody_wants_crosses() -> None:
    history = History("A", "B").sub("A", "U1").calm().pub("B", "e1").cross("B", "A", 1, "e1")
    assert history.broken() == {}
    assert history.verdict().checks["Economy"] == 1


def test_a_paused_subscription_wants_it_too() -> None:
    history = History("A", "B").sub("A", "U1").pause("A", "U1").calm().pub("B", "e1")
    assert history.cross("B", "A", 1, "e1").broken() == {}


def test_what_ended_after_the_calm_excuses_and_what_ended_before_does_not() -> None:
    after = History("A", "B").sub("A", "U1").calm().usub("A", "U1").pub("B", "e1")
    assert after.cross("B", "A", 1, "e1").broken() == {}
    before = History("A", "B").sub("A", "U1").usub("A", "U1").calm().pub("B", "e1")
    assert before.cross("B", "A", 1, "e1").broken() == {"Economy": 1}


def test_a_subscription_that_begins_before_the_crossing_excuses() -> None:
    late = History("A", "B").calm().pub("B", "e1", 60).sub("A", "U1").cross("B", "A", 1, "e1")
    assert late.broken() == {}
    too_late = History("A", "B").calm().pub("B", "e1", 60).cross("B", "A", 1, "e1").sub("A", "U1")
    assert too_late.broken() == {"Economy": 1}


def test_without_a_calm_before_the_publication_nothing_is_judged() -> None:
    history = History("A", "B").pub("B", "e1").calm().cross("B", "A", 1, "e1")
    assert history.broken() == {}
    assert history.verdict().checks["Economy"] == 0


@pytest.mark.parametrize("org", ["A", "B"])
@pytest.mark.parametrize("what", ["restore", "join"])
def test_after_a_disturbance_it_is_not_judged_until_the_next_calm(org: str, what: str) -> None:
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


def test_subscriptions_of_a_former_self_want_nothing() -> None:
    history = History("A", "B").sub("A", "U1").leave("A").join("A", 2).calm().pub("B", "e1")
    assert history.cross("B", "A", 1, "e1", joined=2).broken() == {"Economy": 1}
