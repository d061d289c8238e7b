"""Small tables with chosen numbers, in the schemas of the jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from qns.d2q.shipped import WEATHER
from qns.pipeline.tables import TABLES
from qns.pipeline.workload.scenario import Scenario, Workload, hosts_of

SIZES = (100, 1_000, 10_000)
Share = Callable[[Scenario, int], float]
"""The share of the trivial solution that is left, for a scenario at a size."""


def scenarios(
    mappings: Iterable[str] = ("partial", "full"),
    seeds: int = 3,
    organisations: int = 10,
    churn: float = 0.0,
    workload: Workload | None = None,
    sizes: tuple[int, ...] = SIZES,
) -> list[Scenario]:
    return [
        Scenario(
            WEATHER,
            hosts_of(WEATHER, organisations, mapping),
            mapping,
            seed,
            sizes,
            churn,
            workload or Workload(),
        )
        for mapping in mappings
        for seed in range(seeds)
    ]


def described(of: Sequence[Scenario]) -> list[dict[str, object]]:
    return [{**each.described(), "id": each.id} for each in of]


def falling(scenario: Scenario, size: int) -> float:
    """The share that is left falls with the size, slightly different for each seed."""
    return 3.0 / size**0.4 + 0.002 * scenario.seed


def subscriptions(of: Sequence[Scenario], left: Share = falling) -> pa.Table:
    rows = []
    for scenario in of:
        for organisation in scenario.hosts:
            for producer, classes in scenario.hosts.items():
                if producer == organisation:
                    continue
                for size in scenario.checkpoints:
                    hosted = len(classes) / 7
                    both = round(size * left(scenario, size) * hosted)
                    rows.append(
                        {
                            **_labels(scenario),
                            "organisation": organisation,
                            "producer": producer,
                            "arrived": size,
                            "changes": size,
                            "live": size,
                            "messages_mapping": round(size * hosted),
                            "messages_containment": round(size * left(scenario, size)),
                            "messages_both": both,
                            "rows_mapping": round(size * hosted),
                            "rows_containment": round(size * left(scenario, size)),
                            "rows_both": both,
                        }
                    )
    return _table("subscriptions", rows)


def beyond(of: Sequence[Scenario], exact: dict[str, float]) -> pa.Table:
    """`exact` has rows, terms, bytes and messages as shares of those without exact merging."""
    rows = []
    for scenario in of:
        for organisation in scenario.hosts:
            for producer in scenario.hosts:
                if producer == organisation:
                    continue
                for size in scenario.checkpoints:
                    before = {
                        "rows": size,
                        "terms": 4 * size,
                        "bytes": 500 * size,
                        "messages": 2 * size,
                    }
                    row: dict[str, Any] = {
                        **_labels(scenario),
                        "organisation": organisation,
                        "producer": producer,
                        "arrived": size,
                    }
                    for what, count in before.items():
                        row[f"{what}_mapping"] = 2 * count
                        row[f"{what}_both"] = count
                        row[f"{what}_exact"] = round(count * exact[what])
                    del row["messages_mapping"]
                    rows.append(row)
    return _table("beyond", rows)


def notifications(of: Sequence[Scenario], sent: float, subscribed: int = 100) -> pa.Table:
    """`sent` is a share of delivered."""
    return _table(
        "notifications",
        [
            {
                **_labels(scenario),
                "publisher": publisher,
                "subscriptions": subscribed,
                "published": published,
                "delivered": 10 * published + scenario.seed,
                "delivered_remote": 9 * published,
                "sent": round(10 * published * sent),
                "bytes_trivial": 9_000 * published,
                "bytes_sent": round(10_000 * published * sent),
            }
            for scenario in of
            for publisher in scenario.hosts
            for published in (100, 1_000)
        ],
    )


def trees(of: Sequence[Scenario], links: dict[int, int], children: dict[int, int]) -> pa.Table:
    """`links` maps fan-outs to most connections, `children` to most sends of one event."""
    return _table(
        "trees",
        [
            {
                **_labels(scenario),
                "subscriptions": 100,
                "published": published,
                "fan_out": fan_out,
                "sent": 4 * published,
                "bytes": 4_000 * published + fan_out,
                "most_children": children[fan_out],
                "depth_sum": 6 * published if fan_out else 4 * published,
                "most_depth": 3 if fan_out else 1,
                "multicasts": published,
                "connections_sum": 50,
                "most_connections": most,
            }
            for scenario in of
            for published in (100, 1_000)
            for fan_out, most in links.items()
        ],
    )


def cost(of: Sequence[Scenario], exponent: float, job: str = "merge") -> pa.Table:
    return _table(
        "cost",
        [
            {
                **_labels(scenario),
                "job": job,
                "organisation": organisation,
                "arrived": size,
                "peak_bytes": 2**27,
                "seconds": 1e-5 * (1 + 0.1 * scenario.seed) * size**exponent,
            }
            for scenario in of
            for organisation in scenario.hosts
            for size in scenario.checkpoints
        ],
    )


def _labels(scenario: Scenario) -> dict[str, object]:
    return {
        "scenario": scenario.id,
        "mapping": scenario.mapping,
        "organisations": len(scenario.hosts),
        "churn": scenario.churn,
        "seed": scenario.seed,
    }


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, TABLES[name])
