"""Of two peers that run as one organisation, the one that no member calls steps down."""

from __future__ import annotations

import pytest

from qns.edl.messages import Gossip, Hello, Notified, Notify
from qns.errors import Busy
from qns.iil.requests import PullDeliveries, Subscribe
from qns.peer.outcomes import IncidentKind
from tests.edl.lone_peer import TAKEN, LonePeer
from tests.edl.test_adoption import producer_of, publish

SILENCE_S = 31.0
"""Longer than members that call a peer are silent."""


def tell(lone: LonePeer, member: str, *, later: bool) -> None:
    """Lets a member name the epoch of the peer, or a later one, in an answer."""
    lone.settle()
    publish(lone, f"e{lone.peer.identity.row.published}")
    request = lone.request(member)
    assert isinstance(request, Notify)
    own = lone.peer.identity.epoch
    standing = lone.standing_of(member, 0, epoch=own + 5 * later)
    lone.answer(member, Notified(tuple(TAKEN for _ in request.items), standing))


def surprise(lone: LonePeer, member: str) -> None:
    """Lets a member name the epoch of the peer, and then a later one."""
    tell(lone, member, later=False)
    tell(lone, member, later=True)


def test_peer_steps_down_for_its_twin_if_no_other_peer_calls_it() -> None:
    lone = producer_of("C")
    lone.wait(SILENCE_S)
    surprise(lone, "C")
    assert not lone.peer.status.is_fenced
    assert lone.peer.status.setback is IncidentKind.OWN_TWIN
    surprise(lone, "C")
    assert lone.peer.status.is_fenced


def test_peer_that_members_call_goes_on() -> None:
    lone = producer_of("C", "D")
    lone.wait(SILENCE_S)
    for _ in range(2):
        lone.receive("D", Gossip())
        surprise(lone, "C")
    assert not lone.peer.status.is_fenced


def test_called_peer_waits_until_a_copy_that_nobody_calls_has_given_way() -> None:
    """A copy needs as long to find out that nobody calls it."""
    lone = producer_of("C", "D", capability=4)
    for _ in range(12):
        lone.wait(5.0)
        lone.receive("D", Gossip())
        surprise(lone, "C")
        surprise(lone, "D")
        assert not lone.peer.status.is_fenced
    for _ in range(60):
        if not lone.peer.status.is_fenced:
            lone.wait(20.0)
            lone.receive("D", Gossip())
            surprise(lone, "C")
            surprise(lone, "D")
    assert lone.peer.status.is_fenced


def test_false_claims_of_one_member_do_not_fence_a_peer_that_others_call() -> None:
    lone = producer_of("C", "D")
    for nth in range(400):
        lone.wait(20.0)
        lone.receive("D", Gossip())
        surprise(lone, "C")
        if nth % 100 == 99:  # the process is stopped for an hour, and goes on
            lone.wait(3_600.0)
    assert not lone.peer.status.is_fenced


def test_peer_does_not_step_down_for_claims_from_before_it_was_last_called() -> None:
    lone = producer_of("C", "D", capability=4)
    for _ in range(2):
        surprise(lone, "C")
    surprise(lone, "D")
    lone.receive("D", Gossip())
    lone.wait(SILENCE_S)  # a partition separates it from all others
    assert not lone.peer.status.is_fenced


def test_claims_of_one_member_do_not_fence_a_peer_that_no_other_reaches() -> None:
    lone = producer_of("C", "D", capability=4)
    lone.wait(SILENCE_S)
    for _ in range(3):
        surprise(lone, "C")
    assert not lone.peer.status.is_fenced
    surprise(lone, "D")
    assert lone.peer.status.is_fenced


def test_member_that_never_named_the_present_epoch_shows_no_twin() -> None:
    """The later epochs that it claims may be those that this peer itself began and forgot."""
    lone = producer_of("C")
    lone.wait(SILENCE_S)
    for _ in range(3):
        tell(lone, "C", later=True)
    assert not lone.peer.edl.suggests_twin


@pytest.mark.parametrize("is_called", [False, True])
def test_peer_that_nobody_calls_compares_what_both_have_instead_of_gossiping(
    is_called: bool,
) -> None:
    lone = producer_of("C")
    lone.wait(2 * SILENCE_S)
    lone.settle()
    if is_called:
        lone.receive("C", Gossip())
    lone.wait(11.0)
    assert isinstance(lone.request("C"), Gossip if is_called else Hello)


@pytest.fixture
def fenced() -> LonePeer:
    lone = producer_of("C")
    lone.do(Subscribe("user", "Report", id="s"))
    lone.wait(SILENCE_S)
    for _ in range(2):
        surprise(lone, "C")
    assert lone.peer.status.is_fenced
    lone.settle()
    return lone


def test_peer_that_gave_way_accepts_and_sends_nothing(fenced: LonePeer) -> None:
    before = fenced.peer.identity
    (answer,) = fenced.do(Subscribe("user", "Report", id="t"))
    assert isinstance(answer, Busy)
    assert "another peer runs as P" in str(answer)
    with pytest.raises(AssertionError):
        fenced.receive("C", fenced.hello_of("C"))
    fenced.wait(100.0)
    assert not fenced.under_way
    assert fenced.peer.identity == before


def test_readers_of_a_peer_that_gave_way_are_served(fenced: LonePeer) -> None:
    (answer,) = fenced.do(PullDeliveries("user", "s"))
    assert not isinstance(answer, Busy)


def test_peer_that_gave_way_works_again_after_a_start(fenced: LonePeer) -> None:
    fenced.start()
    assert isinstance(fenced.request("C"), Hello)
    assert not fenced.peer.status.is_fenced
