"""Turn queue: inputs that wait for a turn, and turns that wait for their commit.

While a commit is under way, the peer goes on in memory. The turns of that time are committed
together afterwards: a group commit. The effects of a turn are handed out only after its commit. The
driver and the simulator both run their peers with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from qns.peer.gateway import Gateway
from qns.peer.inputs import Effects, Input, Output
from qns.peer.turn import Transaction

MOST_PER_TURN: Final = 256
"""The limit of inputs in one turn, which occupies the event loop."""
_LEAST_TO_WORK_AHEAD: Final = 4
"""While a commit is under way, a turn for fewer inputs would cost more than it gains."""

OnAnswer = Callable[[Output | Exception], None]
"""Callback that receives the answer, or the error that prevented one."""


class PendingInput(NamedTuple):
    input: Input
    on_answer: OnAnswer | None


class UncommittedTurn(NamedTuple):
    inputs: list[PendingInput]
    effects: Effects
    now: float
    """The time of the turn."""


@dataclass(slots=True, eq=False)
class CommitGroup:
    """Turns that were handled in memory and are committed together."""

    transaction: Transaction = field(default_factory=Transaction)
    turns: list[UncommittedTurn] = field(default_factory=list)

    @property
    def inputs(self) -> list[PendingInput]:
        return [each for turn in self.turns for each in turn.inputs]


@dataclass(slots=True, eq=False)
class TurnQueue:
    is_due: bool = False
    """True if the peer needs a turn although there is no input."""
    _waiting: deque[PendingInput] = field(default_factory=deque)
    _begun: CommitGroup = field(default_factory=CommitGroup)
    """Turns that wait for the commit under way."""
    _committing: CommitGroup | None = None
    _beginning: list[PendingInput] = field(default_factory=list)
    """The inputs of the turn that runs."""
    _costs: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of inputs that wait for a turn."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """True if every turn is committed."""
        return self._committing is None and not self._begun.turns

    @property
    def is_committing(self) -> bool:
        return self._committing is not None

    @property
    def needs_commit(self) -> bool:
        """True if a turn that has begun changes the store."""
        return bool(self._begun.transaction)

    def put(self, pending: PendingInput) -> None:
        self._waiting.append(pending)

    # --- turns and commits ------------------------------------------------------------------------

    def begin_turn(self, gateway: Gateway, now: float) -> bool:
        """Handles the inputs that wait in memory, if a turn is worth its cost now.

        Returns True if inputs are left that another turn can take at once.
        """
        if self.is_committing and len(self._waiting) < _LEAST_TO_WORK_AHEAD:
            many = 0
        else:
            many = min(len(self._waiting), MOST_PER_TURN - len(self._begun.inputs))
        batch = self._beginning = [self._waiting.popleft() for _ in range(many)]
        if batch or self.is_due:
            self.is_due = False
            begun = gateway.begin([each.input for each in batch], now, ahead=not self.is_idle)
            self._begun.transaction.add(begun.transaction)
            self._begun.turns.append(UncommittedTurn(batch, begun.effects, now))
            self._costs = begun.effects.costs
            self._beginning = []
        return bool(self._waiting) and not self.is_committing

    def take_costs(self) -> Mapping[str, float]:
        """Returns, once, what the requests of each member have cost in the last turn."""
        costs, self._costs = self._costs, {}
        return costs

    def begin_commit(self) -> Transaction | None:
        """Takes the turns that have begun; returns what to commit.

        Returns None if a commit is under way or no turn waits for one.
        """
        if self.is_committing or not self._begun.turns:
            return None
        self._committing, self._begun = self._begun, CommitGroup()
        return self._committing.transaction

    def end_commit(self, gateway: Gateway) -> CommitGroup:
        """Returns the turns of the commit, which is on the disk: their effects may leave now."""
        group, self._committing = self._committing, None
        assert group is not None, "a commit is under way"
        gateway.committed(len(group.turns))
        gateway.seal([turn.effects for turn in group.turns])
        return group

    # --- failures ---------------------------------------------------------------------------------

    def drop_begun(self) -> list[PendingInput]:
        """Forgets the turns that are not being committed; returns their inputs."""
        lost = [*self._begun.inputs, *self._beginning]
        self._begun, self._beginning = CommitGroup(), []
        return lost

    def drop_commit(self) -> list[PendingInput]:
        """Forgets the turns of a commit that has failed; returns their inputs."""
        group, self._committing = self._committing, None
        return [] if group is None else group.inputs

    def drop_waiting(self) -> list[PendingInput]:
        """Forgets the inputs that wait for a turn; returns them."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting
