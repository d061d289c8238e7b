"""Full disk: refuses inputs that need room for a while after the disk was full.

Otherwise every publish would try a commit that must fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

from qns.errors import StoreFull
from qns.peer.backoff import Backoff
from qns.peer.inputs import Input
from qns.runtime.pending_inputs import needs_room


@dataclass(slots=True)
class FullDisk:
    _until: float = 0.0
    """Until then (monotonic) no input is accepted that needs room on the disk."""
    _failures: int = 0
    """Commits in a row that failed because the disk is full."""

    def refusal(self, input: Input) -> StoreFull | None:
        """Returns an error if the disk is full and the input needs room."""
        if self._until <= monotonic() or not needs_room(input):
            return None
        return StoreFull("no room left on the disk of this peer", remedy="try again later")

    def commit_failed(self, backoff: Backoff) -> None:
        self._failures += 1
        self._until = monotonic() + backoff.pause_s(self._failures)

    def commit_succeeded(self, inputs: Iterable[Input]) -> None:
        if self._failures and any(map(needs_room, inputs)):
            self._failures = 0
