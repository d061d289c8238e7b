"""Sections for the figures of thesis 5.5: 5.8a, 5.8b, 5.9 and 5.10."""

from __future__ import annotations

from itertools import chain
from typing import Final, NamedTuple

from qns.pipeline.report.claims import TARGET
from qns.pipeline.report.results import Results, Seeds, Sizes, column, over_seeds
from qns.pipeline.report.shares import saving
from qns.pipeline.report.words import (
    ACROSS,
    INTERVALS,
    MEAN,
    PARTS,
    QNS,
    absent,
    capital,
    joined_up,
    named,
    points,
)
from qns.report.figures import COLOURS, Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, count_text, percent_text

_MOST_NAMED: Final = 16


# --- figures 5.8a and 5.8b ------------------------------------------------------------------------


class _Saved(NamedTuple):
    """One of the two quantities that figure 5.8 shows."""

    what: str
    """Prefix of its columns."""
    trivial: str
    """Column of the trivial solution."""
    title: str
    up: str
    base: str


_SAVED: Final = {
    "5.8a": _Saved(
        "messages",
        "changes",
        "Figure 5.8a: subscription messages saved",
        "messages saved",
        "trivial messages",
    ),
    "5.8b": _Saved(
        "rows",
        "live",
        "Figure 5.8b: size of external merge tables saved",
        "table rows saved",
        "trivial rows per table",
    ),
}


def saved_section(results: Results, name: str) -> Section:
    """Section 5.8a or 5.8b: what mapping, containment and both save."""
    saved = _SAVED[name]
    found = results.by_mapping("subscriptions", results.base)
    if not found:
        return absent(name, saved.title, "it has no subscriptions")
    lines = {mapping: _saved_lines(saved, sizes) for mapping, sizes in found.items()}
    picture = Picture(
        name,
        saved.title,
        f"Per cent of the trivial solution's {saved.up.removesuffix(' saved')} that are not "
        f"needed, against {ACROSS}. {INTERVALS}",
        tuple(_saved_panel(saved, mapping, of_mapping) for mapping, of_mapping in lines.items()),
    )
    per_table = results.base.organisations if results.base and saved.what == "rows" else 1
    table = Table(
        f"{capital(saved.up)}, {MEAN}",
        (
            "mapping",
            "per organisation",
            saved.base,
            "mapping alone",
            "containment alone",
            "both (QNS)",
        ),
        tuple(
            (mapping, f"{size:,}", _trivial(found[mapping][size], saved, per_table), *shares)
            for mapping, of_mapping in lines.items()
            for size, shares in _saved_shares(of_mapping)
        ),
    )
    sentences = []
    for mapping, of_mapping in lines.items():
        last, (alone, contained, both) = _saved_shares(of_mapping)[-1]
        sentences.append(
            f"with {mapping} mapping QNS saves {both} at {last:,} subscriptions per organisation "
            f"(mapping alone {alone}, containment alone {contained})"
        )
    return Section(name, saved.title, joined_up(sentences), picture, (table,))


def _saved_panel(saved: _Saved, mapping: str, lines: tuple[Line, ...]) -> Panel:
    mark = (TARGET, f"{TARGET:g} % (thesis)")
    return Panel(named(mapping), ACROSS, saved.up, lines, mark=mark, percent=True)


def _saved_lines(saved: _Saved, sizes: Sizes) -> tuple[Line, ...]:
    return tuple(
        Line(words, points(sizes, saving(f"{saved.what}_{part}", saved.trivial)), look)
        for part, words, look in (*PARTS, QNS)
    )


def _trivial(seeds: Seeds, saved: _Saved, per_table: int) -> str:
    return count_text(over_seeds(seeds, lambda at: at[saved.trivial] / per_table))


def _saved_shares(lines: tuple[Line, ...]) -> list[tuple[int, list[str]]]:
    """For each size the shares that are saved, one for each line."""
    return [
        (int(size), [percent_text(line.points[nth][1]) for line in lines])
        for nth, (size, _) in enumerate(lines[0].points)
    ]


# --- figure 5.9 -----------------------------------------------------------------------------------


class _Spread(NamedTuple):
    """The sizes of the external merge tables of all organisations with one mapping."""

    mapping: str
    producers: dict[str, Sizes]
    hosts: dict[str, tuple[str, ...]]

    @property
    def classes(self) -> dict[str, int]:
        """Organisation -> the number of classes that it hosts."""
        return {each: len(self.hosts.get(each, ())) for each in self.producers}

    @property
    def order(self) -> list[str]:
        classes = self.classes
        return sorted(self.producers, key=lambda each: (classes[each], each))

    @property
    def ends(self) -> dict[str, tuple[float, Estimate]]:
        """Organisation -> its largest number of subscriptions, and the rows there."""
        return {each: points(self.producers[each], column("rows_both"))[-1] for each in self.order}


