"""Metrics: what is counted of a committed turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from qns.peer import Peer
from qns.runtime.metrics import Metrics
from qns.runtime.traffic import Traffic

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("ages_s", "count", "sum_s"),
    [
        ([0.5, 2.0], 2, 2.5),
        ([-3.0, 1.0], 2, 1.0),  # a clock ahead of ours
        ([1.0, 90_000.0], 1, 1.0),
        ([1.0, 60_000_000_000.0], 1, 1.0),  # the year 1
    ],
)
def test_diffusion_is_of_events_that_can_have_been_on_their_way(
    ages_s: list[float], count: int, sum_s: float
) -> None:
    known: dict[Any, Any] = {
        ("A", str(nth)): SimpleNamespace(
            event=SimpleNamespace(published_us=round((NOW - age_s) * 1_000_000))
        )
        for nth, age_s in enumerate(ages_s)
    }
    peer = cast(Peer, SimpleNamespace(log=known))
    metrics = Metrics(Traffic())
    records = [{"do": "ntfy", "source": source, "event": id} for source, id in known]
    metrics.watch(peer, cast("list[dict[str, Any]]", records), NOW)
    page = metrics.page()[0].decode()
    assert f"qns_diffusion_seconds_count {count:.1f}" in page
    assert f"qns_diffusion_seconds_sum {sum_s:.1f}" in page
