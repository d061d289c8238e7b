"""Measures the cost of updating the merge set when one subscription begins or ends.

The baselines of the covering order are the same forest with a **linear scan** of the merge set in
place of the cover search, and **recomputing** the merge set as the oracle does. The same random
subscriptions end one by one and begin again, at constant size. The merge sets are compared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from benchmarks import weather, workload
from benchmarks.report import figure, micro, table, times
from benchmarks.timing import OnProgress, cpu_seconds, interleaved, medians, tidy
from qns.cbr import oracle
from qns.cbr.covering import CoveringOrder
from qns.cbr.delta import Delta
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription

Order = CoveringOrder[int]

WORKLOADS = {"matching workload": workload, "weather": weather}
EXACT_UP_TO = 10_000
COMPARISONS = 2_000_000
"""About how many comparisons a baseline may make in a repeat."""
FEWEST = 100
"""The least number of operations, or of candidates of the oracle."""


class LinearSearch:
    """Replaces the cover search: it compares every element of the merge set."""

    def __init__(self, elements: Iterator[Subscription]) -> None:
        self._all = dict.fromkeys(elements)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._all)

    def add(self, subscription: Subscription) -> None:
        self._all[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        del self._all[subscription]

    def any_cover(self, subscription: Subscription) -> Subscription | None:
        return next((each for each in self._all if each.contains(subscription)), None)

    def all_covered(self, subscription: Subscription) -> list[Subscription]:
        return [each for each in self._all if subscription.contains(each)]


def run(quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    sizes = (1_000, 10_000) if quick else (1_000, 10_000, 100_000)
    rows = []
    for name, source in WORKLOADS.items():
        for size in sizes:
            on_progress(f"merging: {size:,} subscriptions, {name}")
            tidy()
            rows.append({"workload": name, **one_size(source.subscriptions(size), quick)})
    return {"repeats": _repeats(quick), "rows": rows}


def one_size(subscriptions: dict[int, Subscription], quick: bool) -> dict[str, Any]:
    size = len(subscriptions)
    order: Order = CoveringOrder()
    fill_s = cpu_seconds(partial(subscribe_each, order, list(subscriptions), subscriptions))
    merge_set = order.merge_set
    most = 300 if quick else 1_000
    count = max(FEWEST, min(most, COMPARISONS // len(merge_set)))
    ids = random.Random(4).sample(sorted(subscriptions), count)
    ours: list[dict[str, float]] = []
    scans: list[dict[str, float]] = []
    for _ in range(_repeats(quick)):
        ours.append(churn(order, ids, subscriptions))
        scans.append(linear_churn(order, ids, subscriptions))
        assert order.merge_set == merge_set
    recompute_s, sampled = recompute(list(subscriptions.values()), merge_set)
    row: dict[str, Any] = {
        "size": size,
        "merge_size": len(merge_set),
        "fill_us": fill_s / size * 1e6,
        "recompute_s": recompute_s,
        "recompute_sampled": sampled,
        "operations": len(ids),
    }
    for operation in ("subscribe", "unsubscribe"):
        times_ours = [each[operation] for each in ours]
        times_scan = [each[operation] for each in scans]
        middle = medians({"ours": times_ours, "scan": times_scan})
        row[operation] = {
            "seconds": times_ours,
            "scan_seconds": times_scan,
            "us": middle["ours"] * 1e6,
            "scan_us": middle["scan"] * 1e6,
            "ratio_scan": middle["scan"] / middle["ours"],
            "ratio_recompute": recompute_s / middle["ours"],
        }
    if size <= EXACT_UP_TO:
        row["exact"] = exact(order, ids, subscriptions, quick)
    return row


def churn(
    order: Order, ids: Sequence[int], subscriptions: dict[int, Subscription]
) -> dict[str, float]:
    """Returns the CPU seconds per operation."""
    leave = cpu_seconds(lambda: [order.unsubscribe(id) for id in ids])
    come = cpu_seconds(partial(subscribe_each, order, ids, subscriptions))
    return {"unsubscribe": leave / len(ids), "subscribe": come / len(ids)}


def linear_churn(
    order: Order, ids: Sequence[int], subscriptions: dict[int, Subscription]
) -> dict[str, float]:
    """Returns the CPU seconds per operation with the linear scan, and restores the cover search.

    The merge set is the same before and after, so the cover search is still valid.
    """
    search = order._roots
    order._roots = LinearSearch(iter(search))  # type: ignore[assignment]
    seconds = churn(order, ids, subscriptions)
    assert order.merge_set == frozenset(search)
    order._roots = search
    return seconds


def subscribe_each(
    order: Order, ids: Sequence[int], subscriptions: dict[int, Subscription]
) -> None:
    for id in ids:
        order.subscribe(id, subscriptions[id])


def recompute(
    subscriptions: list[Subscription], merge_set: frozenset[Subscription]
) -> tuple[float, bool]:
    """Returns the seconds of `oracle.merge_set`, and whether they are scaled up from a sample."""
    if len(subscriptions) ** 2 <= COMPARISONS:
        found: list[set[Subscription]] = []
        seconds = cpu_seconds(lambda: found.append(oracle.merge_set(subscriptions)))
        assert found[0] == merge_set
        return seconds, False
    distinct = list(set(subscriptions))
    some = random.Random(5).sample(distinct, max(FEWEST, COMPARISONS // len(distinct)))

    def ask_some() -> None:
        for candidate in some:
            alone = not any(other != candidate and other.contains(candidate) for other in distinct)
            assert alone == (candidate in merge_set)

    return cpu_seconds(ask_some) * len(distinct) / len(some), True


def exact(
    order: Order, ids: Sequence[int], subscriptions: dict[int, Subscription], quick: bool
) -> dict[str, Any]:
    """Measures updating an exact merge with the changes of the merge set, and merging all anew."""
    merge_set = order.merge_set
    deltas = [order.unsubscribe(id) for id in ids]
    deltas += [order.subscribe(id, subscriptions[id]) for id in ids]
    changes = [delta for delta in deltas if delta]
    merged = ExactMerge(merge_set)
    works = {
        "update": partial(update_each, merged, changes),
        "anew": lambda: ExactMerge(merge_set),
    }
    seconds = interleaved(works, 1 if quick else 3)
    assert merged.subscriptions == ExactMerge(merge_set).subscriptions
    middle = medians(seconds)
    update_s = middle["update"] / max(1, len(changes))
    return {
        "size": len(merged.subscriptions),
        "changes": len(changes),
        "operations": len(deltas),
        "update_us": update_s * 1e6,
        "anew_s": middle["anew"],
        "ratio": middle["anew"] / update_s if changes else None,
        "seconds": seconds,
    }


def update_each(merged: ExactMerge, changes: Sequence[Delta[Subscription]]) -> None:
    for change in changes:
        merged.update(change)


def _repeats(quick: bool) -> int:
    return 3 if quick else 5


def text(results: dict[str, Any]) -> str:
    rows, exact_rows = [], []
    for row in results["rows"]:
        first = [row["workload"], f"{row['size']:,}", f"{row['merge_size']:,}"]
        about = "~" if row["recompute_sampled"] else ""
        for operation in ("subscribe", "unsubscribe"):
            each = row[operation]
            scan = f"{figure(each['scan_us'])} ({times(each['ratio_scan'])})"
            anew = f"{about}{micro(row['recompute_s'])} ({about}{times(each['ratio_recompute'])})"
            rows.append([*first, operation, figure(each["us"]), scan, anew])
        if done := row.get("exact"):
            ratio = times(done["ratio"]) if done["ratio"] else "–"
            share = f"{done['changes'] / done['operations']:.0%}"
            cells = [figure(done["update_us"]), f"{micro(done['anew_s'])} ({ratio})"]
            exact_rows.append([*first, f"{done['size']:,}", share, *cells])
    head = ["workload", "subscriptions", "merge set"]
    return "\n\n".join(
        [
            "# Merging",
            "Process CPU time per operation at constant size, the collector off; medians of "
            f"{results['repeats']} interleaved repeats. In brackets: how many times ours.",
            table([*head, "operation", "ours µs", "linear scan µs", "recomputing"], rows),
            "~ estimated from a random sample of the candidates, each compared with all others.",
            "## Exact merging",
            "One change of the merge set passed on, against merging the whole set anew. "
            "Most operations change nothing when there is much containment.",
            table([*head, "merged", "operations that change M", "ours µs", "anew"], exact_rows),
        ]
    )
