"""Ownership: other owners can neither use a subscription nor find out that it exists."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qns.errors import DuplicateId, NameNotKnown
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Pause,
    PullDeliveries,
    Renew,
    Request,
    Resume,
    Subscribe,
    Unsubscribe,
)
from tests.iil.single_peer import SinglePeer

REQUESTS: dict[str, Callable[[str, str], Request]] = {
    "read": PullDeliveries,
    "pause": Pause,
    "resume": Resume,
    "renew": Renew,
    "unsubscribe": Unsubscribe,
    "acknowledge": lambda owner, id: AcknowledgeDeliveries(owner, id, 1),
}


@pytest.mark.parametrize("paused", [False, True], ids=["active", "paused"])
@pytest.mark.parametrize("make_request", REQUESTS.values(), ids=REQUESTS)
def test_requests_for_a_subscription_of_another_owner_are_rejected_and_change_nothing(
    peer: SinglePeer, make_request: Callable[[str, str], Request], paused: bool
) -> None:
    peer.subscribe("secret")
    peer.subscribe("of bob", owner="bob")
    peer.publish("e1")
    if paused:
        peer.pause("secret")
    before = peer.rows()
    with pytest.raises(NameNotKnown):
        peer.do(make_request("bob", "secret"))
    assert peer.rows() == before
    peer.crash()
    with pytest.raises(NameNotKnown):
        peer.do(make_request("bob", "secret"))
    assert peer.read("secret") == [(1, "e1")]


@pytest.mark.parametrize("make_request", REQUESTS.values(), ids=REQUESTS)
def test_error_for_another_owner_is_the_same_as_for_an_unknown_id(
    make_request: Callable[[str, str], Request],
) -> None:
    messages = []
    for exists in (True, False):
        peer = SinglePeer()
        peer.subscribe("of bob", owner="bob")
        if exists:
            peer.subscribe("of ann")
        with pytest.raises(NameNotKnown) as error:
            peer.do(make_request("bob", "of ann"))
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "of bob" in messages[0]


def test_another_owner_cannot_reuse_the_id_of_a_subscription(peer: SinglePeer) -> None:
    peer.subscribe("s")
    before = peer.rows()
    with pytest.raises(DuplicateId):
        peer.do(Subscribe("bob", "Report", "s"))
    assert peer.rows() == before


def test_acknowledgement_of_one_owner_does_not_affect_another_owner(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.subscribe("t", owner="bob")
    peer.publish("e1", "e2")
    peer.acknowledge("s", 2)
    peer.crash()
    answer = peer.do(PullDeliveries("bob", "t"))
    assert [each.event for each in answer.deliveries] == ["e1", "e2"]  # type: ignore[union-attr]


def test_owner_of_a_subscription_survives_a_crash(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.crash()
    with pytest.raises(NameNotKnown):
        peer.do(Unsubscribe("bob", "s"))
    assert peer.unsubscribe("s") == 0
