"""Identity: every change of the identity is in memory and in the transaction of the turn."""

from __future__ import annotations

from qns.peer.identity import Identity
from qns.peer.tables import IDENTITY, IdentityRow
from qns.peer.turn import Turn

ROW = IdentityRow("P", joined=3, epoch=5, nonce="n", published=7)


def written(turn: Turn) -> IdentityRow:
    """Returns the identity that the turn writes."""
    ((table, rows),) = turn.transaction.changes()
    assert table is IDENTITY
    ((key, row),) = rows.items()
    assert key == ("P",)
    assert isinstance(row, IdentityRow)
    return row


def test_identity_shows_the_fields_of_its_row() -> None:
    identity = Identity(ROW)
    assert (identity.organisation, identity.incarnation) == ("P", 3)
    assert (identity.epoch, identity.nonce) == (5, "n")


def test_positions_increase_and_the_last_one_is_written_to_the_turn() -> None:
    identity, turn = Identity(ROW), Turn(0.0)
    positions = [identity.next_position(turn) for _ in range(3)]
    assert positions == [(3, 5, 8), (3, 5, 9), (3, 5, 10)]
    assert written(turn) == identity.row == ROW._replace(published=10)


def test_new_epoch_is_written_to_the_turn() -> None:
    identity, turn = Identity(ROW), Turn(0.0)
    assert identity.begin_epoch_after(turn, 5) == identity.epoch == 6
    assert written(turn) == identity.row == ROW._replace(epoch=6)


def test_new_incarnation_is_written_to_the_turn() -> None:
    identity, turn = Identity(ROW), Turn(0.0)
    identity.begin_incarnation(turn, 4)
    assert identity.incarnation == 4
    assert written(turn) == identity.row == ROW._replace(joined=4)


def test_positions_continue_to_increase_in_a_new_epoch_and_a_new_incarnation() -> None:
    identity, turn = Identity(ROW), Turn(0.0)
    positions = [identity.next_position(turn)]
    identity.begin_epoch_after(turn, 5)
    positions.append(identity.next_position(turn))
    identity.begin_incarnation(turn, 4)
    positions.append(identity.next_position(turn))
    assert positions == sorted(set(positions))
    assert written(turn) == identity.row


def test_identity_without_changes_writes_nothing() -> None:
    turn = Turn(0.0)
    assert Identity(ROW).row == ROW
    assert not turn.transaction
