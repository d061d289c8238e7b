"""The figures of thesis 5.5 as sections: 5.8a, 5.8b, 5.9 and 5.10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qns.pipeline.report.claims import TARGET
from qns.pipeline.report.results import Counts, Results, Sizes, column, over_seeds
from qns.pipeline.report.shares import saving
from qns.report.figures import COLOURS, Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, count_text, percent_text

ACROSS: Final = "subscriptions per organisation"
INTERVALS: Final = "Shaded: 95 % confidence interval over seeds."
PARTS: Final = (("mapping", "mapping alone", 1), ("containment", "containment alone", 2))
QNS: Final = ("both", "both (QNS)", 0)
_MOST_NAMED: Final = 16


def points(sizes: Sizes, value: Callable[[Counts], float]) -> tuple[tuple[float, Estimate], ...]:
    return tuple((float(size), over_seeds(sizes[size], value)) for size in sorted(sizes))


def named(mapping: str) -> str:
    return f"{mapping[:1].upper()}{mapping[1:]} mapping"


def absent(name: str, title: str, remedy: str) -> Section:
    return Section(name, title, f"Not computed in this run: {remedy}.", missing=True)


def joined_up(parts: list[str]) -> str:
    """One sentence of what holds for each mapping."""
    text = "; ".join(parts) or "there is nothing to compare in this run"
    return f"{text[:1].upper()}{text[1:]}."


def saved_section(results: Results, name: str, what: str) -> Section:
    trivial, title, up, base = {
        "messages": (
            "changes",
            "Figure 5.8a: subscription messages saved",
            "messages saved",
            "trivial messages",
        ),
        "rows": (
            "live",
            "Figure 5.8b: size of external merge tables saved",
            "table rows saved",
            "trivial rows per table",
        ),
    }[what]
    panels, rows, sentences = [], [], []
    for mapping in results.mappings:
        sizes = results.sizes("subscriptions", results.base, mapping)
        if not sizes:
            continue
        lines = [
            Line(words, points(sizes, saving(f"{what}_{part}", trivial)), look)
            for part, words, look in (*PARTS, QNS)
        ]
        panels.append(
            Panel(
                named(mapping),
                ACROSS,
                up,
                tuple(lines),
                mark=(TARGET, f"{TARGET:g} % (thesis)"),
                percent=True,
            )
        )
        tables_held = results.base.organisations if results.base and what == "rows" else 1
        for nth, size in enumerate(sorted(sizes)):
            whole = over_seeds(sizes[size], lambda at: at[trivial] / tables_held)  # noqa: B023
            shares = [percent_text(line.points[nth][1]) for line in lines]
            rows.append((mapping, f"{size:,}", count_text(whole), *shares))
        last = max(sizes)
        alone, contained, both = (percent_text(line.points[-1][1]) for line in lines)
        sentences.append(
            f"with {mapping} mapping QNS saves {both} at {last:,} subscriptions per organisation "
            f"(mapping alone {alone}, containment alone {contained})"
        )
    if not panels:
        return absent(name, title, "it has no subscriptions")
    picture = Picture(
        name, title, f"Per cent of the trivial solution's {up.removesuffix(' saved')} that are "
        f"not needed, against {ACROSS}. {INTERVALS}", tuple(panels),
    )  # fmt: skip
    table = Table(
        f"{up[:1].upper()}{up[1:]}, mean ± half the 95 % interval over seeds",
        ("mapping", "per organisation", base, "mapping alone", "containment alone", "both (QNS)"),
        tuple(rows),
    )
    return Section(name, title, joined_up(sentences), picture, (table,))


def spread_section(results: Results) -> Section:
    name, title = "5.9", "Figure 5.9: table size of each organisation"
    known = [each for each in results.mappings if results.producers(results.base, each)]
    if not known:
        return absent(name, title, "it has no subscriptions")
    mapping = min(known, key=lambda each: each == "full")
    producers = results.producers(results.base, mapping)
    hosts = results.hosts(results.base, mapping)
    counts = {each: len(hosts.get(each, ())) for each in producers}
    looks = _looks(sorted(set(counts.values())))
    order = sorted(producers, key=lambda each: (counts[each], each))
    named_ends = len(order) <= _MOST_NAMED
    curves = tuple(
        Line(
            looks[counts[each]][0],
            points(producers[each], column("rows_both")),
            looks[counts[each]][1],
            each if named_ends else "",
            faint=not named_ends,
        )
        for each in order
    )
    ends = {each: line.points[-1] for each, line in zip(order, curves, strict=True)}
    last = int(max(size for size, _ in ends.values()))
    dots = tuple(
        Line(
            words,
            tuple(
                (float(counts[each]), ends[each][1])
                for each in order
                if looks[counts[each]] == (words, look)
            ),
            look,
        )
        for words, look in dict.fromkeys(looks[counts[each]] for each in order)
    )
    picture = Picture(
        name,
        title,
        f"Rows of each organisation's external merge table with {mapping} mapping: along the "
        f"subscriptions, and at {last:,} per organisation against the number of classes hosted. "
        "Shaded and thin lines: 95 % confidence interval over seeds.",
        (
            Panel("Along the subscriptions", ACROSS, "rows", curves),
            Panel(
                f"At {last:,} per organisation",
                "classes hosted",
                "rows",
                dots,
                logarithmic=(False, False),
                joined=False,
            ),
        ),
    )
    least, most = (pick(order, key=lambda each: (ends[each][1].mean, each)) for pick in (min, max))
    sentence = (
        f"With {mapping} mapping the tables hold from {ends[least][1].mean:,.0f} rows ({least}, "
        f"{_classes(counts[least])} hosted) to {ends[most][1].mean:,.0f} ({most}, "
        f"{_classes(counts[most])}) at {last:,} subscriptions per organisation."
    )
    return Section(name, title, sentence, picture, (_spread_table(mapping, producers, hosts),))


def notification_section(results: Results) -> Section:
    name, title = "5.10", "Figure 5.10: notifications delivered and sent"
    setting = results.setting_of("notifications")
    each_has = results.subscriptions_of("notifications")
    panels, rows, sentences = [], [], []
    for mapping in results.mappings:
        sizes = results.sizes("notifications", setting, mapping)
        if not sizes:
            continue
        panels.append(
            Panel(
                named(mapping),
                "publications",
                "notifications",
                (
                    Line("delivered to users", points(sizes, lambda at: at["delivered"]), 1),
                    Line("of them elsewhere",
                         points(sizes, lambda at: at["delivered_remote"]), 2),
                    Line("sent between peers", points(sizes, lambda at: at["sent"]), 0),
                ),
                logarithmic=(True, True),
            )
        )  # fmt: skip
        for size, seeds in sizes.items():
            shares = [
                percent_text(over_seeds(seeds, saving(sent, trivial)))
                for trivial, sent in (("delivered_remote", "sent"), ("bytes_trivial", "bytes_sent"))
            ]
            counted = [
                count_text(over_seeds(seeds, column(key)))
                for key in ("delivered", "delivered_remote", "sent")
            ]
            rows.append((mapping, f"{size:,}", *counted, *shares))
        last = max(sizes)
        sent = over_seeds(sizes[last], lambda at: at["sent"]).mean
        delivered = over_seeds(sizes[last], lambda at: at["delivered"]).mean
        sentences.append(
            f"with {mapping} mapping {last:,} publications are delivered {delivered:,.0f} times to "
            f"users and sent {sent:,.0f} times between peers"
        )
    if not panels:
        return absent(name, title, "run with --publications")
    picture = Picture(
        name,
        title,
        f"Notifications until so many publications, {each_has:,} subscriptions per organisation. "
        f"The trivial solution sends one for each user of another organisation. {INTERVALS}",
        tuple(panels),
    )
    table = Table(
        "Notifications, mean ± half the 95 % interval over seeds",
        (
            "mapping", "publications", "delivered", "of them elsewhere", "sent", "messages saved",
            "event bytes saved",
        ),
        tuple(rows),
        foot="Delivered: to users; elsewhere: to users of other organisations. "
        "Saved: against one message for each of these.",
    )  # fmt: skip
    return Section(name, title, joined_up(sentences), picture, (table,))


def _spread_table(
    mapping: str, producers: dict[str, Sizes], hosts: dict[str, tuple[str, ...]]
) -> Table:
    sizes = sorted({size for each in producers.values() for size in each})
    shown = sorted({sizes[len(sizes) // 2], sizes[-1]})
    rows = tuple(
        (
            name,
            ", ".join(path.rsplit("/", 1)[-1] for path in hosts.get(name, ())) or "not told",
            f"{len(hosts.get(name, ())):,}",
            _counted(by_size, sizes[-1], "rows_mapping"),
            *(_counted(by_size, size, "rows_both") for size in shown),
        )
        for name, by_size in producers.items()
    )
    return Table(
        f"{named(mapping)}: rows of each table, mean ± half the 95 % interval over seeds",
        (
            "organisation",
            "hosts",
            "classes",
            f"asked for at {sizes[-1]:,}",
            *(f"rows at {size:,}" for size in shown),
        ),
        rows,
        texts=2,
        foot="Asked for: live subscriptions of others that want something which it hosts.",
    )


def _looks(numbers: list[int]) -> dict[int, tuple[str, int]]:
    """Number of classes hosted -> words and look; beyond six numbers neighbours share one."""
    shared = -(-len(numbers) // len(COLOURS))
    looks = {}
    for nth in range(0, len(numbers), shared):
        group = numbers[nth : nth + shared]
        words = f"{group[0]} to {group[-1]} classes" if len(group) > 1 else _classes(group[0])
        looks.update(dict.fromkeys(group, (f"hosts {words}", nth // shared)))
    return looks


def _counted(sizes: Sizes, size: int, name: str) -> str:
    return count_text(over_seeds(sizes[size], column(name))) if size in sizes else "–"


def _classes(number: int) -> str:
    return f"{number:,} class{'es' * (number != 1)}"
