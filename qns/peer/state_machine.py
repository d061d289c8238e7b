"""State machine: the base of the states and events that are keys of transition tables."""

from __future__ import annotations

from enum import Enum


class TableKey(Enum):
    """A state or an event. Its hash is its identity: `Enum` computes one in Python, more slowly."""

    __hash__ = object.__hash__
