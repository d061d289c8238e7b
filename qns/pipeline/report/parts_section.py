"""Section for the contribution of each part of QNS.

For subscriptions: trivial, mapping alone, containment alone, both, and exact merging on top. For
notifications: trivial, merge subscriptions, and trees on top.
"""

from __future__ import annotations

from typing import NamedTuple

from qns.pipeline.report.results import Results, Seeds, column, over_seeds
from qns.pipeline.report.shares import saving
from qns.pipeline.report.words import (
    PARTS,
    QNS,
    SAVINGS,
    THIN_INTERVALS,
    absent,
    joined_up,
    named,
)
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, count_text, percent_text


class _Parts(NamedTuple):
    """The counts of one mapping at the largest size that all parts have."""

    mapping: str
    size: int
    seeds: Seeds
    columns: list[tuple[str, str, int]]
    """Suffix of the columns, words and look of each part."""

    def key(self, part: str, what: str, trivial: str) -> str:
        return trivial if part == "trivial" else f"{what}_{part}"

    def share(self, part: str, what: str, trivial: str) -> Estimate:
        """The percentage of the trivial solution that the part saves."""
        return over_seeds(self.seeds, saving(self.key(part, what, trivial), trivial))

    def left(self, part: str, what: str, trivial: str) -> Estimate:
        """The percentage of the trivial solution that remains."""
        share = self.share(part, what, trivial)
        return Estimate(100 - share.mean, share.half, share.seeds)


def parts_section(results: Results) -> Section:
    """The share of the trivial solution that remains with each part, at one size."""
    name, title = "parts", "What each part contributes"
    found = [of for mapping in results.mappings if (of := _parts(results, mapping))]
    if not found:
        return absent(name, title, "it has no subscriptions")
    tables = []
    for parts in found:
        tables.append(_parts_table(parts))
        if notified := _notified(results, parts.mapping):
            tables.append(notified)
    picture = Picture(
        name,
        title,
        "Share of the trivial solution (every change is sent to and stored by all other peers) "
        f"that is left. {THIN_INTERVALS}",
        tuple(panel for parts in found for panel in _parts_panels(parts)),
    )
    return Section(name, title, joined_up(list(map(_sentence, found))), picture, tuple(tables))


def _parts(results: Results, mapping: str) -> _Parts | None:
    sizes = results.sizes("subscriptions", results.base, mapping)
    exact = {
        size: seeds
        for size, seeds in results.sizes("beyond", results.base, mapping).items()
        if size in sizes and {*seeds} >= {*sizes[size]}
    }
    size = max(exact or sizes, default=None)
    if size is None:
        return None
    seeds = {
        seed: {**counts, **exact.get(size, {}).get(seed, {})}
        for seed, counts in sizes[size].items()
    }
    columns = [("trivial", "trivial", 5), *PARTS, QNS]
    if exact:
        columns.append(("exact", "exact merging on top", 3))
    return _Parts(mapping, size, seeds, columns)


def _parts_panels(parts: _Parts) -> list[Panel]:
    panels = []
    for what, trivial, words in SAVINGS:
        lines = tuple(
            Line(label, ((0.0, parts.left(part, what, trivial)),), look)
            for part, label, look in parts.columns
        )
        head = f"{named(parts.mapping)}: {words.removesuffix(' saved')} left"
        panels.append(Panel(head, "", "", lines, bars=True))
    return panels


def _parts_table(parts: _Parts) -> Table:
    rows = []
    for part, words, _ in parts.columns:
        cells = [words]
        for what, trivial, _ in SAVINGS:
            cells += [
                count_text(over_seeds(parts.seeds, column(parts.key(part, what, trivial)))),
                "" if part == "trivial" else percent_text(parts.share(part, what, trivial)),
            ]
        rows.append(tuple(cells))
    return Table(
        f"{named(parts.mapping)}, {parts.size:,} subscriptions per organisation: the whole "
        "federation, mean over seeds",
        ("", "messages", "saved", "table rows", "saved"),
        tuple(rows),
        folded=False,
    )


def _sentence(parts: _Parts) -> str:
    left = [parts.left(part, *SAVINGS[0][:2]).mean for part, _, _ in (*PARTS, QNS)]
    return (
        f"with {parts.mapping} mapping at {parts.size:,} subscriptions per organisation "
        f"{left[0]:.1f} % of the trivial solution's messages are left by mapping alone, "
        f"{left[1]:.1f} % by containment alone and {left[2]:.1f} % by both"
    )


def _notified(results: Results, mapping: str) -> Table | None:
    """The table for notifications; None if there are none."""
    sizes = results.sizes("notifications", results.base, mapping)
    if not sizes:
        return None
    last = max(sizes)
    return Table(
        f"{named(mapping)}, {last:,} publications, "
        f"{results.subscriptions_of('notifications'):,} subscriptions per organisation: "
        "notifications between peers",
        ("", "messages", "saved", "event MB", "saved", "SOAP MB", "most sends"),
        tuple(_notified_rows(results, mapping, last, sizes[last])),
        foot="Event MB: the events' XML alone. SOAP MB: complete messages, with the subtree that "
        "those of a tree carry; not counted for the trivial solution. Most sends: of one event by "
        "one peer.",
        folded=False,
    )


def _notified_rows(
    results: Results, mapping: str, last: int, seeds: Seeds
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (
            words,
            count_text(over_seeds(seeds, column(sent))),
            percent_text(over_seeds(seeds, saving(sent, "delivered_remote"))) if saves else "",
            _megabytes(seeds, size),
            percent_text(over_seeds(seeds, saving(size, "bytes_trivial"))) if saves else "",
            "",
            "",
        )
        for words, sent, size, saves in (
            ("trivial", "delivered_remote", "bytes_trivial", False),
            ("merge subscriptions (QNS)", "sent", "bytes_sent", True),
        )
    ]
    for fan_out, by_size in results.trees(results.base, mapping).items():
        if last not in by_size:
            continue
        of_tree = (
            _megabytes(by_size[last], "bytes"),
            count_text(over_seeds(by_size[last], column("most_children"))),
        )
        if not fan_out:
            rows[1] = (*rows[1][:5], *of_tree)
            continue
        both = {seed: {**seeds.get(seed, {}), **at} for seed, at in by_size[last].items()}
        saved = percent_text(over_seeds(both, saving("sent", "delivered_remote")))
        sent = count_text(over_seeds(both, column("sent")))
        rows.append((f"trees on top, fan-out {fan_out}", sent, saved, *rows[1][3:5], *of_tree))
    return rows


def _megabytes(seeds: Seeds, name: str) -> str:
    return count_text(over_seeds(seeds, lambda at: at[name] / 1e6))
