"""Drain: a peer that drains accepts nothing new and goes on with everything that it has promised.

A file beside the store records it, so that a restart does not end it: an operator drains a peer in
order to stop, move or replace it. The file is no part of backups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from qns.errors import Busy
from qns.iil.requests import Publish, Subscribe
from qns.peer.inputs import Input
from qns.store.faults import from_os
from qns.store.files import sync_file, write_durably

_CONTENT: Final = b"This peer drains: it refuses new publications and subscriptions.\n"


@dataclass(slots=True, eq=False)
class Drain:
    path: Path
    """The file that exists while the peer drains."""
    is_on: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_on = self.path.exists()

    def begin(self) -> None:
        """Refuses new publications and subscriptions from now on; waits for the disk."""
        write_durably(self.path, _CONTENT)
        self.is_on = True

    def end(self) -> None:
        """Accepts everything again; waits for the disk."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise from_os(error, str(self.path)) from None
        sync_file(self.path.parent)
        self.is_on = False

    def refusal(self, input: Input) -> Busy | None:
        """Returns an error if the peer drains and the input would give it new work."""
        if not self.is_on or not isinstance(input, Publish | Subscribe):
            return None
        return Busy(
            "the peer is draining and accepts no new publications and subscriptions",
            remedy="try again later, after its operator has resumed it",
        )
