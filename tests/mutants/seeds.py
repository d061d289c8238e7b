"""Runs simulated federations until one of them breaks a rule.

python -m tests.mutants.seeds 200

It prints the seed and the rule. Unlike `qns simulate` it stops at once and minimises nothing.
"""

from __future__ import annotations

import sys

from qns.simulation import scenario
from qns.simulation.faults import FAULTS
from qns.simulation.scenario import Scenario
from qns.simulation.workload import make_plan

PEERS = 6
REST_AT_MOST_S = 60.0
"""A bug may keep the peers busy for ever; without it, these seeds come to rest much earlier."""


def violation(seed: int) -> str:
    """Returns the first broken rule of a seed, or an empty text."""
    try:
        violations = Scenario(make_plan(seed, PEERS, FAULTS)).run().violations
    except Exception as error:  # a bug may break the peer itself
        return f"{type(error).__name__}: {error}"
    return violations[0] if violations else ""


def main(first: int, last: int) -> int:
    scenario._REST_AT_MOST_S = REST_AT_MOST_S
    for seed in range(first, last):
        found = violation(seed)
        if found:
            print(f"seed {seed}: {' '.join(found.split())[:200]}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(0, int(sys.argv[1])))
