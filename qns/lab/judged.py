"""Judged: what is measured on a run counts only if the run did what it has to do.

Its history breaks no rule (semantics §9), its overlay is a tree in which nobody has too many links,
and no swap lowered the associativity. A run of which that is not true ends the whole experiment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from qns.cbr.zones import Boxes
from qns.errors import QnsError
from qns.history.judge import judge
from qns.lab.interests import weight
from qns.lab.measure import Run
from qns.lab.overlay import Overlay
from qns.lab.socbr import Swap

_REMEDY: Final = "nothing measured here counts: please report it, with this line"


class BrokenRun(QnsError):
    """A run that broke one of the rules every run has to keep."""

    @classmethod
    def of(cls, run: str, problem: str) -> BrokenRun:
        return cls(problem, place=run, remedy=_REMEDY)


def check_history(run: Run, name: str) -> None:
    """Of a run that is over; every event has arrived wherever it was owed."""
    run.calm()
    verdict = judge(run.records(), most_per_rule=1)
    for violation in verdict.violations:
        raise BrokenRun.of(name, f"{violation.rule} is broken: {violation.explain()}")


def check_overlay(overlay: Overlay, name: str) -> None:
    """Between two reconfigurations."""
    if not overlay.is_tree:
        raise BrokenRun.of(name, "the overlay is no tree")
    for broker in range(overlay.brokers):
        if overlay.available(broker) < 0:
            links = overlay.degree(broker)
            raise BrokenRun.of(
                name, f"broker {broker} has {links} links, its fan-out is {overlay.fan_out}"
            )


def check_swaps(swaps: Iterable[Swap], zones: Sequence[Boxes], name: str) -> None:
    """Swaps since the zones are as they are: each has to weigh more than the link that went."""
    for swap in swaps:
        up, down = (
            weight(*(zones[end] for end in ends)) for ends in (swap.tear_up, swap.tear_down)
        )
        if not up > down:
            raise BrokenRun.of(
                name,
                f"link {swap.tear_up} of weight {up:g} took the place of {swap.tear_down} of "
                f"weight {down:g}",
            )
