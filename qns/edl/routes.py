"""Routes: the peers through which another peer is reached that this one cannot reach itself.

They follow from the reports of `reachability.py` (DACE). A wrong guess costs a detour, never an
event: whoever owes an event repeats it until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from qns.edl.reachability import Reachability
from qns.edl.tree_builder import DEEPEST
from qns.federation.document import Federation


@dataclass(slots=True, eq=False)
class Routes:
    me: str
    reachability: Reachability
    _members: tuple[str, ...] = ()
    _refusals: dict[str, int] = field(default_factory=dict)
    """Peer -> its epoch when it refused to relay. A later version of its program may accept."""

    def apply_document(self, _old: Federation, new: Federation) -> None:
        self._members = tuple(sorted(new.organisations))

    def refuse(self, other: str) -> None:
        """Notes that the other peer does not relay."""
        self._refusals[other] = self.reachability.epoch(other)

    def hops(self, target: str, carried: Iterable[str] = ()) -> list[str]:
        """Returns the first peers of the shortest ways to the target, in alphabetical order.

        `carried` has the peers that the message has passed already.
        """
        if target not in self._members:
            return []
        seen = {self.me, target, *carried}
        level = [target]
        for _ in range(DEEPEST):
            level = [
                name
                for name in self._members
                if name not in seen
                and not self._refuses(name)
                and any(self.reachability.reaches(name, nearer) for nearer in level)
            ]
            found = [name for name in level if self.reachability.reachable(name)]
            if found or not level:
                return found
            seen.update(level)
        return []

    def _refuses(self, other: str) -> bool:
        return self._refusals.get(other, -1) == self.reachability.epoch(other)
