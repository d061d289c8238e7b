"""Event: one quality change, ⟨δ, d, {⟨p.qd, v⟩…}⟩ with id and source (semantics §2).

It has flat fields only. Data and new quality values share one mapping from qualified attribute name
to key (`domains.py`); previous quality values are in another mapping with the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from qns.cbr.domains import Key

_NOTHING: Mapping[str, int] = MappingProxyType({})


class Event(NamedTuple):  # a tuple is fast to create, and every line read creates one
    id: str
    data_class: str
    source: str
    values: Mapping[str, Key]
    """Keys of the data and of the new quality; `Delivered.data` and `quality` have the values."""
    previous: Mapping[str, int] = _NOTHING
    published_us: int | None = None
    """The time of publication, in microseconds since 1970 in UTC."""
    available_s: float = 0
    """Availability Δ of semantics §8: for how many seconds late subscribers get the event."""

    def __reduce__(self) -> tuple[object, ...]:  # a read-only mapping cannot be pickled
        plain = self._replace(values=dict(self.values), previous=dict(self.previous))
        return Event, tuple(plain)
