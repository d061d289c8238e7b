"""Quotas: buckets that refill, a refusal that says when to come back, and accounts of members."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from qns.peer.tuning import Tuning
from qns.runtime.quotas import (
    BURST_S,
    BYTES,
    CPU,
    REQUESTS,
    SHOWN_S,
    QuotaExceeded,
    Quotas,
)

TUNING = Tuning(requests_per_s=10, bytes_per_s=1_000, cpu_share=0.5)


@dataclass
class Stage:
    now: float = 100.0
    quotas: Quotas = field(init=False)

    def __post_init__(self) -> None:
        self.quotas = Quotas(TUNING, lambda: ("A", "B"), lambda: self.now)

    def admitted(self, member: str = "A", *, size: int = 1, requests: int = 1_000) -> int:
        """Sends requests until one is refused; returns how many were not."""
        for number in range(requests):
            if self.quotas.admit(member, size) is not None:
                return number
        return requests

    def refusal(self, member: str = "A", size: int = 1) -> QuotaExceeded:
        problem = self.quotas.admit(member, size)
        assert problem is not None
        return problem


def test_member_may_send_a_burst_and_then_its_rate() -> None:
    stage = Stage()
    assert stage.admitted() == 10 * BURST_S
    for _ in range(5):
        stage.now += 1.0
        assert stage.admitted() == pytest.approx(10, abs=1)


def test_refusal_names_the_member_the_quota_and_the_time_after_which_it_fits() -> None:
    stage = Stage()
    stage.admitted()
    refusal = stage.refusal()
    assert "A sends more than the quota requests_per_s" in str(refusal)
    assert "10 requests a second" in str(refusal)
    assert 0 < refusal.retry_after_s <= 1
    stage.now += refusal.retry_after_s + 0.001
    assert stage.admitted() == 1


def test_large_requests_are_bounded_by_their_bytes() -> None:
    stage = Stage()
    assert stage.admitted(size=500) == 1_000 * BURST_S / 500
    assert BYTES in str(stage.refusal())


def test_one_request_may_overdraw_and_the_debt_is_bounded() -> None:
    stage = Stage()
    assert stage.admitted(size=10**9) == 1
    assert stage.refusal().retry_after_s == pytest.approx(BURST_S)


def test_others_are_not_refused_while_one_member_is() -> None:
    stage = Stage()
    stage.admitted("A")
    stage.refusal("A")
    assert stage.admitted("B") == 10 * BURST_S


def test_refused_requests_cost_the_member_nothing() -> None:
    stage = Stage()
    stage.admitted()
    for _ in range(1_000):
        stage.refusal()
    stage.now += 1.0
    assert stage.admitted() == pytest.approx(10, abs=1)


def test_member_that_occupies_the_peer_longer_than_its_share_is_refused() -> None:
    stage = Stage()
    stage.quotas.charge_all({"A": 2 * BURST_S, "B": 0.1})
    assert CPU in str(stage.refusal("A"))
    assert stage.admitted("B") > 0


def test_members_that_want_all_the_time_get_their_shares() -> None:
    stage = Stage()
    used = {"A": 0.0, "B": 0.0}
    for _ in range(4_000):
        stage.now += 0.01
        for member in used:
            if stage.quotas.admit(member, 0) is None:
                stage.quotas.charge(member, 0.1)
                used[member] += 0.1
    for seconds in used.values():
        assert seconds == pytest.approx(0.5 * (40.0 + BURST_S), rel=0.1)


def test_who_is_no_member_has_no_account() -> None:
    stage = Stage()
    for number in range(100):
        assert stage.quotas.admit(f"stranger {number}", 10**9) is None
        stage.quotas.charge(f"stranger {number}", 1.0)
    assert not stage.quotas._accounts


def test_excesses_are_counted_for_each_member_and_quota_and_shown_for_a_while() -> None:
    stage = Stage()
    stage.admitted("A")
    stage.refusal("A")
    assert stage.admitted("B", size=10**9) == 1
    stage.refusal("B")
    found = {(each.member, each.quota): each.refused for each in stage.quotas.recent_excesses()}
    assert found == {("A", REQUESTS): 2, ("B", BYTES): 2}
    stage.now += SHOWN_S + 1
    assert not list(stage.quotas.recent_excesses())
    assert len(list(stage.quotas.excesses())) == 2
