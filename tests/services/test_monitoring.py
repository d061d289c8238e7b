"""The rules for Prometheus and the dashboard for Grafana name metrics that a peer has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.runtime.driver_stage import run, staged
from tests.runtime.test_metrics import figures

FOLDER = Path(__file__).parents[2] / "services" / "peer"
RULES = FOLDER / "prometheus-rules.yml"
DASHBOARD = json.loads((FOLDER / "grafana-dashboard.json").read_text("utf-8"))
METRIC = re.compile(r"\b(?:qns|process)_[a-z_]+")
WITH_TRAFFIC = {"qns_consumer_lag_events", "qns_soap_messages_total", "qns_merge_ratio"}
"""Metrics that a peer shows only after it has exchanged messages; docs/peer.md lists them."""


def expressions() -> list[str]:
    alerts = re.findall(r"^ +expr: (.+)$", RULES.read_text("utf-8"), re.MULTILINE)
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return alerts + panels


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    found: set[str] = set(WITH_TRAFFIC)

    async def story() -> None:
        async with staged(tmp_path_factory.mktemp("peer")) as stage:
            found.update(name.partition("{")[0] for name in figures(stage))

    run(story())
    return found


def test_every_metric_in_rules_and_dashboard_exists(metrics: set[str]) -> None:
    named = {name for each in expressions() for name in METRIC.findall(each)}
    assert len(named) > 20
    assert named <= metrics, sorted(named - metrics)


def test_metrics_that_need_traffic_are_documented() -> None:
    page = (FOLDER.parents[1] / "docs" / "peer.md").read_text("utf-8")
    for name in WITH_TRAFFIC:
        assert f"`{name}{{" in page


def test_every_alert_has_an_expression_a_severity_and_texts() -> None:
    text = RULES.read_text("utf-8")
    alerts = text.count("- alert: ")
    assert alerts > 5
    for key in ("expr", "labels: {severity", "summary", "description"):
        assert len(re.findall(rf"^ +{re.escape(key)}:", text, re.MULTILINE)) == alerts, key


def test_prometheus_accepts_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    checked = subprocess.run(
        [promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_panels_of_the_dashboard_have_titles_and_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        assert panel["title"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & cells, panel["title"]
        cells |= own
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
