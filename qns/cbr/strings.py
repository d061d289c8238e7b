"""Strings: a set of strings that is either listed or described by patterns.

A listed set is finite. A described set holds every string with a prefix, a suffix and some
fragments, except a few strings; it is always infinite. Both are kept in normal form, so that
equal sets are equal objects and containment is decided exactly (semantics §5).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import groupby

_NOTHING: frozenset[str] = frozenset()
_APART = "\uffff"  # it is in no string value, because XML cannot carry it

_FEW = 64
"""As many pieces of one length are searched for one by one."""


@dataclass(frozen=True, slots=True)
class Strings:
    """Either `listed` is the set, or it is None and the other four fields describe the set."""

    listed: frozenset[str] | None = None
    prefix: str = ""
    suffix: str = ""
    fragments: frozenset[str] = _NOTHING
    excluded: frozenset[str] = _NOTHING

    @classmethod
    def of(cls, values: Iterable[str]) -> Strings:
        return cls(listed=frozenset(values))

    @classmethod
    def described(
        cls,
        prefix: str = "",
        suffix: str = "",
        fragments: Iterable[str] = (),
        excluded: Iterable[str] = (),
    ) -> Strings:
        """Returns the set of all strings with these patterns, except the excluded ones."""
        needed = _in_no_other(frozenset(fragments), _APART.join((prefix, suffix)))
        patterns = cls(None, prefix, suffix, needed)
        return cls(
            None, prefix, suffix, needed, frozenset(x for x in excluded if patterns.holds(x))
        )

    @property
    def is_empty(self) -> bool:
        return self.listed is not None and not self.listed

    @property
    def terms(self) -> int:
        if self.listed is not None:
            return len(self.listed)
        return max(
            1, bool(self.prefix) + bool(self.suffix) + len(self.fragments) + len(self.excluded)
        )

    @property
    def characters(self) -> int:
        """The number of characters of all strings that are needed to write this set."""
        if self.listed is not None:
            return sum(map(len, self.listed))
        pieces = (*self.fragments, *self.excluded)
        return len(self.prefix) + len(self.suffix) + sum(map(len, pieces))

    @property
    def has_patterns(self) -> bool:
        return bool(self.prefix or self.suffix or self.fragments)

    def holds(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        if self.listed is not None:
            return key in self.listed
        return (
            key not in self.excluded
            and key.startswith(self.prefix)
            and key.endswith(self.suffix)
            and all(piece in key for piece in self.fragments)
        )

    def contains(self, other: object) -> bool:
        """True if every string of `other` is in this set.

        If both sets are described, take the string of the other's prefix, fragments and suffix,
        separated by characters that occur nowhere else. It is in `other`, so a pattern of this set
        is implied only if one of these pieces implies it.
        """
        if not isinstance(other, Strings):
            return False
        if other.listed is not None:
            return all(self.holds(value) for value in other.listed)
        if self.listed is not None:
            return False
        whole = _APART.join((other.prefix, other.suffix, *other.fragments))
        return (
            other.prefix.startswith(self.prefix)
            and other.suffix.endswith(self.suffix)
            and all(piece in whole for piece in self.fragments)
            and not any(other.holds(value) for value in self.excluded)
        )

    def intersect(self, other: Strings) -> Strings:
        if self.listed is not None:
            return Strings.of(value for value in self.listed if other.holds(value))
        if other.listed is not None:
            return other.intersect(self)
        prefix = max(self.prefix, other.prefix, key=len)
        suffix = max(self.suffix, other.suffix, key=len)
        if not (
            prefix.startswith(self.prefix)
            and prefix.startswith(other.prefix)
            and suffix.endswith(self.suffix)
            and suffix.endswith(other.suffix)
        ):
            return Strings.of(())
        return Strings.described(
            prefix, suffix, self.fragments | other.fragments, self.excluded | other.excluded
        )

    def union(self, other: Strings) -> Strings | None:
        """Returns the union if it is itself such a set, else None."""
        if self.listed is not None and other.listed is not None:
            return Strings(listed=self.listed | other.listed)
        if self.contains(other):
            return self
        if other.contains(self):
            return other
        if self.listed is not None:
            return other.union(self)
        if other.listed is not None:
            patterns = Strings(None, self.prefix, self.suffix, self.fragments)
            if all(patterns.holds(value) for value in other.listed):
                return Strings.described(
                    self.prefix, self.suffix, self.fragments, self.excluded - other.listed
                )
            return None
        if (self.prefix, self.suffix, self.fragments) == (
            other.prefix,
            other.suffix,
            other.fragments,
        ):
            return Strings.described(
                self.prefix, self.suffix, self.fragments, self.excluded & other.excluded
            )
        return None

    def outside(self, other: Strings) -> str | None:
        """Returns a string that is in this set and not in `other`, or None."""
        return next((value for value in self.samples(other) if not other.holds(value)), None)

    def samples(self, other: Strings) -> Iterable[str]:
        """Yields strings of this set. One of them is outside `other` if any string is."""
        if self.listed is not None:
            yield from sorted(self.listed)
            return
        yield from sorted(value for value in other.excluded if self.holds(value))
        used = {*self.prefix, *self.suffix, *other.prefix, *other.suffix}
        used.update(*self.fragments, *other.fragments)
        gap = next(c for c in _gap_characters() if c not in used)
        body = gap + "".join(piece + gap for piece in sorted(self.fragments))
        exceptions = self.excluded | (other.listed or _NOTHING)
        if not self.has_patterns and "" not in exceptions and not other.holds(""):
            yield ""
        while self.prefix + body + self.suffix in exceptions:
            body += gap
        yield self.prefix + body + self.suffix


EVERY_STRING = Strings()


def _in_no_other(pieces: frozenset[str], ends: str) -> frozenset[str]:
    """Returns the pieces that occur neither in another one nor in the ends.

    A piece can occur only in a longer one, so the longest come first.
    """
    found: list[str] = []
    longer = ends
    for length, group in groupby(sorted(pieces, key=len, reverse=True), key=len):
        within: Container[str] = longer
        alike = list(group)
        if len(alike) > _FEW:  # searching for each of them would take long
            within = {longer[at : at + length] for at in range(len(longer) - length + 1)}
        needed = [piece for piece in alike if piece not in within]
        longer = _APART.join((longer, *needed))
        found += needed
    return frozenset(found)


def _gap_characters() -> Iterable[str]:
    """Yields plain signs, then ideographs, then a million others: more than any pattern uses."""
    yield from "-~*#+%"
    for points in (range(0x4E00, 0xD800), range(0xE000, 0xFDD0), range(0x10000, 0x110000)):
        yield from (chr(point) for point in points if point & 0xFFFE != 0xFFFE)
