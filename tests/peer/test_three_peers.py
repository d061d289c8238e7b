"""The worked case of semantics §10 with three whole peers; every message is counted."""

from __future__ import annotations

from collections import Counter

import pytest

from qns.edl.messages import ChangeSub, Notify
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.history.judge import judge
from qns.iil.requests import Publish, Published, Subscribe, Unsubscribe
from qns.simulation.disks import MemoryDisk, SqliteDisk
from qns.simulation.world import World
from tests.test_worked_case import E1, E2, S1, S2, S3

TEXTS = {
    "U11": "<Enterprise/Holder, ⊥, ⊥>",
    "U12": "<Enterprise/Holder, ⊥, Name.Accuracy ≤ medium>",
    "U13": '<Enterprise/Holder, FiscalCode = "MCLMSM73H17H501F", Name.Accuracy ≤ medium>',
    "U21": '<Enterprise/Holder, FiscalCode = "MCLMSM73H17H501F", Name.Accuracy ≤ medium>',
    "U22": '<Enterprise/Holder : {INPS, INAIL}, FiscalCode = "MCLMSM73H17H501F", '
    "Name.Accuracy ≤ medium>",
}


class Agencies:
    """INPS, INAIL and CoC on a network without failures."""

    def __init__(self, make_disk: type) -> None:
        self.world = World(1, AGENCIES_FEDERATION, make_disk=make_disk)
        self.world.start()
        self.world.run_for(3)

    def subscribe(self, organisation: str, user: str, text: str = "") -> None:
        self.world.do(organisation, Subscribe(user, text or TEXTS[user], id=user))
        self.world.run_for(3)

    def take_requests(self, kind: type) -> list[tuple[str, str]]:
        """Returns sender and receiver of the requests of this kind, and removes them."""
        requests = [
            (sender, to) for _, sender, to, body in self.world.traffic if isinstance(body, kind)
        ]
        self.world.traffic[:] = [
            each for each in self.world.traffic if not isinstance(each[3], kind)
        ]
        return sorted(requests)

    def table(self, producer: str) -> dict[str, set[object]]:
        """Returns the External Merge Table of a producer."""
        gateway = self.world.nodes[producer].gateway
        assert gateway is not None
        views = gateway.peer.edl.producer.table.views
        return {consumer: set(view.values()) for consumer, view in views.items() if view}

    def notified(self, event: str) -> list[str]:
        return sorted(
            record["sub"]
            for record in self.world.history
            if record["do"] == "ntfy" and record["event"] == event
        )


@pytest.fixture(params=[MemoryDisk, SqliteDisk])
def agencies(request: pytest.FixtureRequest) -> Agencies:
    agencies = Agencies(request.param)
    for user in ("U11", "U12", "U13"):
        agencies.subscribe("INPS", user)
    for user in ("U21", "U22"):
        agencies.subscribe("INAIL", user)
    return agencies


def test_five_subscriptions_cause_one_change_sub_per_consumer_and_producer(
    agencies: Agencies,
) -> None:
    assert agencies.take_requests(ChangeSub) == [
        ("INAIL", "CoC"),
        ("INAIL", "INPS"),
        ("INPS", "CoC"),
        ("INPS", "INAIL"),
    ]
    assert agencies.take_requests(Notify) == []


def test_external_merge_tables_equal_those_of_the_worked_case(agencies: Agencies) -> None:
    assert agencies.table("CoC") == {"INPS": {S1}, "INAIL": {S3}}
    assert agencies.table("INAIL") == {"INPS": {S1}}
    assert agencies.table("INPS") == {"INAIL": {S3}}


def test_e1_is_sent_once_to_both_consumers_and_e2_only_to_inps(agencies: Agencies) -> None:
    assert agencies.world.do("CoC", Publish(E1)) == Published("e1", ("INAIL", "INPS"))
    agencies.world.run_for(3)
    assert agencies.take_requests(Notify) == [("CoC", "INAIL"), ("CoC", "INPS")]
    assert agencies.notified("e1") == ["U11", "U12", "U13", "U21"]  # S4 excludes CoC

    assert agencies.world.do("CoC", Publish(E2)) == Published("e2", ("INPS",))
    agencies.world.run_for(3)
    assert agencies.take_requests(Notify) == [("CoC", "INPS")]
    assert agencies.notified("e2") == ["U11", "U12"]


def test_covered_subscription_of_a_new_user_sends_no_change_sub(agencies: Agencies) -> None:
    agencies.take_requests(ChangeSub)
    agencies.subscribe("INPS", "U14", TEXTS["U12"])
    assert agencies.take_requests(ChangeSub) == []
    assert agencies.table("CoC")["INPS"] == {S1}


def test_unsubscribing_s1_sends_s2_once_to_coc_and_inail(agencies: Agencies) -> None:
    agencies.take_requests(ChangeSub)
    agencies.world.do("INPS", Unsubscribe("U11", "U11"))
    agencies.world.run_for(3)
    assert agencies.take_requests(ChangeSub) == [("INPS", "CoC"), ("INPS", "INAIL")]
    assert agencies.table("CoC") == {"INPS": {S2}, "INAIL": {S3}}
    assert agencies.table("INAIL") == {"INPS": {S2}}


def test_local_user_of_the_producer_is_notified_without_a_message(agencies: Agencies) -> None:
    agencies.subscribe("CoC", "U31", TEXTS["U11"])
    before = Counter(agencies.world.messages)
    agencies.world.do("CoC", Publish(E2))
    agencies.world.run_for(3)
    assert "U31" in agencies.notified("e2")
    # One Notify goes to INPS and none to CoC itself.
    assert agencies.world.messages["Notify"] - before["Notify"] == 1


def test_judge_finds_no_violation_in_the_worked_case(agencies: Agencies) -> None:
    for event in (E1, E2):
        agencies.world.do("CoC", Publish(event))
    agencies.world.run_for(5)
    agencies.world.history.append({"t": agencies.world.now, "do": "calm"})
    verdict = judge(agencies.world.history)
    assert verdict.holds
    assert verdict.counts.notifications == 6
