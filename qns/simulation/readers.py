"""Readers: users who read and acknowledge deliveries, and find out if one is missing unsaid.

The numbers of a subscription's deliveries are dense. So a reader that does not get the number after
its last one must be told that it was dropped. The judge cannot see what a reader is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.requests import AcknowledgeDeliveries, Answer, Deliveries, PullDeliveries
from qns.simulation.calls import Calls
from qns.simulation.findings import Findings

OWNER = "user"
DENSE = "Dense numbers"
"""The rule that is judged here."""

Read = Answer | DeliveriesDropped


@dataclass(slots=True)
class Readers:
    calls: Calls
    grouped: frozenset[str]
    """Subscriptions in delivery groups: their numbers may pass to other members."""
    findings: Findings
    _acknowledged: dict[tuple[str, str], int] = field(default_factory=dict)
    """Organisation, subscription -> the last number that a reader acknowledged."""

    def read(self, org: str, sub: str, *, everything: bool = False) -> None:
        """Reads and acknowledges one answer, or everything that there is."""
        world = self.calls.world
        asked_at = world.now

        def handle(answer: Read) -> None:
            world.ledger.read(asked_at, world.now, (org, sub), answer)
            series = ""
            if isinstance(answer, DeliveriesDropped):
                numbers = [answer.dropped[0].first, answer.last]
                series = answer.series
            else:
                assert isinstance(answer, Deliveries)
                numbers = [each.number for each in answer.deliveries]
                if numbers:
                    series = answer.deliveries[-1].series
                self._check_dense(org, sub, numbers)
            if not numbers:
                return
            self._check_first(org, sub, numbers[0])
            before = self._acknowledged.get((org, sub), 0)
            self._acknowledged[org, sub] = max(before, numbers[-1])
            self.calls.call(org, AcknowledgeDeliveries(OWNER, sub, numbers[-1], series), again)

        def again(_: Read) -> None:
            if everything:
                self.read(org, sub, everything=True)

        self.calls.call(org, PullDeliveries(OWNER, sub), handle)

    def _check_dense(self, org: str, sub: str, numbers: list[int]) -> None:
        if numbers and sub not in self.grouped:
            dense = [number for number, _ in enumerate(numbers, numbers[0])]
            self.findings.judge(
                DENSE, numbers == dense, f"subscription {sub} of {org} reads the numbers {numbers}."
            )

    def _check_first(self, org: str, sub: str, first: int) -> None:
        due = self._acknowledged.get((org, sub), 0) + 1
        if sub not in self.grouped:
            self.findings.judge(
                DENSE,
                first <= due,
                f"subscription {sub} of {org} reads number {first}, but {due} is due and was not "
                "declared as dropped.",
            )
