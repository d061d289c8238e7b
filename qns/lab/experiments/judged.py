"""Judged: the checks that every measured run must pass.

Its history breaks no rule (semantics §9), its overlay is a tree in which no broker exceeds its
fan-out, and no swap lowers the associativity. A run that fails a check ends the whole experiment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from qns.cbr.zones import Boxes
from qns.errors import QnsError
from qns.history.judge import judge
from qns.lab.simulated.measure import Run
from qns.lab.simulated.overlay import Overlay
from qns.lab.strategies.interests import weight
from qns.lab.strategies.socbr import Swap

_REMEDY: Final = "its measurements are invalid: please report it, with this line"


class BrokenRun(QnsError):
    """A run failed one of the checks that every run must pass."""

    @classmethod
    def of(cls, run: str, problem: str) -> BrokenRun:
        return cls(problem, place=run, remedy=_REMEDY)


def check_history(run: Run, name: str) -> None:
    """Settles the run and judges its history: every event was delivered where it had to be."""
    run.calm()
    verdict = judge(run.records(), most_per_rule=1)
    for violation in verdict.violations:
        raise BrokenRun.of(name, f"{violation.rule} is broken: {violation.explain()}")


def check_overlay(overlay: Overlay, name: str) -> None:
    """Checks the overlay between two reconfigurations."""
    if not overlay.is_tree:
        raise BrokenRun.of(name, "the overlay is not a tree")
    for broker in range(overlay.brokers):
        if overlay.available(broker) < 0:
            links = overlay.degree(broker)
            raise BrokenRun.of(
                name, f"broker {broker} has {links} links, its fan-out is {overlay.fan_out}"
            )


def check_swaps(swaps: Iterable[Swap], zones: Sequence[Boxes], name: str) -> None:
    """Checks swaps with the current zones: each new link must weigh more than the removed one."""
    for swap in swaps:
        up, down = (
            weight(*(zones[end] for end in ends)) for ends in (swap.tear_up, swap.tear_down)
        )
        if not up > down:
            raise BrokenRun.of(
                name,
                f"link {swap.tear_up} of weight {up:g} replaced {swap.tear_down} of "
                f"weight {down:g}",
            )
