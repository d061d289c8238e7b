"""Peers that were restored from a backup, or lost their disk, lose no event without a report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.edl.messages import Acknowledge, Fence, Standing
from qns.errors import QnsError
from qns.peer.inputs import Effects, Outputs
from qns.peer.lineage import EPOCH_SCATTER
from qns.peer.outcomes import IncidentKind
from qns.peer.peer import Peer
from qns.peer.turn import Turn
from qns.simulation.disks import MemoryDisk
from qns.simulation.node import Backup
from qns.simulation.world import World
from qns.store.lineage import MemoryLineage
from tests.edl.peers import (
    cut,
    delivered,
    federation,
    install,
    peer_of,
    publish,
    send,
    subscribe,
    world_of,
)


def assert_restored_producer_reaches_its_consumer(world: World) -> None:
    """P publishes, is restored from its last backup and publishes again: C gets every event."""
    publish(world, "P", "e1", "e2")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e1", "e2"]
    world.put_back("P", world.nodes["P"].backups[-1])
    world.run_for(30.0)
    publish(world, "P", "e3", "e4", "e5")
    world.run_for(30.0)
    assert delivered(world, "C") == ["e1", "e2", "e3", "e4", "e5"]


def test_producer_restored_to_before_a_consumer_joined_reaches_that_consumer() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    install(world, start.without("C"), "P", "C")
    world.run_for(10.0)
    world.back_up("P")
    install(world, world.federation.with_organisation(start["C"]), "P", "C")
    world.run_for(10.0)
    subscribe(world, "C")
    world.run_for(5.0)
    assert_restored_producer_reaches_its_consumer(world)


def test_organisation_restored_to_before_its_return_reaches_the_others() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    subscribe(world, "C")
    world.run_for(2.0)
    world.back_up("P")
    install(world, start.without("P"), "P", "C")
    world.run_for(10.0)
    install(world, world.federation.with_organisation(start["P"]), "P", "C")
    world.run_for(10.0)
    assert_restored_producer_reaches_its_consumer(world)


def test_restoring_an_older_and_then_a_newer_backup_loses_no_event() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    world.back_up("P")
    cut(world, "P", "C")
    publish(world, "P", "e1", "e2", "e3")
    world.run_for(2.0)
    world.back_up("P")
    older, newer = world.nodes["P"].backups
    world.put_back("P", older)
    world.network.heal()
    world.run_for(20.0)
    publish(world, "P", "f1", "f2")
    world.run_for(20.0)
    assert delivered(world, "C") == ["f1", "f2"]
    world.put_back("P", newer)
    world.run_for(60.0)
    assert sorted(delivered(world, "C")) == ["e1", "e2", "e3", "f1", "f2"]


def test_event_published_before_a_lost_view_is_compared_reaches_its_consumer() -> None:
    world = world_of("P", "C", "D")
    world.back_up("P")
    subscribe(world, "C")
    subscribe(world, "D", text="Report where Region exists")
    world.run_for(5.0)
    cut(world, "P", "C")
    world.put_back("P", world.nodes["P"].backups[-1])
    world.run_for(2.0)
    publish(world, "P", "e1")
    world.kill("P")
    world.start("P")
    world.run_for(2.0)
    publish(world, "P", "e2")
    world.network.heal()
    world.run_for(20.0)
    publish(world, "P", "e3")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e1", "e2", "e3"]
    assert delivered(world, "D") == []
    assert not peer_of(world, "P").edl.producer.uncompared
    crossed = [(each["to"], each["event"]) for each in world.history if each["do"] == "cross"]
    assert ("D", "e3") not in crossed


@pytest.mark.parametrize("restarted", [False, True])
def test_events_after_an_unnoticed_rollback_are_not_taken_for_duplicates(restarted: bool) -> None:
    world = World(1, federation("P", "C"), epoch_scatter=EPOCH_SCATTER)
    world.start()
    subscribe(world, "C")
    world.run_for(5.0)
    world.snapshot("P")
    if restarted:  # the next epoch was used, too
        world.kill("P")
        world.start("P")
        world.run_for(5.0)
    forgotten = [f"e{number}" for number in range(10)]
    publish(world, "P", *forgotten)
    world.run_for(5.0)
    assert delivered(world, "C") == forgotten
    cut(world, "P", "C")
    world.put_back("P", world.nodes["P"].snapshots[-1])
    assert world.nodes["P"].gateway is not None
    assert not world.nodes["P"].gateway.restored
    later = [f"f{number}" for number in range(15)]
    publish(world, "P", *later)
    world.network.heal()
    world.run_for(60.0)
    notified = [record["event"] for record in world.history if record["do"] == "ntfy"]
    assert notified == [*forgotten, *later]


@pytest.mark.parametrize("seed", range(8))
def test_event_of_a_low_epoch_after_a_rollback_is_not_lost_by_a_second_restart(seed: int) -> None:
    world = World(seed, federation("P", "C"), epoch_scatter=EPOCH_SCATTER)
    world.start()
    subscribe(world, "C")
    world.run_for(5.0)
    world.snapshot("P")
    world.kill("P")
    world.start("P")
    world.run_for(5.0)
    publish(world, "P", "e1")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e1"]
    known = peer_of(world, "P").edl.producer.epoch
    cut(world, "P", "C")
    world.put_back("P", world.nodes["P"].snapshots[-1])
    publish(world, "P", "f1")  # in some of the seeds in an epoch lower than the one that C knows
    while peer_of(world, "P").edl.producer.epoch <= known:
        world.kill("P")
        world.start("P")
    world.network.heal()
    world.run_for(60.0)
    assert delivered(world, "C") == ["e1", "f1"]


def test_event_after_rows_were_lost_in_the_same_epoch_is_not_taken_for_a_duplicate() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(5.0)
    before = Backup(world.now, world.nodes["P"].disk.copy())  # what a lost write-ahead log leaves
    publish(world, "P", "e1", "e2", "e3")
    world.run_for(5.0)
    cut(world, "P", "C")
    world.put_back("P", before)
    publish(world, "P", "f1", "f2", "f3", "f4")  # C has seen three of these numbers
    world.network.heal()
    world.run_for(60.0)
    assert delivered(world, "C") == ["e1", "e2", "e3", "f1", "f2", "f3", "f4"]


def test_producer_that_meets_a_later_epoch_of_its_own_in_an_answer_begins_a_later_one() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(5.0)
    publish(world, "P", "e1")
    world.run_for(5.0)
    stream = peer_of(world, "P").edl.producer.streams["C"]
    publish(world, "P", "e2")
    later = Standing(1, 1, stream.consumer_epoch, 7, 2, (Fence(7, 2),))
    send(world, "C", "P", Acknowledge(later))
    world.run_for(0.01)
    assert peer_of(world, "P").identity.epoch == 8
    assert stream.acknowledged == 1
    world.run_for(30.0)
    assert delivered(world, "C") == ["e1", "e2"]


def test_restarts_leave_one_fence_in_a_stream() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(5.0)
    for number in range(5):
        world.kill("P")
        world.start("P")
        world.run_for(5.0)
        publish(world, "P", f"e{number}")
        world.run_for(5.0)
    assert delivered(world, "C") == [f"e{number}" for number in range(5)]
    (outbound,) = peer_of(world, "P").edl.producer.streams["C"].fences
    (inbound,) = peer_of(world, "C").edl.consumer.current("P").fences
    assert outbound == inbound == Fence(peer_of(world, "P").identity.epoch, 5)


def test_restored_consumer_gets_missing_events_despite_a_stale_acknowledgement() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1")
    world.run_for(3.0)
    world.back_up("C")
    world.network.cut("C", "P")
    publish(world, "P", "e2", "e3")
    world.run_for(10.0)
    assert delivered(world, "C") == ["e1", "e2", "e3"]
    stale = Acknowledge(peer_of(world, "C").edl.consumer.standing("P"))
    world.network.heal()
    world.network.cut("P", "C")
    world.put_back("C", world.nodes["C"].backups[-1])
    world.run_for(1.0)
    send(world, "C", "P", stale)
    world.run_for(1.0)
    world.network.heal()
    world.run_for(60.0)
    assert delivered(world, "C") == ["e1", "e2", "e3"]


def test_peer_without_store_and_lineage_delivers_new_events_or_refuses_to_publish() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1", "e2")
    world.run_for(5.0)
    node = world.nodes["P"]
    world.kill("P")
    node.disk, node.lineage = MemoryDisk(), MemoryLineage()
    world.start("P")
    world.run_for(20.0)
    try:
        publish(world, "P", "e3")
    except QnsError:
        return  # refusing is allowed as well
    world.run_for(60.0)
    assert "e3" in delivered(world, "C")


@pytest.fixture
def incidents(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, IncidentKind]]:
    """Collects the incidents of all peers: organisation and kind."""
    found: list[tuple[str, IncidentKind]] = []
    original = Peer.finish

    def finish(peer: Peer, turn: Turn, answers: Outputs) -> Effects:
        effects = original(peer, turn, answers)
        found.extend((peer.me, each.kind) for each in effects.outcomes.incidents)
        return effects

    monkeypatch.setattr(Peer, "finish", finish)
    return found


Seen = list[tuple[str, IncidentKind]]


def test_newcomer_reports_no_incident_of_a_member_that_was_restarted(incidents: Seen) -> None:
    world = world_of("P", "C")
    for _ in range(3):
        world.kill("P")
        world.start("P")
        world.run_for(2.0)
    document = world.federation.with_organisation(replace(world.federation["C"], name="N"))
    world.federation = document
    world.add("N")
    world.start("N")
    install(world, document, "P")
    world.run_for(20.0)
    assert peer_of(world, "P").federation.version == 2
    assert incidents == []
    assert not [each for each in world.history if each["do"] == "rewind"]


@pytest.mark.parametrize("keeps_lineage", [True, False])
def test_lost_store_is_reported_as_a_loss_by_the_peer_itself_and_by_others(
    incidents: Seen, keeps_lineage: bool
) -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    subscribe(world, "P", "t")
    world.run_for(2.0)
    publish(world, "P", "e1", "e2")
    world.run_for(5.0)
    assert incidents == []
    node = world.nodes["P"]
    world.kill("P")
    node.disk = MemoryDisk()
    if not keeps_lineage:
        node.lineage = MemoryLineage()
    world.start("P")
    world.run_for(20.0)
    assert set(incidents) == {("P", IncidentKind.OWN_LOSS), ("C", IncidentKind.FORGOTTEN)}
    assert peer_of(world, "P").status.setback is IncidentKind.OWN_LOSS
    world.kill("P")
    world.start("P")
    assert peer_of(world, "P").status.setback is None


def test_restored_copy_is_reported_as_a_copy_by_the_peer_itself_and_by_others(
    incidents: Seen,
) -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1")
    world.run_for(2.0)
    world.back_up("P")
    publish(world, "P", "e2")
    world.run_for(2.0)
    world.put_back("P", world.nodes["P"].backups[-1])
    world.run_for(20.0)
    assert set(incidents) == {("P", IncidentKind.OWN_COPY), ("C", IncidentKind.REWIND)}
    assert peer_of(world, "P").status.setback is IncidentKind.OWN_COPY


def test_new_peers_report_no_setback(incidents: Seen) -> None:
    world = world_of("P", "C", "D")
    world.run_for(20.0)
    assert incidents == []
    assert all(peer_of(world, name).status.setback is None for name in "PCD")


def test_subscription_of_a_restored_consumer_is_pending_until_views_are_compared() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(5.0)
    world.back_up("C")
    world.run_for(5.0)
    cut(world, "C", "P")
    world.put_back("C", world.nodes["C"].backups[-1])
    world.run_for(2.0)
    assert [each.producer for each in peer_of(world, "C").status.pending()] == ["P"]
    world.network.heal()
    world.run_for(30.0)
    assert not list(peer_of(world, "C").status.pending())
