"""What each part contributes, shown apart: trivial, mapping alone, containment alone, both, exact
merging on top; and of notifications: trivial, merge subscriptions, trees on top.
"""

from __future__ import annotations

from qns.pipeline.report.paper_sections import PARTS, QNS, absent, joined_up, named
from qns.pipeline.report.results import Results, Seeds, column, over_seeds
from qns.pipeline.report.shares import saving
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, count_text, percent_text


def parts_section(results: Results) -> Section:
    """What is left of the trivial solution, part by part, at one size."""
    name, title = "parts", "What each part contributes"
    panels, tables, sentences = [], [], []
    for mapping in results.mappings:
        sizes = results.sizes("subscriptions", results.base, mapping)
        exact = {
            size: seeds
            for size, seeds in results.sizes("beyond", results.base, mapping).items()
            if size in sizes and {*seeds} >= {*sizes[size]}
        }
        size = max(exact or sizes, default=None)
        if size is None:
            continue
        seeds = {
            seed: {**counts, **exact.get(size, {}).get(seed, {})}
            for seed, counts in sizes[size].items()
        }
        columns = [("trivial", "trivial", 5), *PARTS, QNS]
        if exact:
            columns.append(("exact", "exact merging on top", 3))
        lines: dict[str, list[Line]] = {"messages": [], "rows": []}
        rows = []
        for part, words, look in columns:
            cells = [words]
            for what, trivial in (("messages", "changes"), ("rows", "live")):
                key = trivial if part == "trivial" else f"{what}_{part}"
                share = over_seeds(seeds, saving(key, trivial))
                left = Estimate(100 - share.mean, share.half, share.seeds)
                lines[what].append(Line(words, ((0.0, left),), look))
                cells += [
                    count_text(over_seeds(seeds, column(key))),
                    "" if part == "trivial" else percent_text(share),
                ]
            rows.append(tuple(cells))
        for what in ("messages", "rows"):
            head = f"{named(mapping)}: {'messages' if what == 'messages' else 'table rows'} left"
            panels.append(Panel(head, "", "", tuple(lines[what]), bars=True))
        tables.append(
            Table(
                f"{named(mapping)}, {size:,} subscriptions per organisation: the whole federation, "
                "mean over seeds",
                ("", "messages", "saved", "table rows", "saved"),
                tuple(rows),
                folded=False,
            )
        )
        told = _notified(results, mapping)
        if told:
            tables.append(told)
        kept = [lines["messages"][nth].points[0][1].mean for nth in range(1, 4)]
        sentences.append(
            f"with {mapping} mapping at {size:,} subscriptions per organisation "
            f"{kept[0]:.1f} % of the trivial solution's messages are left by mapping alone, "
            f"{kept[1]:.1f} % by containment alone and {kept[2]:.1f} % by both"
        )
    if not panels:
        return absent(name, title, "it has no subscriptions")
    picture = Picture(
        name,
        title,
        "What is left of the trivial solution (every change is sent to and stored by all other "
        "peers). Thin lines: 95 % confidence interval over seeds.",
        tuple(panels),
    )
    return Section(name, title, joined_up(sentences), picture, tuple(tables))


def _notified(results: Results, mapping: str) -> Table | None:
    """The same for notifications: trivial, one for each organisation, trees on top."""
    sizes = results.sizes("notifications", results.base, mapping)
    if not sizes:
        return None
    last = max(sizes)
    seeds = sizes[last]
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
    return Table(
        f"{named(mapping)}, {last:,} publications, "
        f"{results.subscriptions_of('notifications'):,} subscriptions per organisation: "
        "notifications between peers",
        ("", "messages", "saved", "event MB", "saved", "SOAP MB", "most sends"),
        tuple(rows),
        foot="Event MB: the events' XML alone. SOAP MB: whole messages, with the subtree that "
        "those of a tree carry; not counted for the trivial solution. Most sends: of one event, by "
        "one peer.",
        folded=False,
    )


def _megabytes(seeds: Seeds, name: str) -> str:
    return count_text(over_seeds(seeds, lambda at: at[name] / 1e6))
