"""Parts: a merge subscription that is too large for one message is told in several.

The parts come first, each in a `viewPart`; the `changeSub` with the rest says how many there were.
Only with it does anything change: until then the receiver just keeps the parts. If it does not have
them all (it started again in between), it asks for everything anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from qns.edl.messages import ChangeSub, Envelope
from qns.errors import Busy

PART_BYTES: Final = 1_000_000
"""Of one part, as it is written, about."""
MOST_BYTES: Final = 64 * 1_048_576
"""That are kept of one sender's parts."""
_ELEMENT_BYTES: Final = 100
_ESCAPED: Final = 1.3


@dataclass(frozen=True, slots=True)
class ViewPart:
    epoch: int
    version: int
    digest: str
    """These three tell to which change it belongs."""
    part: int
    """The first is 0."""
    added: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def size(self) -> int:
        return sum(map(len, (*self.added, *self.removed)))


@dataclass(frozen=True, slots=True)
class PartedChange:
    """A change of which some parts came before."""

    change: ChangeSub
    """With what is left."""
    parts: int


def in_parts(envelope: Envelope) -> list[Envelope]:
    """The envelopes that tell it, in the order in which they go; mostly just itself."""
    change = envelope.body
    if not isinstance(change, ChangeSub):
        return [envelope]
    whole = ViewPart(change.epoch, change.version, change.digest, 0, change.added, change.removed)
    if _written(whole) <= PART_BYTES:
        return [envelope]
    *parts, last = _cut(whole)
    rest = replace(change, added=last.added, removed=last.removed)
    bodies = [*parts, PartedChange(rest, len(parts))]
    return [envelope._replace(body=body) for body in bodies]  # type: ignore[arg-type]


def _written(part: ViewPart) -> float:
    elements = len(part.added) + len(part.removed)
    return elements * _ELEMENT_BYTES + part.size * _ESCAPED


def _cut(whole: ViewPart) -> Iterator[ViewPart]:
    texts = [(text, True) for text in whole.added] + [(text, False) for text in whole.removed]
    chosen: list[tuple[str, bool]] = []
    size, nth = 0.0, 0
    for text, is_added in texts:
        cost = len(text) * _ESCAPED + _ELEMENT_BYTES
        if chosen and size + cost > PART_BYTES:
            yield _part(whole, nth, chosen)
            chosen, size, nth = [], 0.0, nth + 1
        chosen.append((text, is_added))
        size += cost
    yield _part(whole, nth, chosen)


def _part(whole: ViewPart, nth: int, texts: list[tuple[str, bool]]) -> ViewPart:
    added = tuple(text for text, is_added in texts if is_added)
    removed = tuple(text for text, is_added in texts if not is_added)
    return replace(whole, part=nth, added=added, removed=removed)


@dataclass(slots=True, eq=False)
class Assembly:
    """The parts that have come, the newest change of each sender."""

    _parts: dict[str, list[ViewPart]] = field(default_factory=dict)

    def keep(self, sender: str, part: ViewPart) -> None:
        kept = self._parts.get(sender, [])
        if not kept or _change_of(kept[0]) != _change_of(part) or part.part == 0:
            kept = self._parts[sender] = []
        if part.part < len(kept):  # it came twice
            return
        if part.part > len(kept):
            self._parts.pop(sender, None)
            raise Busy("a part before this one is missing", remedy="tell all parts again")
        if sum(each.size for each in kept) + part.size > MOST_BYTES:
            self._parts.pop(sender, None)
            raise Busy("a merge subscription that is too large", remedy=f"at most {MOST_BYTES:,}")
        kept.append(part)

    def whole(self, sender: str, parted: PartedChange) -> ChangeSub | None:
        """The change with all its parts; None if one is missing. The parts are gone then."""
        kept, change = self._parts.pop(sender, []), parted.change
        if len(kept) != parted.parts or any(
            _change_of(each) != (change.epoch, change.version, change.digest) for each in kept
        ):
            return None
        return replace(
            change,
            added=(*(text for part in kept for text in part.added), *change.added),
            removed=(*(text for part in kept for text in part.removed), *change.removed),
        )


def _change_of(part: ViewPart) -> tuple[int, int, str]:
    return part.epoch, part.version, part.digest
