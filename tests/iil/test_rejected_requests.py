"""A rejected request changes neither rows nor history nor later deliveries."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import (
    DocumentError,
    LanguageError,
    LimitExceeded,
    NameNotKnown,
    QnsError,
    Unsatisfiable,
    ValueRefused,
)
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
from tests.iil.conftest import OpenPeer
from tests.iil.single_peer import OWNER, SinglePeer

LONG = "x" * 201

REJECTED: dict[str, tuple[Subscribe, type[QnsError]]] = {
    "no text": (Subscribe(OWNER, ""), LanguageError),
    "bad text": (Subscribe(OWNER, "Report where"), LanguageError),
    "unknown class": (Subscribe(OWNER, "Rapport"), NameNotKnown),
    "unknown property": (Subscribe(OWNER, "Report where Speed > 3"), NameNotKnown),
    "wrong type": (Subscribe(OWNER, 'Report/Wind where Speed > "fast"'), ValueRefused),
    "unsatisfiable": (
        Subscribe(OWNER, "Report/Wind where Speed > 3 and Speed < 2"),
        Unsatisfiable,
    ),
    "half a surrogate": (Subscribe(OWNER, 'Report where Region = "\ud800"'), ValueRefused),
    "bad XML": (Subscribe(OWNER, "<?xml version='1.0'?><subscription>"), DocumentError),
    "long text": (Subscribe(OWNER, "Report" + " " * 1_100_000), LimitExceeded),
    "long owner": (Subscribe(LONG, "Report"), ValueRefused),
    "long id": (Subscribe(OWNER, "Report", LONG), ValueRefused),
    "long group": (Subscribe(OWNER, "Report", "s", LONG), ValueRefused),
    "NUL in an owner": (Subscribe("a\0b", "Report"), ValueRefused),
    "a line break in an id": (Subscribe(OWNER, "Report", "a\nb"), ValueRefused),
    "half a surrogate in a group": (Subscribe(OWNER, "Report", "s", "\ud800"), ValueRefused),
    "no lifetime": (Subscribe(OWNER, "Report", "s", lifetime_s=0), ValueRefused),
    "negative lifetime": (Subscribe(OWNER, "Report", "s", lifetime_s=-1), ValueRefused),
    "lifetime NaN": (Subscribe(OWNER, "Report", "s", lifetime_s=nan), ValueRefused),
    "lifetime -INF": (Subscribe(OWNER, "Report", "s", lifetime_s=-inf), ValueRefused),
}


def busy_peer(peer: SinglePeer) -> SinglePeer:
    peer.subscribe("active")
    peer.subscribe("paused")
    peer.subscribe("member", group="desk")
    peer.pause("paused")
    peer.publish("e1", available=100)
    return peer


@pytest.mark.parametrize(("request_", "error"), REJECTED.values(), ids=REJECTED)
def test_rejected_subscribe_changes_nothing(
    peer: SinglePeer, request_: Subscribe, error: type[QnsError]
) -> None:
    busy_peer(peer)
    before, recorded = peer.rows(), len(peer.world.history)
    with pytest.raises(error):
        peer.do(request_)
    assert peer.rows() == before
    assert len(peer.world.history) == recorded
    assert len(peer.gateway.peer.iil.table) == 3
    peer.publish("e2")
    peer.crash()
    assert peer.events("active") == ["e1", "e2"]


def test_names_of_maximal_length_are_accepted(peer: SinglePeer) -> None:
    name = "é" * 200
    peer.do(Subscribe(name, "Report", name, name))
    peer.publish("e1")
    peer.crash()
    answer = peer.do(PullDeliveries(name, name))
    assert len(answer.deliveries) == 1  # type: ignore[union-attr]


def test_subscribe_to_a_full_table_is_rejected_and_changes_nothing(open_peer: OpenPeer) -> None:
    peer = open_peer(most_subscriptions=2)
    peer.subscribe("s")
    peer.subscribe("t")
    before = peer.rows()
    with pytest.raises(LimitExceeded):
        peer.subscribe("u")
    assert peer.rows() == before
    peer.unsubscribe("s")
    peer.subscribe("u")


UNKNOWN_IDS: dict[str, Request] = {
    "read": PullDeliveries(OWNER, "nobody"),
    "pause": Pause(OWNER, "nobody"),
    "resume": Resume(OWNER, "nobody"),
    "renew": Renew(OWNER, "nobody"),
    "unsubscribe": Unsubscribe(OWNER, "nobody"),
    "acknowledge": AcknowledgeDeliveries(OWNER, "nobody", 1),
    "an id with a surrogate": PullDeliveries(OWNER, "\ud800\0" * 10_000),
}


@pytest.mark.parametrize("request_", UNKNOWN_IDS.values(), ids=UNKNOWN_IDS)
def test_request_for_an_unknown_subscription_is_rejected_with_a_short_message(
    peer: SinglePeer, request_: Request
) -> None:
    busy_peer(peer)
    before = peer.rows()
    with pytest.raises(NameNotKnown) as error:
        peer.do(request_)
    assert len(str(error.value)) < 500
    assert peer.rows() == before


@pytest.mark.parametrize("lifetime_s", [0, -1, nan, -inf])
def test_renewal_without_a_positive_lifetime_is_rejected(
    peer: SinglePeer, lifetime_s: float
) -> None:
    peer.subscribe("s", lifetime_s=50)
    before = peer.rows()
    with pytest.raises(ValueRefused):
        peer.renew("s", lifetime_s)
    assert peer.rows() == before


@given(text=st.text(max_size=40) | st.text("Report/Wind<>, :{}where=\"'", max_size=30))
def test_any_subscription_text_is_rejected_or_survives_a_crash(text: str) -> None:
    peer = SinglePeer()
    before = peer.rows()
    try:
        peer.subscribe("s", text)
    except QnsError:
        assert peer.rows() == before
    else:
        peer.crash()
        assert [row.text for row in peer.rows()["subscriptions"]] == [text]


@given(owner=st.text(max_size=5), id=st.text(max_size=5), group=st.text(max_size=5))
def test_any_owner_id_and_group_are_rejected_or_survive_a_crash(
    owner: str, id: str, group: str
) -> None:
    peer = SinglePeer()
    before = peer.rows()
    try:
        answer = peer.do(Subscribe(owner, "Report", id, group))
    except QnsError:
        assert peer.rows() == before
        return
    peer.crash()
    peer.publish("e1")
    assert len(peer.do(PullDeliveries(owner, answer.id)).deliveries) == 1  # type: ignore[union-attr]
