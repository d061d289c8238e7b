"""Identity: which organisation, incarnation and epoch this peer is."""

from __future__ import annotations

from dataclasses import dataclass

from qns.peer.event_log import Position
from qns.peer.lineage import later_epoch
from qns.peer.tables import IDENTITY, IdentityRow
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class Identity:
    row: IdentityRow
    epoch_scatter: int = 1
    """Among how many candidates the next epoch is chosen."""

    @property
    def organisation(self) -> str:
        return self.row.organisation

    @property
    def incarnation(self) -> int:
        return self.row.joined

    @property
    def epoch(self) -> int:
        return self.row.epoch

    @property
    def nonce(self) -> str:
        return self.row.nonce

    def next_position(self, turn: Turn) -> Position:
        """Takes the next place in the publication order of this organisation."""
        sequence = self.row.published + 1
        self._put(turn, self.row._replace(published=sequence))
        return self.incarnation, self.epoch, sequence

    def begin_epoch_after(self, turn: Turn, newest: int) -> int:
        """Begins an epoch after the newest one that anybody knows, and returns it."""
        epoch = later_epoch(newest, self.nonce, self.epoch_scatter)
        self._put(turn, self.row._replace(epoch=epoch))
        return epoch

    def count_turn(self, turn: Turn) -> None:
        """Counts a turn that changes the store."""
        self._put(turn, self.row._replace(turns=self.row.turns + 1))

    def begin_incarnation(self, turn: Turn, incarnation: int) -> None:
        self._put(turn, self.row._replace(joined=incarnation))

    def _put(self, turn: Turn, row: IdentityRow) -> None:
        self.row = row
        turn.put(IDENTITY, row)
