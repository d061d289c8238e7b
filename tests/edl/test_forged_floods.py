"""Floods of forged items: few signatures are checked, and what is genuine arrives later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

from qns.edl.messages import Entry, Item, Notification, Notified, Notify
from qns.edl.seals import MOST_FALSE_SIGNATURES, NOT_CHECKED, Sealer
from qns.federation.seal_keys import FileSigner, SealKey
from tests.edl.lone_peer import LonePeer
from tests.edl.peers import notification
from tests.edl.test_seals import NOW, key, sealed_federation


def sealed(by: str, count: int, *, first: int = 1, together: bool = False) -> list[Item]:
    """Returns notifications of P for A, sealed with a key and the certificate of P.

    Each has a signature of its own, unless they are sealed `together`.
    """
    fingerprint = key("P")[1].fingerprint
    sealer = Sealer("P", replace(key(by)[1], fingerprint=fingerprint))
    items = [
        notification("P", f"e{number}", Entry("A", 1, 1, number, 0))
        for number in range(first, first + count)
    ]
    letters = [(each, "A") for each in items]
    groups = [letters] if together else [[each] for each in letters]
    made = [item for group in groups for item in sealer.seal("weather", group)]
    return [each for each in made if isinstance(each, Notification)]


@contextmanager
def counted_checks(peer: LonePeer) -> Iterator[list[float]]:
    """Yields a list to which each signature check of the peer adds its seconds."""
    seals, checks = peer.peer.edl.consumer.seals, list[float]()
    read = seals.read_certificate

    def counting(pem: str) -> SealKey:
        found = read(pem)

        def verify(signature: bytes, message: bytes) -> bool:
            started = perf_counter()
            fits = found.verify(signature, message)
            checks.append(perf_counter() - started)
            return fits

        return found._replace(verify=verify)

    seals.read_certificate = counting
    yield checks
    seals.read_certificate = read


def received(peer: LonePeer, items: list[Item]) -> list[Any]:
    answer = peer.receive("P", Notify(tuple(items)))
    assert isinstance(answer, Notified)
    return list(answer.outcomes)


def peer_at(name: str = "A") -> LonePeer:
    peer = LonePeer(name, sealed_federation(), now=NOW)
    peer.settle()
    return peer


def last_number(peer: LonePeer) -> int:
    stream = peer.peer.edl.consumer.streams.get(("P", 1))
    return 0 if stream is None else stream.last


def test_request_of_forged_items_costs_few_signature_checks() -> None:
    peer = peer_at()
    with counted_checks(peer) as checks:
        outcomes = received(peer, sealed("B", 1_000))
    assert len(checks) == MOST_FALSE_SIGNATURES
    assert not any(each.taken or each.permanent for each in outcomes)
    assert sum(each.reason == NOT_CHECKED for each in outcomes) == 1_000 - MOST_FALSE_SIGNATURES
    assert last_number(peer) == 0
    refused = peer.peer.edl.consumer.seals.refusals["P"]
    assert refused.number == MOST_FALSE_SIGNATURES
    assert "does not fit" in refused.reason


def test_genuine_item_behind_forged_ones_is_taken_when_it_is_sent_again() -> None:
    peer = peer_at()
    forged, genuine = sealed("B", 20, first=2), sealed("P", 1)
    outcome = received(peer, [*forged, *genuine])[-1]
    assert (outcome.taken, outcome.permanent, outcome.reason) == (False, False, NOT_CHECKED)
    assert received(peer, genuine)[-1].taken
    assert last_number(peer) == 1


def test_item_whose_root_is_verified_is_taken_behind_forged_ones() -> None:
    peer = peer_at()
    genuine = sealed("P", 2, together=True)
    assert received(peer, genuine[:1])[0].taken
    outcomes = received(peer, [*sealed("B", 20, first=3), *genuine[1:]])
    assert outcomes[-1].taken
    assert last_number(peer) == 2


def test_same_forged_root_is_checked_once_in_a_request() -> None:
    peer = peer_at()
    with counted_checks(peer) as checks:
        received(peer, sealed("B", 50, together=True))
    assert len(checks) == 1


def test_many_roots_of_an_honest_producer_are_all_checked() -> None:
    peer = peer_at()
    with counted_checks(peer) as checks:
        outcomes = received(peer, sealed("P", 30))
    assert len(checks) == 30
    assert all(each.taken for each in outcomes)


def test_wrong_signatures_of_one_request_do_not_count_in_the_next() -> None:
    peer = peer_at()
    received(peer, sealed("B", 10, first=5))
    assert received(peer, sealed("P", 1))[0].taken


def test_replaced_certificate_stops_nothing_behind_it() -> None:
    """A seal of a certificate that the document does not name costs no signature check."""
    peer = peer_at()
    former: Sealer = Sealer("P", key("C")[1])
    old = former.seal(
        "weather",
        [
            (notification("P", f"o{number}", Entry("A", 1, 1, number, 0)), "A")
            for number in range(5)
        ],
    )
    assert isinstance(former.signer, FileSigner)
    items = [each for each in old if isinstance(each, Notification)]
    outcomes = received(peer, [*items, *sealed("P", 1)])
    assert outcomes[-1].taken


def test_many_items_with_the_same_flaw_cause_one_warning() -> None:
    peer = peer_at()
    unsealed = [
        notification("P", f"e{number}", Entry("A", 1, 1, number, 0)) for number in range(1, 100)
    ]
    received(peer, list(unsealed))
    assert len(peer.last.outcomes.incidents) == 1
    assert peer.peer.edl.consumer.seals.refusals["P"].number == 99
