"""Readers: users who read and acknowledge deliveries, and find out if one is missing unsaid.

The numbers of a subscription's deliveries are dense. So a reader that does not get the number after
its last one must be told that it was dropped. The judge cannot see what a reader is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from qns.iil.cursor import Cursor, CursorAhead
from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.requests import AcknowledgeDeliveries, Answer, Deliveries, PullDeliveries
from qns.simulation.calls import Calls
from qns.simulation.findings import Findings
from qns.simulation.node import Reply

OWNER = "user"
DENSE = "Dense numbers"
CURSOR = "Cursor"
RULES: Final = (DENSE, CURSOR)
"""The rules that are judged here."""
_SOON_S: Final = 0.05

Read = Answer | DeliveriesDropped


@dataclass(slots=True)
class Readers:
    calls: Calls
    grouped: frozenset[str]
    """Subscriptions in delivery groups: their numbers may pass to other members."""
    findings: Findings
    _acknowledged: dict[tuple[str, str], int] = field(default_factory=dict)
    """Organisation, subscription -> the last number that a reader acknowledged."""
    _cursors: dict[tuple[str, str], tuple[Cursor, float]] = field(default_factory=dict)
    """Organisation, subscription -> the last delivery that a reader read, and when."""

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
                    self._cursors[org, sub] = Cursor(numbers[-1], series), world.now
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

    def continue_after(self, org: str) -> None:
        """Makes readers of a peer that was put back continue after their cursors.

        A cursor is refused if the delivery is undone: the reader would skip what has its number or
        a lower one now. Numbers in delivery groups pass to other members, so they are left out.
        """
        world = self.calls.world
        for (name, sub), (cursor, read_at) in self._cursors.items():
            if name != org or sub in self.grouped:
                continue
            delivered_at = max(
                record["t"]
                for record in world.history
                if record["do"] == "ntfy"
                and (record["org"], record["sub"], record["number"]) == (org, sub, cursor.number)
                and record["t"] <= read_at
            )
            is_undone = world.ledger.undid(org, delivered_at)
            request = PullDeliveries(OWNER, sub, cursor.number, 1, cursor.series)
            text = f"subscription {sub} of {org} continued after number {cursor.number} at "
            text += f"{world.now:.3f} s, which was {'undone' if is_undone else 'kept'}"

            def judge(answer: object, is_undone: bool = is_undone, text: str = text) -> None:
                if isinstance(answer, CursorAhead | Deliveries):
                    is_refused = isinstance(answer, CursorAhead)
                    outcome = "refused" if is_refused else "accepted"
                    self.findings.judge(
                        CURSOR, is_refused == is_undone, f"{text}, and was {outcome}."
                    )

            self._ask_soon(org, request, judge)

    def _ask_soon(self, org: str, request: PullDeliveries, reply: Reply) -> None:
        world = self.calls.world

        def ask() -> None:
            world.ask(org, request, reply)

        world.at(world.now + _SOON_S, ask)

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
