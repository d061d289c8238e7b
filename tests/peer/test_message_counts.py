"""Message counts: without failures no peer sends more messages than necessary."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.cbr.oracle import match, producer_view
from qns.d2q.event_json import EventReader
from qns.d2q.language import parse_subscription
from qns.edl.messages import ChangeSub, Notification, Notify
from qns.iil.requests import Publish, Subscribe, Unsubscribe
from qns.simulation.workload import make_plan
from qns.simulation.world import World

_EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=max(5, _EXAMPLES // 20))  # each example is a whole federation


def _world(seed: int, peers: int) -> World:
    world = World(seed, make_plan(seed, peers, ()).federation)
    world.start()
    world.run_for(2)
    return world


def _notifications(world: World, since: float) -> Counter[tuple[str, str]]:
    """Returns (event, organisation) -> the number of notifications sent to the organisation."""
    return Counter(
        (item.event, to)
        for at, _, to, body in world.traffic
        if at >= since and isinstance(body, Notify)
        for item in body.items
        if isinstance(item, Notification)
    )


@FEWER
@given(st.integers(0, 10**6), st.sampled_from([3, 6, 9]))
def test_only_interested_organisations_get_an_event_and_each_gets_it_once(
    seed: int, peers: int
) -> None:
    plan = make_plan(seed, peers, ())
    world = _world(seed, peers)
    interests: dict[str, dict[str, object]] = {name: {} for name in world.nodes}
    schema = world.federation.schema
    for action in [each for each in plan.actions if each.kind == "subscribe"][:12]:
        text, sub = str(action.fields["text"]), str(action.fields["sub"])
        world.do(action.org, Subscribe("user", text, id=sub))
        interests[action.org][sub] = parse_subscription(text, schema)
    world.run_for(5)
    since = world.now
    expected: Counter[tuple[str, str]] = Counter()
    for action in [each for each in plan.actions if each.kind == "publish"][:8]:
        event = EventReader(schema).from_fields({**action.fields, "source": action.org})
        if event.data_class not in world.federation[action.org].hosts:
            continue
        world.do(action.org, Publish(event))
        for name, subscriptions in interests.items():
            if name != action.org and match(subscriptions, event):  # type: ignore[arg-type]
                expected[event.id, name] = 1
    world.run_for(10)
    assert _notifications(world, since) == expected
    assert not world.messages["PullGap"]


@FEWER
@given(st.integers(0, 10**6))
def test_change_sub_is_sent_exactly_to_the_producers_whose_view_changes(seed: int) -> None:
    chance = Random(seed)
    plan = make_plan(seed, 4, ())
    world = _world(seed, 4)
    schema, federation = world.federation.schema, world.federation
    texts = [str(each.fields["text"]) for each in plan.actions if each.kind == "subscribe"]
    users: dict[str, str] = {}

    def views() -> dict[str, set[object]]:
        subscriptions = [parse_subscription(text, schema) for text in users.values()]
        return {
            name: set(producer_view(subscriptions, name, federation[name].hosts))
            for name in federation.organisations
            if name != "Met01"
        }

    for step in range(10):
        before, since = views(), world.now
        if users and chance.random() < 0.4:
            gone = chance.choice(sorted(users))
            del users[gone]
            world.do("Met01", Unsubscribe("user", gone))
        else:
            users[f"s{step}"] = chance.choice(texts)
            world.do("Met01", Subscribe("user", users[f"s{step}"], id=f"s{step}"))
        world.run_for(3)
        after = views()
        receivers = [
            to for at, _, to, body in world.traffic if at >= since and isinstance(body, ChangeSub)
        ]
        assert sorted(receivers) == sorted(name for name in after if after[name] != before[name])


@pytest.mark.parametrize("capability", [1, 2, 3])
def test_no_peer_sends_an_event_to_more_others_than_its_capability(capability: int) -> None:
    plan = make_plan(5, 9, ())
    world = World(5, plan.federation)
    world.start()
    world.run_for(2)
    for name in world.nodes:
        world.do(name, Subscribe("user", "Report", id=f"all of {name}"))
    world.run_for(3)
    reader = EventReader(world.federation.schema)
    for nth, name in enumerate(world.nodes):
        fields = {"id": f"e{nth}", "class": "Report", "source": name, "data": {"Region": "north"}}
        world.do(name, Publish(reader.from_fields(fields)))
        world.run_for(3)
    sent: Counter[tuple[str, str]] = Counter()
    for _, sender, _, body in world.traffic:
        if isinstance(body, Notify):
            sent.update((item.event, sender) for item in body.items if hasattr(item, "event"))
    assert len({event for event, _ in sent}) == 9
    for (_, sender), number in sent.items():
        assert number <= world.federation[sender].capability
