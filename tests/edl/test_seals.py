"""Seals: what a producer has not signed, in this form and for this receiver, is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from time import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl.messages import (
    ANY_MEMBER,
    Entry,
    Fence,
    Item,
    Notification,
    RelayAcknowledgement,
    Skip,
    Standing,
)
from qns.edl.seals import CLOCK_TOLERANCE_S, Sealable, Sealer, Seals
from qns.errors import ValueRefused
from qns.federation.document import Federation
from qns.federation.new_certificate import new_certificate
from qns.federation.seal_keys import FileSigner, read_seal_key
from qns.peer.turn import Turn
from tests.edl.peers import federation

NOW = time()


@cache
def key(name: str, algorithm: str = "ed25519") -> tuple[str, FileSigner]:
    """Returns a certificate and its signer, the same whenever a test asks for them."""
    made = new_certificate(name, NOW, algorithm=algorithm, is_tls=False)
    return made.certificate, FileSigner.read(made.certificate, made.key)


NAMES = ("P", "A", "B", "C", "D")


def sealed_federation(*, name: str = "weather", **keys: str) -> Federation:
    """Returns a federation in which each organisation has one seal certificate.

    `keys` names other keys than those of the organisations' own names.
    """
    plain = federation(*NAMES)
    members = {
        each: replace(organisation, seals=(key(keys.get(each, each))[0],))
        for each, organisation in plain.organisations.items()
    }
    return replace(plain, name=name, organisations=members)


def seals_of(me: str, document: Federation | None = None) -> Seals:
    return Seals(me, document or sealed_federation(), read_seal_key)


def seal(*letters: tuple[Sealable, str], by: str = "P", with_key: str = "") -> list[Sealable]:
    return Sealer(by, key(with_key or by)[1]).seal("weather", letters)


TREE = Entry("A", 1, 1, 7, 0, (), (Entry("B", 1, 1, 3, 0, (), (Entry("C", 1, 1, 4, 0),)),))
EVENT = Notification("P", 1, 1, 5, "e1", b"<event/>", 0.0, TREE, ("P",))


def sealed_event() -> Notification:
    (sealed,) = seal((EVENT, "A"))
    assert isinstance(sealed, Notification)
    return sealed


def forwarded(item: Notification, *way: str) -> Notification:
    """Returns the notification as the last peer of the way sends it to the peer below it."""
    entry = item.entry
    for _ in way:
        (entry,) = entry.children
    return item._replace(entry=entry, path=("P", *way))


def test_every_receiver_of_the_tree_accepts_the_sealed_event_from_its_parent() -> None:
    item = sealed_event()
    assert seals_of("A").flaw(NOW, "P", item) is None
    assert seals_of("B").flaw(NOW, "A", forwarded(item, "A")) is None
    assert seals_of("C").flaw(NOW, "B", forwarded(item, "A", "B")) is None


def test_ancestor_that_adopts_a_subtree_may_bring_its_entries() -> None:
    item = forwarded(sealed_event(), "A", "B")
    for ancestor in ("P", "A", "B"):
        assert seals_of("C").flaw(NOW, ancestor, item) is None


def test_peer_outside_the_way_to_a_receiver_may_not_bring_its_entry() -> None:
    assert seals_of("C").flaw(NOW, "D", forwarded(sealed_event(), "A", "B")) is not None
    assert seals_of("A").flaw(NOW, "B", sealed_event()) is not None


def test_entry_for_another_receiver_is_refused_unless_it_is_to_be_relayed() -> None:
    assert seals_of("D").flaw(NOW, "P", sealed_event()) is not None
    (relayed,) = seal((EVENT, "D"))
    assert isinstance(relayed, Notification)
    assert relayed.entry.carriers == (ANY_MEMBER,)
    assert seals_of("D").flaw(NOW, "P", relayed) is None
    assert seals_of("A").flaw(NOW, "D", relayed) is None


ALTERATIONS: dict[str, Notification] = {
    "source": EVENT._replace(source="B"),
    "incarnation": EVENT._replace(producer_incarnation=2),
    "epoch": EVENT._replace(epoch=2),
    "sequence": EVENT._replace(sequence=6),
    "event": EVENT._replace(event="e2"),
    "xml": EVENT._replace(xml=b"<event />"),
    "receiver": EVENT._replace(entry=TREE._replace(receiver="D")),
    "receiver's incarnation": EVENT._replace(entry=TREE._replace(incarnation=2)),
    "epoch of the number": EVENT._replace(entry=TREE._replace(epoch=2)),
    "number": EVENT._replace(entry=TREE._replace(number=8)),
    "confirmed": EVENT._replace(entry=TREE._replace(confirmed=1)),
    "fences": EVENT._replace(entry=TREE._replace(fences=(Fence(1, 1),))),
    "child": EVENT._replace(
        entry=TREE._replace(children=(TREE.children[0]._replace(number=9),)),
    ),
}


def test_every_altered_field_is_noticed() -> None:
    genuine = sealed_event()
    for field, altered in ALTERATIONS.items():
        forged = _with_seals_of(genuine, altered)
        assert seals_of(forged.entry.receiver).flaw(NOW, "P", forged) is not None, field


def _with_seals_of(genuine: Notification, altered: Notification) -> Notification:
    """Returns the altered notification with the seal and the proofs of the genuine one."""
    return altered._replace(entry=_proofs_of(genuine.entry, altered.entry), seal=genuine.seal)


def _proofs_of(genuine: Entry, altered: Entry) -> Entry:
    pairs = zip(genuine.children, altered.children, strict=True)
    children = tuple(_proofs_of(one, other) for one, other in pairs)
    return altered._replace(children=children, carriers=genuine.carriers, proof=genuine.proof)


def test_carrier_that_a_forwarder_adds_is_noticed() -> None:
    item = forwarded(sealed_event(), "A", "B")
    entry = item.entry._replace(carriers=(*item.entry.carriers, "D"))
    assert seals_of("C").flaw(NOW, "D", item._replace(entry=entry)) is not None


def test_event_without_seal_is_refused_if_its_source_has_a_certificate() -> None:
    assert seals_of("A").flaw(NOW, "P", EVENT) is not None
    stripped = sealed_event()._replace(seal=b"")
    assert seals_of("A").flaw(NOW, "P", stripped) is not None


def test_event_without_seal_is_accepted_if_its_source_has_no_certificate() -> None:
    assert seals_of("A", federation(*NAMES)).flaw(NOW, "P", EVENT) is None


def test_seal_of_another_member_is_refused() -> None:
    (forged,) = seal((EVENT, "A"), with_key="B")
    assert isinstance(forged, Notification)
    assert seals_of("A").flaw(NOW, "P", forged) is not None


def test_seal_made_for_another_federation_is_refused() -> None:
    other = sealed_federation(name="storms")
    assert seals_of("A", other).flaw(NOW, "P", sealed_event()) is not None


def test_seal_of_a_key_that_the_next_document_no_longer_names_is_refused() -> None:
    seals, item = seals_of("A"), sealed_event()
    assert seals.flaw(NOW, "P", item) is None
    seals.apply_document(Turn(0.0), sealed_federation(P="new"))
    assert seals.flaw(NOW, "P", item) is not None
    (renewed,) = seal((EVENT, "A"), with_key="new")
    assert isinstance(renewed, Notification)
    assert seals.flaw(NOW, "P", renewed) is None


def test_seals_of_an_organisation_that_has_left_are_still_checked() -> None:
    seals, item = seals_of("A"), sealed_event()
    seals.apply_document(Turn(0.0), sealed_federation().without("P"))
    assert seals.flaw(NOW, "P", item) is None
    assert seals.flaw(NOW, "P", item._replace(xml=b"<forged/>")) is not None


def test_skip_is_sealed_with_its_last_number() -> None:
    (sealed,) = seal((Skip("P", 1, Entry("A", 1, 1, 7, 0), 9, "no longer kept"), "A"))
    assert isinstance(sealed, Skip)
    assert seals_of("A").flaw(NOW, "P", sealed) is None
    assert seals_of("A").flaw(NOW, "P", replace(sealed, last=10)) is not None
    assert seals_of("A").flaw(NOW, "P", replace(sealed, reason="")) is None  # for people only


def test_relayed_acknowledgement_is_sealed_by_its_consumer() -> None:
    standing = Standing(1, 1, 1, 1, 5, (Fence(1, 1),))
    message = RelayAcknowledgement("P", "C", standing, ("C",))
    (sealed,) = seal((message, "B"), by="C")
    assert isinstance(sealed, RelayAcknowledgement)
    assert seals_of("P").acknowledgement_flaw(NOW, sealed) is None
    further = replace(sealed, path=("C", "B"))
    assert seals_of("P").acknowledgement_flaw(NOW, further) is None
    raised = replace(sealed, standing=standing._replace(last=6))
    assert seals_of("P").acknowledgement_flaw(NOW, raised) is not None
    assert seals_of("P").acknowledgement_flaw(NOW, replace(sealed, consumer="B")) is not None
    assert seals_of("P").acknowledgement_flaw(NOW, message) is not None


@given(st.lists(st.sampled_from(["A", "B", "C", "D"]), min_size=1, max_size=30), st.data())
def test_one_signature_covers_all_messages_of_a_commit(
    receivers: list[str], data: st.DataObject
) -> None:
    items = [
        EVENT._replace(event=f"e{place}", entry=Entry(name, 1, 1, place, 0))
        for place, name in enumerate(receivers)
    ]
    sealed = seal(*((item, item.entry.receiver) for item in items))
    assert len({item.seal for item in sealed}) == 1
    for name, item in zip(receivers, sealed, strict=True):
        assert isinstance(item, Notification)
        assert seals_of(name).flaw(NOW, "P", item) is None
    at = data.draw(st.integers(0, len(items) - 1))
    forged: Item = sealed[at]._replace(xml=b"<forged/>")  # type: ignore[union-attr]
    assert seals_of(receivers[at]).flaw(NOW, "P", forged) is not None


def test_remembered_roots_are_bounded() -> None:
    seals = seals_of("A")
    for number in range(5):
        (item,) = seal((EVENT._replace(sequence=number), "A"))
        assert isinstance(item, Notification)
        assert seals.flaw(NOW, "P", item) is None
    assert len(seals._roots) == 5


def test_seal_is_refused_before_and_after_the_validity_of_its_certificate() -> None:
    seals, item = seals_of("A"), sealed_event()
    validity = read_seal_key(key("P")[0])
    assert seals.flaw(validity.begins - CLOCK_TOLERANCE_S - 1, "P", item) is not None
    assert seals.flaw(validity.ends + CLOCK_TOLERANCE_S + 1, "P", item) is not None
    assert seals.flaw(validity.ends, "P", item) is None


@pytest.mark.parametrize("algorithm", ["ecdsa-p256", "rsa-3072"])
def test_seal_may_have_the_algorithm_of_its_certificate(algorithm: str) -> None:
    pem, signer = key("P", algorithm)
    plain = federation(*NAMES)
    producer = replace(plain["P"], seals=(pem,))
    document = replace(plain, organisations={**plain.organisations, "P": producer})
    (item,) = Sealer("P", signer).seal("weather", [(EVENT, "A")])
    assert isinstance(item, Notification)
    assert seals_of("A", document).flaw(NOW, "P", item) is None
    altered = item._replace(seal=item.seal[:-1] + bytes([item.seal[-1] ^ 1]))
    assert seals_of("A", document).flaw(NOW, "P", altered) is not None


def test_key_that_does_not_fit_its_certificate_is_refused() -> None:
    other = new_certificate("P", NOW, is_tls=False)
    with pytest.raises(ValueRefused, match="does not fit"):
        FileSigner.read(key("P")[0], other.key)
