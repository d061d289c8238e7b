"""Judged section: how many events and notifications were judged in each experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qns.lab.experiments.findings import Findings
from qns.lab.experiments.loss_experiment import Results, Setup
from qns.lab.experiments.self_organisation import Window
from qns.report.page import Markup, Table, element, table_markup

_EXPLANATION: Final = (
    "The history of every run was judged like that of real peers (docs/history.md): each event "
    "reached every stable subscription that matches it and no other, once and in order. After "
    "every subscription the overlay was a tree with no broker above its fan-out, and each new link "
    "weighed more than the one it replaced. A run that broke a rule would have ended the report. "
    "In chapter 4 events were published while brokers swapped links; messages that a swap delayed "
    "were sent over another link. Figure 4.2 computes hops on the tree; the first subscriptions "
    "and publications of each point were also run, and made the computed number of hops."
)
Counts = tuple[int, int, int, int]
"""The numbers of runs, events, notifications, and messages that a swap delayed."""

_HEAD: Final = ("experiment", "runs", "events", "notifications", "held back by a swap")


def judged_section(findings: Findings) -> Markup | None:
    """Returns the section about the checks of every run, or None if nothing was run."""
    rows = _rows(findings)
    if not rows:
        return None
    return element(
        "section",
        element("h2", "Every run was judged"),
        element("p", _EXPLANATION),
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
    """Where every broker wants every event, each event is delivered at every broker."""
    spreads = len(setup.hosts) * setup.topologies
    return (
        spreads + len(loss.losses) * setup.topologies,
        spreads * setup.brokers + sum(each.published for each in loss.losses),
        spreads * setup.brokers**2 + sum(sum(each.delivered) for each in loss.losses),
        0,
    )


def _of_windows(windows: Sequence[Window]) -> Counts:
    """The counts at the end of each run."""
    longest = max(each.subscriptions for each in windows)
    ends = [each for each in windows if each.subscriptions == longest]
    return (
        len(ends),
        sum(each.judged_events for each in ends),
        sum(each.judged_notifications for each in ends),
        sum(each.held_back for each in ends),
    )
