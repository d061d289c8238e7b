"""What users and operators see of rights: warnings of subscriptions, and `qns why`."""

from __future__ import annotations

import pytest

from qns.federation.rights import ReadRule
from qns.iil.requests import ListSubscriptions, Subscribe, Subscribed, Subscriptions
from qns.simulation.world import World
from tests.edl.peers import OWNER, install, peer_of, publish, subscribe, world_of
from tests.peer.test_why import kinds, why

WIND = "Report/Wind"
DENIED = "C may not read Report/Wind of P (document version 2)"


@pytest.fixture
def world() -> World:
    """Returns a world in which C may read only reports of P, and everything of D."""
    world = world_of("P", "C", "D")
    rules = [ReadRule("Report", only=True), ReadRule("Report", "C", "D"), ReadRule("Report", "D")]
    install(world, world.federation.with_rights(rules), "P")
    world.run_for(15.0)
    return world


def listed(world: World) -> list[tuple[str, ...]]:
    found = world.do("C", ListSubscriptions(OWNER))
    assert isinstance(found, Subscriptions)
    return [each.warnings for each in found.subscriptions]


def test_subscription_to_what_may_not_be_read_is_accepted_with_a_warning(world: World) -> None:
    for text in (WIND, f"{WIND} from P", "Report"):
        made = world.do("C", Subscribe(OWNER, text))
        assert isinstance(made, Subscribed)
        assert made.warnings == (DENIED,)
    made = world.do("C", Subscribe(OWNER, f"{WIND} from D"))
    assert isinstance(made, Subscribed)
    assert made.warnings == ()


def test_listed_subscriptions_have_the_warnings_of_the_document_in_force(world: World) -> None:
    subscribe(world, "C", "s", WIND)
    assert listed(world) == [(DENIED,)]
    install(world, world.federation.with_rights(None), "P")
    world.run_for(15.0)
    assert listed(world) == [()]


def test_why_names_the_missing_right_at_the_consumer(world: World) -> None:
    subscribe(world, "C", "s", WIND)
    publish(world, "P", "w", data_class=WIND, available="INF")
    world.run_for(5.0)
    found = why(world, "C", "w", source="P", subscription="s")
    assert [fact.words for fact in found.facts if fact.kind == "warning"] == [DENIED]
    given = {"id": "w", "class": WIND, "source": "P"}
    found = why(world, "C", "w", subscription="s", given=given)
    assert [fact.words for fact in found.facts if fact.kind == "warning"] == [DENIED]
    publish(world, "D", "d", data_class=WIND)
    world.run_for(5.0)
    assert kinds(why(world, "C", "d", subscription="s")) == ["delivered"]


def test_why_names_the_missing_right_at_the_producer(world: World) -> None:
    subscribe(world, "C", "s", "Report")
    publish(world, "P", "w", data_class=WIND, available="INF")
    world.run_for(5.0)
    found = why(world, "P", "w", to="C")
    assert found.verdict == "not allowed"
    assert [fact.words for fact in found.facts if fact.kind == "not allowed"] == [DENIED]
    assert peer_of(world, "P").log.get(("P", "w")) is not None
