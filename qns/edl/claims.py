"""Claims: how often a member may make this peer begin a later epoch.

A member that knows more of this peer than the peer itself proves that the peer's store went back in
time, unless the member lies. A peer that believes a claim begins a later epoch and sends everything
to everybody until the views are compared, so a member that goes on claiming is believed only after
pauses that double (docs/decisions.md, Delivery).

If members that knew the present epoch come to know later ones, somebody else began these: a twin, a
copy of this peer that runs beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qns.peer.backoff import Backoff
from qns.peer.outcomes import IncidentKind
from qns.peer.turn import Turn

CLAIMS_AT_ONCE: Final = 3
"""As many claims of one member are believed without a pause."""
PAUSES: Final = Backoff(1.0, 3600.0)
"""The pauses after further claims of the same member: as long as it has claimed already, so that a
peer whose copy gives way is soon known by its own epoch again."""
LARGEST_JUMP: Final = 2**34
"""The limit of epochs by which a claim may be ahead: more than half a million lost starts."""
_FORGIVEN_AFTER_S: Final = 86_400.0
"""After as long without a claim, the claims of a member count as the first ones again."""
_SURPRISES: Final = 2
"""As many later epochs of somebody else prove a twin; one may have been under way for long."""
_SURPRISES_IF_CALLED: Final = 6
_SHOWN_S: Final = 600.0
"""How long a claim that was not believed is shown, and reported only once; and how long a sign of
a twin counts."""


@dataclass(slots=True)
class _Claimant:
    epoch: int = 0
    """The newest epoch that was believed."""
    believed: int = 0
    """How many claims were believed since the last long time without one."""
    believed_at: float = 0.0
    pause_until: float = 0.0


class Claims:
    def __init__(self) -> None:
        self.newest = 0
        """The newest epoch of this peer that was claimed and believed."""
        self.setback_proved_by = ""
        """The first member that has more of this peer's past than the peer itself, if any."""
        self._claimants: dict[str, _Claimant] = {}
        self._refused_at: dict[str, float] = {}
        """Member -> when its last claim was not believed."""
        self._named: dict[str, int] = {}
        """Member -> the epoch of this peer that it last named."""
        self._surprises: list[tuple[float, str]] = []
        """When a member named the present epoch and a later one after it; the last few."""

    @property
    def suggests_twin(self) -> bool:
        """True if a twin may run. A message of a forgotten epoch that was under way looks alike."""
        return bool(self._surprises)

    def proves_twin(self, now: float, others: int, *, is_called: bool) -> bool:
        """True if a twin runs, and this peer is the one that should give way.

        That is the one that no member calls, because it is not at the endpoint in the document. If
        both are called, one of them gives way later; then one of several members that claims this
        alone is not believed, because it may lie.
        """
        recent = [member for at, member in self._surprises if now - at < _SHOWN_S]
        if not is_called:
            return len(recent) >= _SURPRISES
        return len(recent) >= _SURPRISES_IF_CALLED and len(set(recent)) >= min(2, others)

    def prove_setback(self, member: str) -> None:
        """Notes that a member has a number or a version that this peer does not remember."""
        self.setback_proved_by = self.setback_proved_by or member

    def note(self, member: str, epoch: int) -> None:
        """Notes the epoch of this peer that a member names in a message."""
        self._named[member] = epoch

    def believe(self, turn: Turn, member: str, claimed: int, own: int) -> bool:
        """True if the claim that this peer has had the epoch `claimed` may change its epoch `own`.

        A repetition of a claim that was believed is believed too, and does not count.
        """
        claimant = self._claimants.setdefault(member, _Claimant())
        if claimed <= claimant.epoch:
            return True
        if claimed - own > LARGEST_JUMP or turn.now < claimant.pause_until:
            self._refuse(turn, member, claimed)
            return False
        if turn.now - claimant.believed_at > _FORGIVEN_AFTER_S:
            claimant.believed = 0
        if self._named.get(member) == own < claimed:
            self._surprises = [*self._surprises[-_SURPRISES_IF_CALLED:], (turn.now, member)]
        claimant.epoch = claimed
        self.newest = max(self.newest, claimed)
        claimant.believed += 1
        claimant.believed_at = turn.now
        if claimant.believed >= CLAIMS_AT_ONCE:
            pauses = claimant.believed - CLAIMS_AT_ONCE + 1
            claimant.pause_until = turn.now + PAUSES.pause_s(pauses)
        return True

    def refused(self, now: float) -> list[str]:
        """Returns the members of which a claim was not believed lately, in alphabetical order."""
        return sorted(name for name, at in self._refused_at.items() if now - at < _SHOWN_S)

    def _refuse(self, turn: Turn, member: str, claimed: int) -> None:
        if member not in self.refused(turn.now):
            turn.warn(IncidentKind.CLAIM, other=member, epoch=claimed)
        self._refused_at[member] = turn.now
