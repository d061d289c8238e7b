"""Tests of the rules about causes: what the world must have done before a peer declares a loss."""

from __future__ import annotations

import pytest

from qns.simulation.causes import SKIP, Causes
from qns.simulation.findings import Findings
from qns.simulation.ledger import Ledger
from qns.simulation.world import TUNING

GAVE_NUMBER_AT = 10.0
SET_BACK_AT = 31.7
HISTORY = [
    {"t": GAVE_NUMBER_AT, "org": "P", "do": "cross", "to": "C", "joined": 1, "number": 1},
    {"t": 10.1, "org": "C", "do": "take", "source": "P", "own": 1, "number": 1},
    {"t": 30.6, "org": "P", "do": "start", "epoch": 9, "restored": True},
    {"t": SET_BACK_AT, "org": "C", "do": "rewind", "source": "P", "own": 1, "epoch": 9, "first": 1},
    {"t": 39.0, "org": "C", "do": "skip", "source": "P", "own": 1, "first": 1, "last": 1},
]
"""C is set back by an epoch that P began at 30.6 s, and then gets a skip of the number."""


@pytest.mark.parametrize(
    ("setbacks", "is_caused"),
    [
        ([(30.6, 9.0), (31.2, 11.0)], True),  # put back to the time after the acknowledgement
        ([(30.6, 9.0), (35.0, 11.0)], True),
        ([(30.6, 11.0), (31.2, 12.0)], False),  # the number was never forgotten
        ([(38.0, 9.0), (38.5, 11.0)], True),
        ([(30.6, 11.0)], False),
    ],
)
def test_skip_of_a_number_that_was_taken_needs_a_producer_that_forgot_it(
    setbacks: list[tuple[float, float]], *, is_caused: bool
) -> None:
    ledger, findings = Ledger(TUNING), Findings()
    for at, since in setbacks:
        ledger.restored(at, "P", since)
    Causes(ledger, HISTORY, findings, frozenset()).judge()
    assert bool(findings.broken[SKIP]) != is_caused
