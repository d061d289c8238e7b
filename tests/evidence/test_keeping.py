"""Keeping evidence: what the peer writes with each accepted event, and what it deletes later."""

from __future__ import annotations

from typing import Any

import pytest

from qns.edl.evidence_keeper import MOST_DELETED, REUSED_FOR_S
from qns.edl.messages import Envelope, Notification, Notify
from qns.errors import DuplicateId, NameNotKnown
from qns.evidence.stamping import keep_timestamp, next_batch
from qns.evidence.verification import Trust, verify
from qns.peer.inputs import Received
from qns.peer.ports import Store
from qns.peer.tables import (
    EVIDENCE,
    EVIDENCE_DOCUMENTS,
    SEALED_ROOTS,
    TIMESTAMPS,
    EvidenceRow,
    SealedRootRow,
    Table,
)
from qns.peer.turn import Transaction
from qns.simulation.node import KillPoint
from qns.simulation.world import World
from tests.edl.peers import delivered, peer_of, publish
from tests.evidence.stage import (
    KEEP_S,
    anchor,
    evidence_at,
    put_in_force,
    signed_document,
    with_seals,
    world_with_evidence,
)

DAY_S = 86_400.0


def store_of(world: World, name: str) -> Store:
    gateway = world.nodes[name].gateway
    assert gateway is not None
    return gateway.store


def rows(world: World, table: Table[Any], name: str = "B") -> list[Any]:
    return list(store_of(world, name).rows(table))


def events(world: World, name: str = "B") -> list[str]:
    return [row.event for row in rows(world, EVIDENCE, name)]


def age(world: World, by_s: float, name: str = "B") -> None:
    """Makes the rows of evidence look older, and lets the peer look for old ones."""
    store, transaction = store_of(world, name), Transaction()
    for event in store.rows(EVIDENCE):
        transaction.put(EVIDENCE, event._replace(accepted_at=event.accepted_at - by_s))
    for root in store.rows(SEALED_ROOTS):
        transaction.put(SEALED_ROOTS, root._replace(kept_at=root.kept_at - by_s))
    store.commit(transaction)
    world.run_for(130.0)


# --- what is kept ---------------------------------------------------------------------------------


def test_events_of_one_commit_share_a_row_with_the_root_and_the_document() -> None:
    world = world_with_evidence(signed_document("P", "B"))
    world.kill("B")
    publish(world, "P", "e1", "e2", "e3")
    world.start("B")
    world.run_for(5.0)
    assert events(world) == ["e1", "e2", "e3"]
    assert [row.root for row in rows(world, EVIDENCE)] == [1, 2, 2]  # e1 came in a call of its own
    assert [row.number for row in rows(world, SEALED_ROOTS)] == [1, 2]
    assert [row.version for row in rows(world, EVIDENCE_DOCUMENTS)] == [1]


def test_peer_without_the_setting_keeps_nothing() -> None:
    world = world_with_evidence(signed_document("P", "A", "B"), keepers=("B",))
    publish(world, "P", "e1")
    world.run_for(5.0)
    assert delivered(world, "A") == ["e1"]
    for table in (EVIDENCE, SEALED_ROOTS, EVIDENCE_DOCUMENTS):
        assert not rows(world, table, "A")
        assert rows(world, table, "B")


def test_event_of_an_organisation_without_a_seal_has_no_evidence() -> None:
    document = signed_document("P", "B")
    world = world_with_evidence(document)
    put_in_force(world, with_seals(document, "P"), by="P")
    publish(world, "P", "e1")
    world.run_for(5.0)
    assert delivered(world, "B") == ["e1"]
    with pytest.raises(NameNotKnown, match="there is no evidence of event e1"):
        evidence_at(world, "B", "e1")


