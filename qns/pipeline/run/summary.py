"""Summary: the numbers that the command prints at the end of a run.

They are means over seeds of the sums over the federation, at the most subscriptions.
"""

from __future__ import annotations

from typing import Final

from qns.pipeline.report.results import Results, Seeds, over_seeds
from qns.report.statistics import saved

WAYS: Final = ("mapping", "containment", "both")
"""The parts of QNS alone, and both together."""

Plain = dict[str, object]


def summary(results: Results) -> list[Plain]:
    """Returns one entry for each mapping, in plain values."""
    return [_of_mapping(results, mapping) for mapping in results.mappings]


def _of_mapping(results: Results, mapping: str) -> Plain:
    facts: Plain = {"mapping": mapping}
    sizes = results.sizes("subscriptions", results.base, mapping)
    if sizes:
        largest = max(sizes)
        facts["subscriptions"] = largest
        facts["messages"] = _compared(sizes[largest], "changes", "messages")
        facts["rows"] = _compared(sizes[largest], "live", "rows")
    published = results.sizes("notifications", results.setting_of("notifications"), mapping)
    if published:
        most = max(published)
        facts["notifications"] = {
            "published": most,
            "delivered": _mean(published[most], "delivered"),
            "delivered_remote": _mean(published[most], "delivered_remote"),
            "sent": _mean(published[most], "sent"),
        }
    return facts


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
