"""Parts: splits a change of a view that is too large for one message into several.

The parts are sent first, each in a `viewPart`. The `changeSub` that follows carries the rest and
the number of parts. Until it arrives, the receiver only keeps the parts. If a part is missing, for
example because the receiver restarted, the receiver requests the complete view.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from qns.edl.messages import ChangeSub, Envelope
from qns.errors import Busy

PART_BYTES: Final = 1_000_000
"""The approximate size of one part in the message."""
MOST_BYTES: Final = 64 * 1_048_576
"""The most bytes that are kept of one sender's parts."""
_ELEMENT_BYTES: Final = 100
"""An estimate of the tags and white space around one subscription."""
_ESCAPED: Final = 1.3
"""An estimate of how much longer a subscription gets when its markup is escaped."""


@dataclass(frozen=True, slots=True)
class ViewPart:
    """One part of a change. The epoch, version and digest identify the change."""

    epoch: int
    version: int
    digest: str
    part: int
    """The number of the part; the first is 0."""
    added: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def size(self) -> int:
        return sum(map(len, (*self.added, *self.removed)))


@dataclass(frozen=True, slots=True)
class PartedChange:
    """The last message of a change that is sent in parts."""

    change: ChangeSub
    """The change with the elements that were in none of the parts."""
    parts: int
    """How many parts precede it."""


def in_parts(envelope: Envelope) -> list[Envelope]:
    """Returns the envelopes to send, in order. It is one, except for a large `ChangeSub`."""
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
    """Keeps the parts that have arrived: those of the newest change of each sender."""

    _parts: dict[str, list[ViewPart]] = field(default_factory=dict)

    def keep(self, sender: str, part: ViewPart) -> None:
        kept = self._parts.get(sender, [])
        if not kept or _change_of(kept[0]) != _change_of(part) or part.part == 0:
            kept = self._parts[sender] = []
        if part.part < len(kept):  # a duplicate
            return
        if part.part > len(kept):
            self._parts.pop(sender, None)
            raise Busy("a part before this one is missing", remedy="send all parts again")
        if sum(each.size for each in kept) + part.size > MOST_BYTES:
            self._parts.pop(sender, None)
            raise Busy(
                "the merge subscription is too large", remedy=f"send at most {MOST_BYTES:,} bytes"
            )
        kept.append(part)

    def whole(self, sender: str, parted: PartedChange) -> ChangeSub | None:
        """Returns the change with all its parts, or None if one is missing; forgets the parts."""
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
