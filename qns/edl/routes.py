"""Routes: the peers through which another peer is reached that this one cannot reach itself.

They follow from the reports of `reachability.py` (DACE). A wrong guess costs a detour, never an
event: whoever owes an event repeats it until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from qns.cbr.event import Event
from qns.edl.reachability import Reachability
from qns.edl.tree_builder import DEEPEST
from qns.federation.document import Federation
from qns.federation.schema_mapper import SchemaMapper


@dataclass(slots=True, eq=False)
class Routes:
    me: str
    reachability: Reachability
    _members: tuple[str, ...] = ()
    _mapper: SchemaMapper | None = None
    _refusals: dict[str, int] = field(default_factory=dict)
    """Peer -> its epoch when it refused to relay. A later version of its program may accept."""

    def apply_document(self, _old: Federation, new: Federation) -> None:
        self._members = tuple(sorted(new.organisations))
        self._mapper = SchemaMapper(new)

    def refuse(self, other: str) -> None:
        """Notes that the other peer does not relay."""
        self._refusals[other] = self.reachability.epoch(other)

    def may_carry(self, name: str, event: Event | None) -> bool:
        """True if a peer may be given the event, to pass it on; None stands for no event."""
        if event is None or self._mapper is None:
            return True
        return self._mapper.may_read(name, event.source, event.data_class)

    def hops(
        self, target: str, carried: Iterable[str] = (), *, carrying: Event | None = None
    ) -> list[str]:
        """Returns the first peers of the shortest ways to the target, in alphabetical order.

        `carried` has the peers that the message has passed already. All peers on these ways may
        read the event that they are `carrying`, if they carry one.
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
                and self.may_carry(name, carrying)
                and any(self.reachability.reaches(name, nearer) for nearer in level)
            ]
            found = [name for name in level if self.reachability.reachable(name)]
            if found or not level:
                return found
            seen.update(level)
        return []

    def _refuses(self, other: str) -> bool:
        return self._refusals.get(other, -1) == self.reachability.epoch(other)
