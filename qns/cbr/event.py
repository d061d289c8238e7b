"""Event: one quality change, ⟨δ, d, {⟨p.qd, v⟩…}⟩ with id and source (semantics §2).

Flat fields only: data and new quality values share one mapping from qualified attribute name to
key (`domains.py`); previous quality values stand apart under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from qns.cbr.domains import Key

_NOTHING: Mapping[str, int] = MappingProxyType({})


class Event(NamedTuple):  # a tuple, because one is made for every line that is read
    id: str
    data_class: str
    source: str
    values: Mapping[str, Key]
    previous: Mapping[str, int] = _NOTHING
    published_us: int | None = None
    """When it was published: microseconds since 1970 in UTC."""
    available_s: float = 0
    """Δ of semantics §8: seconds owed to late subscribers; 0 none, infinity for ever."""

    def __reduce__(self) -> tuple[object, ...]:  # a read-only mapping cannot be pickled
        plain = self._replace(values=dict(self.values), previous=dict(self.previous))
        return Event, tuple(plain)
