"""Claims: how often a member may make this peer begin a later epoch.

A member claims an epoch of this peer that the peer has not begun. If the claim is true, the store
of the peer went back in time. A peer that accepts a claim begins a later epoch and sends every
event to every consumer until the views are compared. Therefore repeated claims of one member are
accepted only after pauses that double (docs/decisions.md, Delivery); the others are ignored.

If a member names the present epoch first and then a later one, another process has begun that one:
a twin, which runs as this organisation with a copy of its store.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from qns.peer.backoff import Backoff
from qns.peer.outcomes import IncidentKind
from qns.peer.turn import Turn

CLAIMS_AT_ONCE: Final = 3
"""The number of claims of one member that are accepted without a pause."""
PAUSES: Final = Backoff(1.0, 3600.0)
"""The pauses after further claims of the same member. The first ones are short, so that the true
epoch is accepted soon after a twin has stepped down."""
LARGEST_JUMP: Final = 2**34
"""The limit of epochs by which a claim may be ahead: more than half a million lost starts."""
_FORGIVEN_AFTER_S: Final = 86_400.0
"""After this time without a claim, the claims of a member are counted from 0 again."""
_SURPRISES: Final = 2
"""The number of surprises that prove a twin. A single one may be a message that was delayed."""
_SURPRISES_IF_CALLED: Final = 6
"""The number of surprises that prove a twin to a peer that other members call."""
_PATIENCE: Final = 3
"""A peer that is called gives a twin as many times as long to find out that nobody calls it."""
_SHOWN_S: Final = 600.0
"""How long an ignored claim is shown, and reported only once; and how long a surprise counts."""


@dataclass(slots=True)
class _Claimant:
    epoch: int = 0
    """The newest epoch of an accepted claim."""
    believed: int = 0
    """How many claims were accepted since the count began."""
    believed_at: float = 0.0
    pause_until: float = 0.0


class Claims:
    def __init__(self) -> None:
        self.newest = 0
        """The newest epoch of this peer in an accepted claim."""
        self.setback_proved_by = ""
        """The first member that has more of this peer's past than the peer itself, if any."""
        self._claimants: dict[str, _Claimant] = {}
        self._refused_at: dict[str, float] = {}
        """Member -> when a claim of it was last ignored."""
        self._ask_again_at: dict[str, float] = {}
        """Member -> when the pause is over in which a claim of it was ignored. It may be true, and
        the member may have no reason to repeat it."""
        self._named: dict[str, int] = {}
        """Member -> the epoch of this peer that it last named."""
        self._surprises: list[tuple[float, str]] = []
        """When a member named the present epoch and a later one after it; the last few."""
        self._rivals_since = 0.0
        """When the first surprise came that others have followed without a long pause."""

    @property
    def suggests_twin(self) -> bool:
        """True if a twin may run. A delayed message of a forgotten epoch is such a sign too."""
        return bool(self._surprises)

    def proves_twin(self, now: float, others: int, *, called_at: float, silence_s: float) -> bool:
        """True if a twin runs, and this peer is the one that should step down.

        The peer that no member has called for `silence_s` steps down, because it is not at the
        endpoint in the document. What members told it before they last called it does not count
        then: a partition may separate it from them since.

        If members call both, one of them steps down after more surprises. Those of the first time
        do not count then, in which a twin that nobody calls finds that out. All must come from two
        members if there are several others, because the claims of a single one may be false.
        """
        is_called, shown_since = now - called_at <= silence_s, now - _SHOWN_S
        most = _SURPRISES_IF_CALLED if is_called else _SURPRISES
        since = self._rivals_since + _PATIENCE * silence_s if is_called else called_at
        recent = [member for at, member in self._surprises if at > max(since, shown_since)]
        return len(recent) >= most and len(set(recent)) >= min(2, others)

    def prove_setback(self, member: str) -> None:
        """Notes that a member has a number or a version that this peer does not remember."""
        self.setback_proved_by = self.setback_proved_by or member

    def note(self, member: str, epoch: int) -> None:
        """Notes the epoch of this peer that a member names in a message."""
        self._named[member] = epoch

    def believe(self, turn: Turn, member: str, claimed: int, own: int) -> bool:
        """True if the claim that this peer has had the epoch `claimed` may change its epoch `own`.

        A repetition of an accepted claim is accepted too, and does not count.
        """
        claimant = self._claimants.setdefault(member, _Claimant())
        if claimed <= claimant.epoch:
            return True
        if claimed - own > LARGEST_JUMP or turn.now < claimant.pause_until:
            self._refuse(turn, member, claimed)
            if claimed - own <= LARGEST_JUMP:
                self._ask_again_at[member] = claimant.pause_until
            return False
        if turn.now - claimant.believed_at > _FORGIVEN_AFTER_S:
            claimant.believed = 0
        if self._named.get(member) == own < claimed:
            if not self._surprises or turn.now - self._surprises[-1][0] > _SHOWN_S:
                self._rivals_since = turn.now
            self._surprises = [*self._surprises[-_SURPRISES_IF_CALLED:], (turn.now, member)]
        claimant.epoch = claimed
        self.newest = max(self.newest, claimed)
        claimant.believed += 1
        claimant.believed_at = turn.now
        if claimant.believed >= CLAIMS_AT_ONCE:
            pauses = claimant.believed - CLAIMS_AT_ONCE + 1
            claimant.pause_until = turn.now + PAUSES.pause_s(pauses)
        return True

    def next_due(self) -> float:
        """Returns when a member has to be asked again."""
        return min(self._ask_again_at.values(), default=inf)

    def pop_due(self, now: float) -> list[str]:
        """Returns the members that have to be asked again by now, and forgets them."""
        due = [member for member, at in self._ask_again_at.items() if at <= now]
        for member in due:
            del self._ask_again_at[member]
        return due

    def refused(self, now: float) -> list[str]:
        """Returns the members of which a claim was ignored lately, in alphabetical order."""
        return sorted(name for name, at in self._refused_at.items() if now - at < _SHOWN_S)

    def _refuse(self, turn: Turn, member: str, claimed: int) -> None:
        if member not in self.refused(turn.now):
            turn.warn(IncidentKind.CLAIM, other=member, epoch=claimed)
        self._refused_at[member] = turn.now