def test_early_entries_have_their_evidence_before_the_gap_is_closed() -> None:
    document = signed_document("P", "B")
    world = world_with_evidence(document)
    begin = world.now

    def strip_first(_: str, __: str, envelope: Envelope) -> Envelope:
        if world.now > begin + 5.0 or not isinstance(envelope.body, Notify):
            return envelope
        items = tuple(
            item._replace(seal=b"")
            if isinstance(item, Notification) and item.event == "e1"
            else item
            for item in envelope.body.items
        )
        return envelope._replace(body=Notify(items))

    world.tamper = strip_first
    publish(world, "P", "e1", "e2")
    while not events(world):
        world.run_for(0.01)
    assert events(world) == ["e2"]
    assert not delivered(world, "B")
    world.run_for(30.0)
    assert events(world) == ["e2", "e1"]
    assert delivered(world, "B") == ["e1", "e2"]
    for event in ("e1", "e2"):
        assert verify(evidence_at(world, "B", event), Trust(anchor(document))).is_proved


def test_repeated_notification_adds_no_evidence() -> None:
    world = world_with_evidence(signed_document("P", "B"))
    publish(world, "P", "e1")
    world.run_for(5.0)
    (sent,) = [
        body for _, name, _, body in world.traffic if isinstance(body, Notify) and name == "P"
    ]
    world.arrive(world.nodes["B"], Received(Envelope("P", 1, (), sent)), None)
    world.run_for(5.0)
    assert events(world) == ["e1"]


@pytest.mark.parametrize("point", list(KillPoint))
def test_what_is_acknowledged_has_evidence_wherever_the_process_dies(point: KillPoint) -> None:
    document = signed_document("P", "B")
    world = world_with_evidence(document)
    world.nodes["B"].kill_point = point
    publish(world, "P", "e1", "e2")
    world.run_for(30.0)
    world.start("B")
    world.run_for(30.0)
    assert delivered(world, "B") == ["e1", "e2"]
    assert peer_of(world, "P").edl.producer.streams["B"].acknowledged == 2
    assert sorted(events(world)) == ["e1", "e2"]


def test_numbers_go_on_after_a_restart() -> None:
    document = signed_document("P", "B")
    world = world_with_evidence(document)
    publish(world, "P", "e1")
    world.run_for(5.0)
    world.kill("B")
    world.start("B")
    world.run_for(5.0)
    publish(world, "P", "e2")
    world.run_for(5.0)
    assert [(row.number, row.event) for row in rows(world, EVIDENCE)] == [(1, "e1"), (2, "e2")]
    assert [row.number for row in rows(world, SEALED_ROOTS)] == [1, 2]
    assert verify(evidence_at(world, "B", "e2"), Trust(anchor(document))).is_proved


def test_ids_of_two_organisations_are_told_apart_by_the_source() -> None:
    document = signed_document("P", "A", "B")
    world = world_with_evidence(document)
    publish(world, "P", "same")
    publish(world, "A", "same")
    world.run_for(5.0)
    with pytest.raises(DuplicateId, match="A and P"):
        evidence_at(world, "B", "same")
    for source in ("A", "P"):
        assert evidence_at(world, "B", "same", source).leaf.source == source


# --- what is deleted ------------------------------------------------------------------------------


def test_old_evidence_is_deleted_with_its_root_and_document() -> None:
    first = signed_document("P", "B")
    world = world_with_evidence(first)
    publish(world, "P", "e1")
    world.run_for(5.0)
    second = put_in_force(world, first.with_endpoints({"P": "http://127.0.0.1:9/"}), by="P")
    age(world, KEEP_S - DAY_S)
    assert events(world) == ["e1"]
    publish(world, "P", "e2")
    world.run_for(5.0)
    assert [row.version for row in rows(world, EVIDENCE_DOCUMENTS)] == [1, 2]
    before = [row.accepted_at for row in rows(world, EVIDENCE) if row.event == "e2"]
    _age_event(world, "e1", 2 * DAY_S)
    assert events(world) == ["e2"]
    assert len(rows(world, SEALED_ROOTS)) == 1
    assert [row.version for row in rows(world, EVIDENCE_DOCUMENTS)] == [second.version]
    assert before == [row.accepted_at for row in rows(world, EVIDENCE)]
    assert verify(evidence_at(world, "B", "e2"), Trust(anchor(first))).is_proved


def _age_event(world: World, event: str, by_s: float) -> None:
    """Makes one event and its root look older."""
    store, transaction = store_of(world, "B"), Transaction()
    (row,) = store.find(EVIDENCE, "event", event)
    transaction.put(EVIDENCE, row._replace(accepted_at=row.accepted_at - by_s))
    root = store.get(SEALED_ROOTS, (row.root,))
    assert root is not None
    transaction.put(SEALED_ROOTS, root._replace(kept_at=root.kept_at - by_s))
    store.commit(transaction)
    world.run_for(130.0)


