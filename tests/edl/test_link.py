"""Link: its state machine and the pauses between attempts."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl.link import LINK, Link, LinkEvent, LinkState
from qns.edl.messages import Gossip
from qns.peer.backoff import Backoff

FIRST_S, LONGEST_S = 1.0, 60.0
BACKOFF = Backoff(FIRST_S, LONGEST_S)


def test_every_link_state_can_be_reached_and_left() -> None:
    assert {state for state, _ in LINK} == set(LinkState)
    assert set(LINK.values()) == set(LinkState)
    assert {event for _, event in LINK} == set(LinkEvent)


@pytest.mark.parametrize(
    ("state", "event"),
    [(s, e) for s in LinkState for e in LinkEvent if (s, e) not in LINK],
)
def test_link_event_without_a_transition_raises_key_error(
    state: LinkState, event: LinkEvent
) -> None:
    link = Link("P", "C", BACKOFF, state=state)
    with pytest.raises(KeyError):
        link._change(event)


@given(st.lists(st.sampled_from(["answered", "unanswered", "refused"]), max_size=40))
def test_pause_of_a_link_doubles_until_a_request_is_answered(results: list[str]) -> None:
    link, now, failures = Link("P", "C", BACKOFF), 0.0, 0
    for result in results:
        assert link.state is LinkState.IDLE
        link.asks(Gossip())
        assert link.next_due() == inf
        if result == "answered":
            link.answered()
            failures = 0
        else:
            getattr(link, result)(now, "no")
            assert link.problem == "no"
            failures += 1
            longest = min(LONGEST_S, FIRST_S * 2 ** (failures - 1))
            assert longest / 2 <= link.next_due() - now <= longest
            link.end_rest(link.rest_until - 0.01)
            assert link.next_due() == link.rest_until
            now = link.rest_until
            link.end_rest(now)
        assert link.request is None
        assert link.sent == []


def test_message_from_the_other_peer_shortens_the_pause_and_never_extends_it() -> None:
    link = Link("P", "C", BACKOFF)
    for _ in range(6):
        link.asks(Gossip())
        link.unanswered(0.0)
        link.end_rest(inf)
    link.asks(Gossip())
    link.unanswered(0.0)
    assert link.rest_until > 10.0
    link.received(2.0)
    assert link.rest_until == 3.0
    link.received(2.5)
    assert link.rest_until == 3.0


def test_pause_that_the_other_peer_asks_for_replaces_the_growing_one() -> None:
    link = Link("P", "C", BACKOFF)
    for _ in range(6):
        link.asks(Gossip())
        link.unanswered(0.0)
        link.end_rest(inf)
    link.asks(Gossip())
    link.refused(0.0, "too many requests", 2.0)
    assert link.rest_until == 2.0
    link.received(0.1)
    assert link.rest_until == 2.0
    link.end_rest(2.0)
    link.asks(Gossip())
    link.refused(2.0, "too many requests", 1e9)
    assert link.rest_until == 2.0 + LONGEST_S
