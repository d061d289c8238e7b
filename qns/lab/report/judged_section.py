"""Judged: how much of what the report rests on was checked, experiment by experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qns.lab.findings import Findings
from qns.lab.loss_experiment import Results, Setup
from qns.lab.self_organisation import Window
from qns.report.page import Markup, Table, element, table_markup

_TOLD: Final = (
    "The history of every run was judged as that of real peers is (docs/history.md): each event "
    "reached every subscription that its publisher's broker had to know, none else, once and in "
    "order. After "
    "every subscription the overlay was a tree with no broker above its fan-out, and each new link "
    "weighed more than the one it replaced. A run that broke a rule would have ended the report. "
    "In chapter 4 events were published while brokers swapped links; what a swap held back went "
    "another way. Figure 4.2 counts hops on the tree; the first subscriptions and publications of "
    "each point were also run, and made as many hops as counted."
)
Counts = tuple[int, int, int, int]
"""Runs, events, notifications, messages held back by a swap."""

_HEAD: Final = ("experiment", "runs", "events", "notifications", "held back by a swap")


def judged_section(findings: Findings) -> Markup | None:
    """None if nothing was run."""
    rows = _rows(findings)
    if not rows:
        return None
    return element(
        "section",
        element("h2", "Every run was judged"),
        element("p", _TOLD),
        table_markup(Table("No rule was broken", _HEAD, rows)),
        id="judged",
    )


def _rows(findings: Findings) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, Counts]] = []
    if (loss := findings.loss) is not None:
        rows.append(("loss", _of_loss(loss, findings.setups.loss)))
    for name, judged in (
        ("figure 4.2", [each.row for each in findings.locality]),
        ("table 2.1", [each.row for each in findings.strategies]),
    ):
        if judged:
            events = sum(each.judged_events for each in judged)
            notifications = sum(each.judged_notifications for each in judged)
            rows.append((name, (len(judged), events, notifications, 0)))
    for name, windows in (
        ("flat networks", findings.flat),
        ("transit-stub networks", (*findings.transit_stub, *findings.near)),
        ("other workloads", [each.window for each in findings.shapes]),
    ):
        if windows:
            rows.append((name, _of_windows(windows)))
    return tuple((name, *(f"{number:,}" for number in counts)) for name, counts in rows)


def _of_loss(loss: Results, setup: Setup) -> Counts:
    """Where everybody wants everything, each event is notified at every broker."""
    spreads = len(setup.hosts) * setup.topologies
    return (
        spreads + len(loss.losses) * setup.topologies,
        spreads * setup.brokers + sum(each.published for each in loss.losses),
        spreads * setup.brokers**2 + sum(sum(each.delivered) for each in loss.losses),
        0,
    )


def _of_windows(windows: Sequence[Window]) -> Counts:
    """At the end of each run."""
    longest = max(each.subscriptions for each in windows)
    ends = [each for each in windows if each.subscriptions == longest]
    return (
        len(ends),
        sum(each.judged_events for each in ends),
        sum(each.judged_notifications for each in ends),
        sum(each.held_back for each in ends),
    )
