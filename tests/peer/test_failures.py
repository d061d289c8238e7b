"""Failures that the papers describe: UARC's crashing forwarder and DACE's crashing publisher."""

from __future__ import annotations

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation, Organisation
from qns.iil.requests import Publish, Subscribe
from qns.simulation.disks import MemoryDisk, SqliteDisk
from qns.simulation.node import KillPoint
from qns.simulation.world import World
from tests.resting import comes_to_rest_and_holds


def federation(*names: str, capability: int) -> Federation:
    organisations = {
        name: Organisation(name, frozenset(WEATHER.classes), capability=capability)
        for name in names
    }
    return Federation("weather", WEATHER, organisations)


class Scenario:
    """A small federation in which every organisation subscribes to every report."""

    def __init__(self, make_disk: type, *names: str, capability: int) -> None:
        self.world = World(7, federation(*names, capability=capability), make_disk=make_disk)
        self.world.start()
        self.world.run_for(2)
        for name in names:
            self.world.do(name, Subscribe("user", "Report", id=f"user of {name}"))
        self.world.run_for(3)

    def publish(self, organisation: str, id: str) -> None:
        fields = {"id": id, "class": "Report", "source": organisation}
        self.world.do(organisation, Publish(EventReader(WEATHER).from_fields(fields)))

    def notified(self, id: str) -> list[str]:
        """Returns the organisations whose users have been notified of the event."""
        return [
            record["org"]
            for record in self.world.history
            if record["do"] == "ntfy" and record["event"] == id
        ]

    def promised(self) -> dict[str, str]:
        """Returns receiver -> the forwarder that has taken custody of an event for it."""
        return {
            record["to"]: record["org"]
            for record in self.world.history
            if record["do"] == "promise"
        }

    def comes_to_rest_and_holds(self) -> None:
        comes_to_rest_and_holds(self.world)


@pytest.fixture(params=[MemoryDisk, SqliteDisk])
def disk(request: pytest.FixtureRequest) -> type:
    return request.param  # type: ignore[no-any-return]


# UARC (003): a distributor crashes during a multicast, when only some of the receivers have the
# message. The receivers that have it forward it to the others, and there is no gap.


def test_forwarder_that_crashes_during_a_multicast_continues_after_its_restart(disk: type) -> None:
    scenario = Scenario(disk, "Root", "A", "B", "C", "D", capability=1)  # a chain: Root, A, B, C, D
    scenario.publish("Root", "m1")
    scenario.world.run_for(1)
    assert sorted(scenario.notified("m1")) == ["A", "B", "C", "D", "Root"]

    # A takes custody of m2 for B and crashes before it answers.
    scenario.world.kill("A", KillPoint.AFTER_COMMIT)
    scenario.publish("Root", "m2")
    scenario.world.run_for(0.2)
    assert "A" in scenario.notified("m2")
    assert "B" not in scenario.notified("m2")

    scenario.world.start("A")
    scenario.world.run_for(1)
    scenario.publish("Root", "m3")
    scenario.comes_to_rest_and_holds()
    for name in ("A", "B", "C", "D"):
        order = [
            r["event"] for r in scenario.world.history if r["do"] == "take" and r["org"] == name
        ]
        assert order == ["m1", "m2", "m3"]  # no gap, no repetition, in order


def test_crashed_forwarder_is_bypassed_and_delays_no_receiver(disk: type) -> None:
    scenario = Scenario(disk, "Root", "A", "B", "C", "D", capability=1)
    scenario.world.kill("A")
    scenario.publish("Root", "m1")
    scenario.world.run_for(5)
    assert sorted(scenario.notified("m1")) == ["B", "C", "D", "Root"]  # Root adopted A's subtree
    scenario.publish("Root", "m2")
    scenario.world.run_for(1)
    # Root does not use A as a forwarder again.
    assert sorted(scenario.notified("m2")) == ["B", "C", "D", "Root"]
    scenario.comes_to_rest_and_holds()
    assert scenario.notified("m1").count("A") == 1
    assert scenario.notified("m2").count("A") == 1


def test_producer_resends_events_when_a_forwarder_never_returns(disk: type) -> None:
    scenario = Scenario(disk, "Root", "A", "B", "C", "D", capability=1)
    scenario.world.kill("A", KillPoint.AFTER_COMMIT)
    scenario.publish("Root", "m1")
    scenario.world.run_for(20)  # A stays down; Root notices that acknowledgements are missing
    assert sorted(set(scenario.notified("m1"))) == ["A", "B", "C", "D", "Root"]


# DACE (004): the publisher crashes right after publishing, while the network is partitioned. When
# the partition heals, every receiver gets the message from a peer that still holds it.


def test_event_reaches_all_receivers_though_its_publisher_crashed_during_a_partition(
    disk: type,
) -> None:
    scenario = Scenario(disk, "Publisher", "Beside", "Far", "Further", capability=1)
    for far in ("Far", "Further"):
        for near in ("Publisher", "Beside"):
            scenario.world.network.cut(near, far)
            scenario.world.network.cut(far, near)

    scenario.publish("Publisher", "m1")
    scenario.world.run_for(0.15)  # long enough for the first hop only
    assert scenario.promised() == {"Far": "Beside"}
    scenario.world.absent.add("Publisher")
    scenario.world.kill("Publisher")
    scenario.world.run_for(30)
    assert scenario.notified("m1") == ["Publisher", "Beside"]

    scenario.world.network.heal()
    scenario.world.run_for(20)  # the publisher is still down; Beside keeps its promise
    assert sorted(scenario.notified("m1")) == ["Beside", "Far", "Further", "Publisher"]

    scenario.world.absent.clear()
    scenario.comes_to_rest_and_holds()


def test_events_published_during_a_partition_arrive_when_it_heals(disk: type) -> None:
    scenario = Scenario(disk, "A", "B", "C", "D", capability=2)
    for one in ("A", "B"):
        for other in ("C", "D"):
            scenario.world.network.cut(one, other)
            scenario.world.network.cut(other, one)
    for nth in range(5):
        scenario.publish("A", f"a{nth}")
        scenario.publish("D", f"d{nth}")
        scenario.world.run_for(1)
    assert sorted(scenario.notified("a4")) == ["A", "B"]
    assert sorted(scenario.notified("d4")) == ["C", "D"]
    scenario.comes_to_rest_and_holds()
    for nth in range(5):
        for event in (f"a{nth}", f"d{nth}"):
            assert sorted(scenario.notified(event)) == ["A", "B", "C", "D"]


def test_receiver_that_the_producer_cannot_reach_gets_events_through_another_peer(
    disk: type,
) -> None:
    scenario = Scenario(disk, "A", "B", "C", capability=2)
    scenario.world.network.cut("A", "C")
    scenario.publish("A", "m1")  # A detects that it cannot reach C
    scenario.world.run_for(4)
    assert "C" in scenario.notified("m1")
    scenario.publish("A", "m2")
    scenario.world.run_for(1)
    assert "C" in scenario.notified("m2")
    scenario.comes_to_rest_and_holds()