def test_root_stays_as_long_as_an_event_may_need_it() -> None:
    world = world_with_evidence(signed_document("P", "B"))
    publish(world, "P", "e1")
    world.run_for(5.0)
    age(world, KEEP_S + REUSED_FOR_S / 2)
    assert not events(world)
    assert len(rows(world, SEALED_ROOTS)) == 1
    age(world, REUSED_FOR_S)
    assert not rows(world, SEALED_ROOTS)


def test_document_of_an_organisation_that_has_left_is_kept() -> None:
    first = signed_document("P", "A", "B")
    world = world_with_evidence(first)
    publish(world, "P", "e1")
    world.run_for(5.0)
    put_in_force(world, first.without("P"), by="A")
    age(world, KEEP_S + 2 * REUSED_FOR_S)
    assert not rows(world, SEALED_ROOTS)
    assert first.version in [row.version for row in rows(world, EVIDENCE_DOCUMENTS)]


def test_many_old_rows_are_deleted_in_several_turns() -> None:
    world = world_with_evidence(signed_document("P", "B"))
    transaction = Transaction()
    for number in range(1, 2 * MOST_DELETED + 10):
        row = EvidenceRow(number, number, f"old{number}", -KEEP_S - 2 * DAY_S, b"", b"", b"")
        root = SealedRootRow(number, "P", -KEEP_S - 2 * DAY_S, b"", b"", 1)
        transaction.put(EVIDENCE, row)
        transaction.put(SEALED_ROOTS, root)
    store_of(world, "B").commit(transaction)
    world.kill("B")
    world.start("B")
    assert len(rows(world, EVIDENCE)) == MOST_DELETED + 9
    world.run_for(130.0)
    assert not rows(world, EVIDENCE)
    assert not rows(world, SEALED_ROOTS)


# --- timestamps -----------------------------------------------------------------------------------


def stamp(world: World, response: bytes) -> int:
    """Keeps a timestamp for all roots that have none; returns how many these are."""
    batch = next_batch(store_of(world, "B"))
    if batch is None:
        return 0
    keep_timestamp(store_of(world, "B"), batch, response)
    return len(batch.rows)


def test_each_root_gets_one_timestamp_in_the_order_of_roots() -> None:
    world = world_with_evidence(signed_document("P", "B"))
    for event in ("e1", "e2"):
        publish(world, "P", event)
        world.run_for(1.0)
    assert stamp(world, b"one") == 2
    assert stamp(world, b"none") == 0
    publish(world, "P", "e3")
    world.run_for(1.0)
    assert stamp(world, b"two") == 1
    stamps = [evidence_at(world, "B", event).timestamp for event in ("e1", "e2", "e3")]
    assert [each and each.response for each in stamps] == [b"one", b"one", b"two"]


def test_last_timestamp_outlives_its_roots_and_numbers_of_roots_are_not_used_again() -> None:
    world = world_with_evidence(signed_document("P", "B"))
    for event, response in (("e1", b"one"), ("e2", b"two")):
        publish(world, "P", event)
        world.run_for(1.0)
        stamp(world, response)
    age(world, KEEP_S + 2 * REUSED_FOR_S)
    assert not rows(world, SEALED_ROOTS)
    assert [row.response for row in rows(world, TIMESTAMPS)] == [b"two"]
    world.kill("B")
    world.start("B")
    world.run_for(5.0)
    publish(world, "P", "e3")
    world.run_for(5.0)
    assert [row.number for row in rows(world, SEALED_ROOTS)] == [3]
    assert stamp(world, b"three") == 1


def test_root_that_was_deleted_meanwhile_stays_deleted() -> None:
    world = world_with_evidence(signed_document("P", "B"))
    publish(world, "P", "e1")
    world.run_for(1.0)
    batch = next_batch(store_of(world, "B"))
    assert batch is not None
    age(world, KEEP_S + 2 * REUSED_FOR_S)
    keep_timestamp(store_of(world, "B"), batch, b"late")
    assert not rows(world, SEALED_ROOTS)
