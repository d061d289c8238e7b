"""The failures of the papers, told as stories: UARC's dying forwarder and DACE's lost publisher."""

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


class Story:
    """A small federation in which everybody wants every report."""

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

    def have(self, id: str) -> list[str]:
        """The organisations whose users have been notified of the event."""
        return [
            record["org"]
            for record in self.world.history
            if record["do"] == "ntfy" and record["event"] == id
        ]

    def promised(self) -> dict[str, str]:
        """Receiver -> the forwarder that has taken custody of an event for it."""
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


# UARC (003): a distributor crashes during a multicast, when some of the receivers have the message
# and others have not; those who have it see to it that the others get it, and there is no gap.


def test_a_forwarder_dies_in_the_middle_of_a_multicast_and_goes_on_where_it_was(disk: type) -> None:
    story = Story(disk, "Root", "A", "B", "C", "D", capability=1)  # a chain: Root, A, B, C, D
    story.publish("Root", "m1")
    story.world.run_for(1)
    assert sorted(story.have("m1")) == ["A", "B", "C", "D", "Root"]

    story.world.kill("A", KillPoint.AFTER_COMMIT)  # it has m2 in custody for B, and said nothing
    story.publish("Root", "m2")
    story.world.run_for(0.2)
    assert "A" in story.have("m2")
    assert "B" not in story.have("m2")

    story.world.start("A")
    story.world.run_for(1)
    story.publish("Root", "m3")
    story.comes_to_rest_and_holds()
    for name in ("A", "B", "C", "D"):
        order = [r["event"] for r in story.world.history if r["do"] == "take" and r["org"] == name]
        assert order == ["m1", "m2", "m3"]  # no gap, no repetition, in order


def test_a_dead_forwarder_is_bypassed_and_nobody_waits_for_it(disk: type) -> None:
    story = Story(disk, "Root", "A", "B", "C", "D", capability=1)
    story.world.kill("A")
    story.publish("Root", "m1")
    story.world.run_for(5)
    assert sorted(story.have("m1")) == ["B", "C", "D", "Root"]  # A's subtree was adopted
    story.publish("Root", "m2")
    story.world.run_for(1)
    assert sorted(story.have("m2")) == ["B", "C", "D", "Root"]  # and is not given to A again
    story.comes_to_rest_and_holds()
    assert story.have("m1").count("A") == 1
    assert story.have("m2").count("A") == 1


def test_a_forwarder_that_dies_for_good_is_made_up_for_by_the_producer(disk: type) -> None:
    story = Story(disk, "Root", "A", "B", "C", "D", capability=1)
    story.world.kill("A", KillPoint.AFTER_COMMIT)
    story.publish("Root", "m1")
    story.world.run_for(20)  # A never comes back; Root notices that nobody acknowledges
    assert sorted(set(story.have("m1"))) == ["A", "B", "C", "D", "Root"]


# DACE (004): the publisher crashes right after publishing, while the network is partitioned. When
# the partition heals, everybody has the message, because somebody still holds it.


def test_the_publisher_crashes_after_publishing_and_the_partition_heals_later(disk: type) -> None:
    story = Story(disk, "Publisher", "Beside", "Far", "Further", capability=1)
    for far in ("Far", "Further"):
        for near in ("Publisher", "Beside"):
            story.world.network.cut(near, far)
            story.world.network.cut(far, near)

    story.publish("Publisher", "m1")
    story.world.run_for(0.15)  # long enough for the first hop only
    assert story.promised() == {"Far": "Beside"}
    story.world.absent.add("Publisher")
    story.world.kill("Publisher")
    story.world.run_for(30)
    assert story.have("m1") == ["Publisher", "Beside"]

    story.world.network.heal()
    story.world.run_for(20)  # the publisher is still gone; Beside keeps its promise
    assert sorted(story.have("m1")) == ["Beside", "Far", "Further", "Publisher"]

    story.world.absent.clear()
    story.comes_to_rest_and_holds()


def test_every_event_published_during_a_partition_arrives_when_it_heals(disk: type) -> None:
    story = Story(disk, "A", "B", "C", "D", capability=2)
    for one in ("A", "B"):
        for other in ("C", "D"):
            story.world.network.cut(one, other)
            story.world.network.cut(other, one)
    for nth in range(5):
        story.publish("A", f"a{nth}")
        story.publish("D", f"d{nth}")
        story.world.run_for(1)
    assert sorted(story.have("a4")) == ["A", "B"]
    assert sorted(story.have("d4")) == ["C", "D"]
    story.comes_to_rest_and_holds()
    for nth in range(5):
        for event in (f"a{nth}", f"d{nth}"):
            assert sorted(story.have(event)) == ["A", "B", "C", "D"]


def test_who_cannot_be_reached_directly_is_reached_through_another(disk: type) -> None:
    story = Story(disk, "A", "B", "C", capability=2)
    story.world.network.cut("A", "C")
    story.publish("A", "m1")  # A finds out that it cannot reach C
    story.world.run_for(4)
    story.publish("A", "m2")
    story.world.run_for(1)
    assert "C" in story.have("m2") or "C" not in story.have("m1")  # never m2 without m1
    story.publish("A", "m3")
    story.world.run_for(6)
    story.comes_to_rest_and_holds()
