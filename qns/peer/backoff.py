"""Backoff: how long to pause before a failed attempt is repeated.

The pause doubles with every failure, up to a limit. Links to other peers, clients and the process
that reopens its store all use this policy.
"""

from __future__ import annotations

from dataclasses import dataclass

_MOST_DOUBLINGS = 20


@dataclass(frozen=True, slots=True)
class Backoff:
    first_s: float
    longest_s: float

    def pause_s(self, failures: int, jitter: float = 1.0) -> float:
        """Returns the pause after this many failures in a row (1 or more).

        `jitter`, from 0 to 1, spreads simultaneous retries: it scales the pause between one half
        and the whole.
        """
        doublings = min(failures - 1, _MOST_DOUBLINGS)
        return min(self.longest_s, self.first_s * 2.0**doublings) * (0.5 + 0.5 * jitter)
