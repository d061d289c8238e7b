"""Tests of the benchmarks: the workloads are as described, and all engines agree."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import orjson
import pytest

from benchmarks import (
    bench_away,
    bench_evidence,
    bench_matching,
    bench_merging,
    bench_peer,
    bench_seals,
    bench_soap,
    machine,
    report,
    weather,
    workload,
)
from benchmarks.engines import FAMILIES, Family, installed
from benchmarks.soap_federation import Federated, served
from benchmarks.soap_latency import latency
from benchmarks.soap_members import Security
from qns.cbr.index import DictionaryIndex
from qns.d2q.event_json import EventReader

SUBSCRIPTIONS, EVENTS = 300, 30


@pytest.mark.parametrize("source", [workload, weather])
def test_seed_determines_the_subscriptions(source) -> None:
    first = source.subscriptions(200, seed=7)
    assert first == source.subscriptions(200, seed=7)
    assert first != source.subscriptions(200, seed=8)


def test_seed_determines_the_events() -> None:
    assert workload.events(50, seed=7) == workload.events(50, seed=7)
    assert workload.events(50, seed=7) != workload.events(50, seed=8)


def test_event_matches_about_one_subscription_in_a_thousand() -> None:
    index = DictionaryIndex(workload.subscriptions(2_000))
    reader = EventReader(workload.SCHEMA)
    events = workload.events(500)
    found = sum(len(index.match(reader.from_fields(event))) for event in events)
    assert 0.0005 < found / len(events) / len(index) < 0.002


@pytest.mark.parametrize("family", installed(), ids=lambda family: family.module)
def test_every_installed_engine_agrees_with_the_oracle(family: Family) -> None:
    subscriptions = workload.subscriptions(SUBSCRIPTIONS)
    lines = [orjson.dumps(event) for event in workload.events(EVENTS)]
    truth = bench_matching.expected_answers(subscriptions, lines, oracle_s=60)
    assert any(truth)
    for engine in family.build(subscriptions).values():
        assert bench_matching.answers_of(engine, lines) == truth


def test_engines_of_the_core_are_always_installed() -> None:
    assert {"brute_force", "dictionary_index"} <= {family.module for family in installed()}
    names = [name for family in FAMILIES for name in family.names]
    assert len(names) == len(set(names))


def test_wrong_answer_ends_the_benchmark() -> None:
    bench_matching.check("some engine", 10, [[1], [2]], [[1]])
    with pytest.raises(AssertionError, match="some engine answers event 1"):
        bench_matching.check("some engine", 10, [[1], [2]], [[1], [2, 3]])


@pytest.mark.parametrize("source", [workload, weather])
def test_covering_order_has_the_merge_set_of_the_linear_scan(source) -> None:
    row = bench_merging.one_size(source.subscriptions(400), quick=True)
    assert row["subscribe"]["ratio_scan"] > 0
    assert not row["recompute_sampled"]  # so the oracle's whole merge set was compared
    assert "merge set" in bench_merging.text({"repeats": 3, "rows": [{"workload": "some", **row}]})


def test_raw_file_keeps_other_subjects_when_one_is_measured_again(tmp_path: Path) -> None:
    facts = machine.describe()
    report.write(tmp_path, "zones", "# Zones", [1], facts, quick=False)
    report.write(tmp_path, "merging", "# Merging", [2], facts, quick=True)
    report.write(tmp_path, "zones", "# Zones", [3], facts, quick=True)
    raw = json.loads((tmp_path / report.RAW).read_text(encoding="utf-8"))
    assert {subject: part["results"] for subject, part in raw.items()} == {
        "zones": [3],
        "merging": [2],
    }
    assert facts["CPU"] in (tmp_path / "zones.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (12_345, "12,300"), (123.4, "123"), (45.12, "45.1"), (0.0123, "0.0123")],
)
def test_figure_has_three_significant_digits(value: float, shown: str) -> None:
    assert report.figure(value) == shown


def test_core_of_the_peer_is_measured_with_views_and_notifications() -> None:
    results = bench_peer.run(quick=True, on_progress=lambda _: None)
    assert set(results["elements"]) == set(bench_peer.CONSUMERS)
    assert results["consumer"]["notifications"] > 0
    assert results["consumer"]["deliveries"] > 0
    assert "| publish, 100 per turn |" in bench_peer.text(results)


@pytest.mark.parametrize("security", Security)
def test_peer_under_load_delivers_every_notification(security: Security) -> None:
    async def load() -> tuple[int, int]:
        async with Federated(security) as federation:
            for per_call in (1, 10):
                calls = federation.calls(320, per_call, fresh=True)
                took = await bench_soap.play(
                    federation.pid, federation.peer_port, calls, check=True, tls=federation.tls
                )
                assert took.seconds > 0
            return sum(federation.sent.values()), await federation.delivered()

    assert asyncio.run(load()) == (640, 640)


@pytest.mark.parametrize("security", [Security.PLAIN, Security.SEALED])
def test_latency_is_measured_for_every_delivery(security: Security) -> None:
    found = asyncio.run(latency(events=20, per_second=200, security=security))
    assert found["deliveries"] == 40
    assert 0 < found["p50"] <= found["p99"] <= found["longest"]


@pytest.mark.slow
def test_consumer_that_was_away_gets_everything_in_the_benchmark() -> None:
    results = bench_away.run(quick=True, on_progress=lambda _: None, events=500)
    assert results["owed"] == 500 + 2 * 100
    assert results["drain_seconds"] > 0.0
    assert "500 events are published while one consumer is away" in bench_away.text(results)


def test_evidence_is_measured_beside_a_consumer_without_it() -> None:
    rows = bench_evidence.run(quick=True, on_progress=lambda _: None)
    assert [row["notifications"] for row in rows] == list(bench_evidence.NUMBERS)
    assert all(row["with_bytes"] > row["without_bytes"] + 1_000 for row in rows)
    assert "| 10 in a commit |" in bench_evidence.text(rows)


def test_seals_are_measured_for_every_algorithm() -> None:
    rows = bench_seals.run(quick=True, on_progress=lambda _: None)
    assert {row["algorithm"] for row in rows} == {"ed25519", "ecdsa-p256", "rsa-3072"}
    assert all(row["check_s"] > row["hash_s"] > 0 for row in rows)
    assert "| ed25519, 10 in a commit |" in bench_seals.text(rows)


@pytest.mark.parametrize("kind", ["bare", "lean"])
def test_server_that_qns_is_compared_with_answers(kind: str) -> None:
    with served(kind) as (_, port), socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(b"POST /peer HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n<a/>")
        assert client.recv(12) == b"HTTP/1.1 200"