def spread_section(results: Results) -> Section:
    """Section 5.9: the table of each organisation, with partial mapping if there is one."""
    name, title = "5.9", "Figure 5.9: table size of each organisation"
    known = [each for each in results.mappings if results.producers(results.base, each)]
    if not known:
        return absent(name, title, "it has no subscriptions")
    mapping = min(known, key=lambda each: each == "full")
    spread = _Spread(
        mapping, results.producers(results.base, mapping), results.hosts(results.base, mapping)
    )
    classes, ends = spread.classes, spread.ends
    last = int(max(size for size, _ in ends.values()))
    least, most = (
        pick(spread.order, key=lambda each: (ends[each][1].mean, each)) for pick in (min, max)
    )
    sentence = (
        f"With {mapping} mapping the tables hold from {ends[least][1].mean:,.0f} rows ({least}, "
        f"{_classes(classes[least])} hosted) to {ends[most][1].mean:,.0f} ({most}, "
        f"{_classes(classes[most])}) at {last:,} subscriptions per organisation."
    )
    picture = _spread_picture(spread, name, title, last)
    return Section(name, title, sentence, picture, (_spread_table(spread),))


def _spread_picture(spread: _Spread, name: str, title: str, last: int) -> Picture:
    classes, ends, order = spread.classes, spread.ends, spread.order
    looks = _looks(sorted(set(classes.values())))
    has_names = len(order) <= _MOST_NAMED
    curves = tuple(
        Line(
            looks[classes[each]][0],
            points(spread.producers[each], column("rows_both")),
            looks[classes[each]][1],
            each if has_names else "",
            faint=not has_names,
        )
        for each in order
    )
    dots = tuple(
        Line(
            words,
            tuple(
                (float(classes[each]), ends[each][1])
                for each in order
                if looks[classes[each]] == (words, look)
            ),
            look,
        )
        for words, look in dict.fromkeys(looks[classes[each]] for each in order)
    )
    return Picture(
        name,
        title,
        f"Rows of each organisation's external merge table with {spread.mapping} mapping: along "
        f"the subscriptions, and at {last:,} per organisation against the number of classes "
        "hosted. Shaded and thin lines: 95 % confidence interval over seeds.",
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


def _spread_table(spread: _Spread) -> Table:
    sizes = sorted({size for each in spread.producers.values() for size in each})
    shown = sorted({sizes[len(sizes) // 2], sizes[-1]})
    rows = tuple(
        (
            name,
            ", ".join(path.rsplit("/", 1)[-1] for path in spread.hosts.get(name, ())) or "unknown",
            f"{len(spread.hosts.get(name, ())):,}",
            _counted(by_size, sizes[-1], "rows_mapping"),
            *(_counted(by_size, size, "rows_both") for size in shown),
        )
        for name, by_size in spread.producers.items()
    )
    return Table(
        f"{named(spread.mapping)}: rows of each table, {MEAN}",
        (
            "organisation",
            "hosts",
            "classes",
            f"asked for at {sizes[-1]:,}",
            *(f"rows at {size:,}" for size in shown),
        ),
        rows,
        texts=2,
        foot="Asked for: live subscriptions of other organisations to classes that it hosts.",
    )


def _looks(numbers: list[int]) -> dict[int, tuple[str, int]]:
    """Number of classes hosted -> words and look; more than six numbers share looks."""
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


# --- figure 5.10 ----------------------------------------------------------------------------------


def notification_section(results: Results) -> Section:
    """Section 5.10: notifications that are delivered to users and sent between peers."""
    name, title = "5.10", "Figure 5.10: notifications delivered and sent"
    found = results.by_mapping("notifications", results.setting_of("notifications"))
    if not found:
        return absent(name, title, "run with --publications")
    picture = Picture(
        name,
        title,
        f"Notifications against publications, with {results.subscriptions_of('notifications'):,} "
        "subscriptions per organisation. The trivial solution sends one for each user of another "
        f"organisation. {INTERVALS}",
        tuple(_notification_panel(mapping, sizes) for mapping, sizes in found.items()),
    )
    rows = [_notification_rows(mapping, sizes) for mapping, sizes in found.items()]
    table = Table(
        f"Notifications, {MEAN}",
        (
            "mapping", "publications", "delivered", "of them elsewhere", "sent", "messages saved",
            "event bytes saved",
        ),
        tuple(chain.from_iterable(rows)),
        foot="Delivered: to users. Elsewhere: to users of other organisations. Saved: compared "
        "with one message for each delivery elsewhere.",
    )  # fmt: skip
    sentences = []
    for mapping, sizes in found.items():
        last = max(sizes)
        sent, delivered = (
            over_seeds(sizes[last], column(key)).mean for key in ("sent", "delivered")
        )
        sentences.append(
            f"with {mapping} mapping {last:,} publications are delivered {delivered:,.0f} times to "
            f"users and sent {sent:,.0f} times between peers"
        )
    return Section(name, title, joined_up(sentences), picture, (table,))


def _notification_panel(mapping: str, sizes: Sizes) -> Panel:
    lines = tuple(
        Line(words, points(sizes, column(key)), look)
        for words, key, look in (
            ("delivered to users", "delivered", 1),
            ("of them elsewhere", "delivered_remote", 2),
            ("sent between peers", "sent", 0),
        )
    )
    return Panel(named(mapping), "publications", "notifications", lines, logarithmic=(True, True))


def _notification_rows(mapping: str, sizes: Sizes) -> list[tuple[str, ...]]:
    rows = []
    for size, seeds in sizes.items():
        counted = [
            count_text(over_seeds(seeds, column(key)))
            for key in ("delivered", "delivered_remote", "sent")
        ]
        shares = [
            percent_text(over_seeds(seeds, saving(sent, trivial)))
            for trivial, sent in (("delivered_remote", "sent"), ("bytes_trivial", "bytes_sent"))
        ]
        rows.append((mapping, f"{size:,}", *counted, *shares))
    return rows
