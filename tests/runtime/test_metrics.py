"""Metrics: how outcomes are counted, and the figures of the disk, the process and the queues."""

from __future__ import annotations

from pathlib import Path
from time import time

import pytest

from qns.iil.requests import AcknowledgeDeliveries, Subscribe
from qns.peer.outcomes import Outcomes
from qns.runtime.health import Health
from qns.runtime.metrics import Metrics
from qns.runtime.reasons import REMEDIES, ReasonKind
from qns.runtime.traffic import Traffic
from tests.runtime.driver_stage import Stage, run, staged
from tests.runtime.peers import change

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
def test_diffusion_counts_only_ages_of_at_most_a_day(
    ages_s: list[float], count: int, sum_s: float
) -> None:
    metrics = Metrics(Traffic())
    published_us: list[int | None] = [round((NOW - age_s) * 1_000_000) for age_s in ages_s]
    metrics.observe(Outcomes(published_us=published_us), NOW)
    page = metrics.page()[0].decode()
    assert f"qns_diffusion_seconds_count {count:.1f}" in page
    assert f"qns_diffusion_seconds_sum {sum_s:.1f}" in page


def test_stability_is_counted_once_from_subscribe_to_the_last_producer() -> None:
    metrics = Metrics(Traffic())
    metrics.observe(Outcomes(subscribed=["slow", "quick", "ended"], stable=["quick"]), NOW)
    metrics.observe(Outcomes(ended=["ended"]), NOW + 1.0)
    metrics.observe(Outcomes(stable=["slow", "ended"]), NOW + 4.0)
    metrics.observe(Outcomes(stable=["slow"]), NOW + 9.0)
    page = metrics.page()[0].decode()
    assert "qns_subscription_stable_seconds_count 2.0" in page
    assert "qns_subscription_stable_seconds_sum 4.0" in page


def figures(stage: Stage) -> dict[str, float]:
    metrics = Metrics(Traffic())
    metrics.show(stage.driver, Health(stage.driver, stage.folder / "inps.db", time()))
    lines = metrics.page()[0].decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_metrics_have_disk_store_and_memory(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            found = figures(stage)
            assert found["qns_disk_free_bytes"] > 0
            files = [tmp_path / "inps.db", tmp_path / "inps.db-wal"]
            assert found["qns_store_bytes"] == sum(each.stat().st_size for each in files)
            assert found["process_resident_memory_bytes"] > 10_000_000
            assert found["process_open_fds"] > 3

    run(story())


def test_metrics_have_the_age_of_the_oldest_unread_delivery(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(Subscribe("anna", "Enterprise", id="S1"))
            assert figures(stage)["qns_oldest_unread_seconds"] == 0
            clock, later_s = stage.driver.now, [0.0]
            stage.driver.now = lambda: clock() + later_s[0]
            await stage.ask(change("e1"))
            later_s[0] = 100.0
            await stage.ask(change("e2"))
            later_s[0] = 300.0
            assert 300 <= figures(stage)["qns_oldest_unread_seconds"] < 360
            await stage.ask(AcknowledgeDeliveries("anna", "S1", 1))
            assert 200 <= figures(stage)["qns_oldest_unread_seconds"] < 260
            await stage.ask(AcknowledgeDeliveries("anna", "S1", 2))
            assert figures(stage)["qns_oldest_unread_seconds"] == 0

    run(story())


def test_age_of_an_unread_delivery_survives_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            await stage.ask(Subscribe("anna", "Enterprise", id="S1"))
            await stage.ask(change("e1"))
        async with staged(tmp_path) as stage:
            clock = stage.driver.now
            stage.driver.now = lambda: clock() + 500.0
            assert 500 <= figures(stage)["qns_oldest_unread_seconds"] < 560

    run(story())


def test_metrics_have_the_status_and_the_reasons_of_health(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path, silent=True) as stage:
            found = figures(stage)
            assert found['qns_health{status="ok"}'] == 1
            for kind in ReasonKind:
                assert found[f'qns_health_reasons{{kind="{kind.value}"}}'] == 0
            await stage.ask(Subscribe("anna", "Enterprise", id="S1"))
            stage.driver.refused_document = "it is of another federation"
            found = figures(stage)
            assert found['qns_health{status="ok"}'] == 0
            assert found['qns_health{status="degraded"}'] == 1
            assert found['qns_health_reasons{kind="document_refused"}'] == 1
            assert found["qns_subscriptions_pending"] == 2

    run(story())


def test_documentation_lists_every_metric_and_every_kind_of_reason(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "peer.md").read_text("utf-8")
    names: set[str] = set()

    async def story() -> None:
        async with staged(tmp_path) as stage:
            names.update(name.partition("{")[0] for name in figures(stage))

    run(story())
    bases = {
        name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for name in names
    }
    assert {"qns_store_bytes", "qns_commit_seconds"} <= bases
    assert not [name for name in sorted(bases) if f"`{name}" not in page]
    for kind in ReasonKind:
        (row,) = [each for each in page.splitlines() if f"| `{kind.value}` |" in each]
        remedy = REMEDIES[kind]
        assert f"`{remedy.command}`" in row
        assert remedy.words in row.replace("`", "")
