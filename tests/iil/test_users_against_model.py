"""A peer agrees with the naive model after any sequence of requests, waits and crashes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from qns.errors import NotAllowed
from qns.iil.requests import Publish, Published
from qns.simulation.disks import MemoryDisk, SqliteDisk
from qns.simulation.node import Disk, KillPoint
from tests.iil.model import MATCHES, NOBODY, Model, ModelEvent, ModelSubscription
from tests.iil.single_peer import SinglePeer, event

# Waits are multiples of 4 s, and everything that expires does so 2 s away from them: no request
# falls into the turn of an expiry.
LIFETIMES_S = st.sampled_from([inf, 10.0, 30.0])
AVAILABLE_S = st.sampled_from([0.0, 0.0, 6.0, 22.0, inf])
LEASE_S = 18.0
KINDS = st.sampled_from(["Report", "Report/Wind", "Report/Wind/Gust"])
REGIONS = st.sampled_from(["north", "south"])
TEXTS = st.sampled_from(list(MATCHES))
GROUPS = st.sampled_from(["desk", "desk", "", "shift"])
MOST_SUBSCRIPTIONS = 8


class UsersMachine(RuleBasedStateMachine):
    make_disk: Callable[[], Disk]
    limits: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.peer = SinglePeer(type(self).make_disk, lease_s=LEASE_S, **self.limits)
        self.model = Model()
        self.seen = 0
        self.count = 0

    def teardown(self) -> None:
        assert self.peer.violations() == []
        self.peer.close()

    def choose(self, data: st.DataObject) -> ModelSubscription:
        id = data.draw(st.sampled_from(list(self.model.subscriptions)))
        return self.model.subscriptions[id]

    # --- rules ------------------------------------------------------------------------------------

    @initialize(interests=st.lists(st.tuples(TEXTS, GROUPS), min_size=3, max_size=5))
    def open(self, interests: list[tuple[str, str]]) -> None:
        for text, group in interests:
            self.subscribe(text, group, inf)

    @precondition(lambda self: len(self.model.subscriptions) < MOST_SUBSCRIPTIONS)
    @rule(text=TEXTS, group=GROUPS, lifetime_s=LIFETIMES_S)
    def subscribe(self, text: str, group: str, lifetime_s: float) -> None:
        self.count += 1
        new = ModelSubscription(f"s{self.count}", text, group)
        answer = self.peer.subscribe(new.id, text, group=group, lifetime_s=lifetime_s)
        assert answer.expires_at == self.peer.now + lifetime_s
        new.expires_at = answer.expires_at
        self.model.subscribe(new, self.peer.now)
        self.check()
        again = self.peer.subscribe(new.id, text, group=group, lifetime_s=1)
        assert again.expires_at == new.expires_at
        self.check()

    @precondition(lambda self: self.model.subscriptions)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        leaver = self.choose(data)
        expected = self.model.dropped_by(leaver)
        assert self.peer.unsubscribe(leaver.id) == expected
        self.check()

    @precondition(lambda self: self.model.subscriptions)
    @rule(data=st.data())
    def pause_or_resume(self, data: st.DataObject) -> None:
        subscription = self.choose(data)
        paused = subscription.paused
        with pytest.raises(NotAllowed):
            (self.peer.pause if paused else self.peer.resume)(subscription.id)
        (self.peer.resume if paused else self.peer.pause)(subscription.id)
        (self.model.resume if paused else self.model.pause)(subscription)
        self.check()

    @precondition(lambda self: self.model.subscriptions)
    @rule(data=st.data(), lifetime_s=LIFETIMES_S)
    def renew(self, data: st.DataObject, lifetime_s: float) -> None:
        subscription = self.choose(data)
        subscription.expires_at = self.peer.renew(subscription.id, lifetime_s)
        assert subscription.expires_at == self.peer.now + lifetime_s
        self.check()

    @rule(events=st.lists(st.tuples(KINDS, REGIONS, AVAILABLE_S), min_size=1, max_size=4))
    def publish(self, events: list[tuple[str, str, float]]) -> None:
        for kind, region, available_s in events:
            self.publish_one(kind, region, available_s)

    @rule(kind=KINDS, region=REGIONS, available_s=AVAILABLE_S, point=st.sampled_from(KillPoint))
    def publish_and_crash(
        self, kind: str, region: str, available_s: float, point: KillPoint
    ) -> None:
        self.publish_one(kind, region, available_s, point)

    def publish_one(
        self, kind: str, region: str, available_s: float, crash: KillPoint | None = None
    ) -> None:
        self.count += 1
        id = f"e{self.count}"
        available = "INF" if available_s == inf else available_s
        request = Publish(event(id, kind=kind, data={"Region": region}, available=available))
        if crash is not None:
            self.peer.crash_during(request, crash)
        answer = self.peer.do(request)
        assert answer == Published(id, (), again=crash not in (None, KillPoint.BEFORE_COMMIT))
        published_at = self.peer.records("pub")[-1]["t"]
        self.model.publish(ModelEvent(id, kind, region, published_at + available_s))
        self.check()

    @precondition(lambda self: self.unread())
    @rule(data=st.data(), beyond=st.booleans())
    def acknowledge(self, data: st.DataObject, beyond: bool) -> None:
        subscription = data.draw(st.sampled_from(self.unread()))
        numbers = [number for number, _ in self.peer.read(subscription.id)]
        upto = data.draw(st.sampled_from([0, *numbers]))
        if beyond:
            upto = 1_000_000
        for _ in range(2):
            self.peer.acknowledge(subscription.id, upto)
            self.model.acknowledge(subscription, upto)
        self.check()

    @precondition(lambda self: self.unread())
    @rule(seconds=st.sampled_from([4.0, 12.0, 20.0, 40.0]), crash=st.booleans())
    def wait(self, seconds: float, crash: bool) -> None:
        if crash:
            self.peer.crash(down_s=seconds)
        else:
            self.peer.wait(seconds)
        self.check()

    def unread(self) -> list[ModelSubscription]:
        return [each for each in self.model.subscriptions.values() if self.model.unread(each)]

    # --- checks after each rule -------------------------------------------------------------------

    def check(self) -> None:
        model, peer = self.model, self.peer
        ending = {each.id for each in model.subscriptions.values() if each.expires_at <= peer.now}
        for record in peer.world.history[self.seen :]:
            model.observe(record)
        self.seen = len(peer.world.history)
        assert not ending & set(model.subscriptions)
        assert {row.id for row in peer.rows().get("subscriptions", [])} == set(model.subscriptions)
        for name, group in model.groups.items():
            assert not group.due, f"{group.due} not handed out in {name}"
        for each in list(model.subscriptions.values()):
            assert peer.read(each.id) == model.unread(each)
            assert peer.counters(each.id) == (len(each.numbered), 0)
            if not each.group:
                assert peer.notified(each.id) == each.numbered
        self.check_rows()

    def check_rows(self) -> None:
        model, rows = self.model, self.peer.rows()
        kept = model.kept(self.peer.now)
        assert {row.id for row in rows.get("events", [])} == kept
        assert len(self.peer.gateway.peer.log) == len(kept)
        queued = [id for each in model.singles() for id in each.waiting]
        for group in model.groups.values():
            queued += [id for id, member in group.owed.items() if member == NOBODY]
        assert sorted(row.event for row in rows.get("queued", [])) == sorted(queued)
        served = {(row.delivery_group, row.event) for row in rows.get("served", [])}
        assert served == {
            (name, id) for name, group in model.groups.items() for id in group.served & kept
        }
        unread = sum(len(model.unread(each)) for each in model.subscriptions.values())
        assert len(rows.get("deliveries", [])) == unread


class OnMemory(UsersMachine):
    make_disk = MemoryDisk


class OnSqlite(UsersMachine):
    """Has nearly everything only on the disk."""

    make_disk = SqliteDisk
    limits: ClassVar = {"unread_in_memory": 2, "events_in_memory": 2}


def with_fewer_examples(machine: type[UsersMachine]) -> Any:
    """Returns the test case with fewer examples, because each has dozens of requests."""
    examples = settings.default.max_examples if settings.default else 100
    case = machine.TestCase
    case.settings = settings(max_examples=max(20, examples // 10), stateful_step_count=40)
    return case


TestUsersOnMemory = with_fewer_examples(OnMemory)
TestUsersOnSqlite = with_fewer_examples(OnSqlite)
