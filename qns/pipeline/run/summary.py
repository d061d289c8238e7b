"""Summary: the few numbers of a run that stand on the screen when it has ended.

At the largest number of subscriptions, added up over the federation, the mean over seeds.
"""

from __future__ import annotations

from typing import Final

from qns.pipeline.report.results import Results, Seeds, over_seeds
from qns.report.statistics import saved

WAYS: Final = ("mapping", "containment", "both")
"""What QNS does about the trivial solution, each alone and together."""

Plain = dict[str, object]


def summary(results: Results) -> list[Plain]:
    """One entry for each mapping, in plain values."""
    return [_of_mapping(results, mapping) for mapping in results.mappings]


def _of_mapping(results: Results, mapping: str) -> Plain:
    told: Plain = {"mapping": mapping}
    sizes = results.sizes("subscriptions", results.base, mapping)
    if sizes:
        largest = max(sizes)
        told["subscriptions"] = largest
        told["messages"] = _compared(sizes[largest], "changes", "messages")
        told["rows"] = _compared(sizes[largest], "live", "rows")
    published = results.sizes("notifications", results.setting_of("notifications"), mapping)
    if published:
        most = max(published)
        told["notifications"] = {
            "published": most,
            "delivered": _mean(published[most], "delivered"),
            "delivered_remote": _mean(published[most], "delivered_remote"),
            "sent": _mean(published[most], "sent"),
        }
    return told


def _compared(seeds: Seeds, trivial: str, what: str) -> Plain:
    columns = {way: f"{what}_{way}" for way in WAYS}
    return {
        "trivial": _mean(seeds, trivial),
        **{way: _mean(seeds, column) for way, column in columns.items()},
        "saved_percent": {
            way: round(over_seeds(seeds, lambda n, c=column: saved(n[trivial], n[c])).mean, 2)  # type: ignore[misc]
            for way, column in columns.items()
        },
    }


def _mean(seeds: Seeds, column: str) -> float:
    return round(over_seeds(seeds, lambda counts: counts[column]).mean, 1)
