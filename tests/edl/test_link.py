"""The life of a link, and its pauses."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl.link import LINK, Happening, Link, State
from qns.edl.messages import Gossip

FIRST_S, LONGEST_S = 1.0, 60.0


def test_every_state_can_be_reached_and_left() -> None:
    assert {state for state, _ in LINK} == set(State)
    assert set(LINK.values()) == set(State)
    assert {happening for _, happening in LINK} == set(Happening)


@pytest.mark.parametrize(
    ("state", "happening"),
    [(s, h) for s in State for h in Happening if (s, h) not in LINK],
)
def test_nothing_else_happens_to_a_link(state: State, happening: Happening) -> None:
    link = Link("P", "C", FIRST_S, LONGEST_S, state=state)
    with pytest.raises(KeyError):
        link.happened(happening)


@given(st.lists(st.sampled_from(["answered", "unanswered", "refused"]), max_size=40))
def test_a_link_rests_longer_and_longer_until_it_is_answered(results: list[str]) -> None:
    link, now, failures = Link("P", "C", FIRST_S, LONGEST_S), 0.0, 0
    for result in results:
        assert link.state is State.IDLE
        link.asks(Gossip())
        assert link.deadline() == inf
        if result == "answered":
            link.answered()
            failures = 0
        else:
            getattr(link, result)(now)
            failures += 1
            longest = min(LONGEST_S, FIRST_S * 2 ** (failures - 1))
            assert longest / 2 <= link.deadline() - now <= longest
            link.rested(link.rest_until - 0.01)
            assert link.deadline() == link.rest_until
            now = link.rest_until
            link.rested(now)
        assert link.request is None
        assert link.sent == []


def test_a_word_from_the_other_shortens_the_rest_and_never_lengthens_it() -> None:
    link = Link("P", "C", FIRST_S, LONGEST_S)
    for _ in range(6):
        link.asks(Gossip())
        link.unanswered(0.0)
        link.rested(inf)
    link.asks(Gossip())
    link.unanswered(0.0)
    assert link.rest_until > 10.0
    link.heard(2.0)
    assert link.rest_until == 3.0
    link.heard(2.5)
    assert link.rest_until == 3.0
