"""Operation: one thing that an operator can ask a running peer to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from qns.errors import NameNotKnown, ValueRefused, show
from qns.runtime.configuration import Configuration
from qns.runtime.drain import Drain
from qns.runtime.driver import Driver
from qns.runtime.health import Health
from qns.runtime.metrics import Metrics
from qns.runtime.peer_tls import PeerTls

Arguments = Mapping[str, Any]
Result = dict[str, Any]
"""The answer of an operation; it can be written as JSON."""
Report = Callable[[Result], Awaitable[None]]
"""Sends a line about the progress of an operation to the operator."""

_LARGEST_LIMIT: Final = 10_000
"""More rows would keep the peer from its work for too long."""


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The parts of the running peer that operations use."""

    configuration: Configuration
    driver: Driver
    health: Health
    metrics: Metrics
    drain: Drain
    tls: PeerTls | None = None
    copying: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the store is copied."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`run` gets arguments that have passed the check, and raises QnsError to refuse.

    The operator may disconnect at any time; `run` is then cancelled.
    """

    name: str
    run: Callable[[Context, Arguments, Report], Awaitable[Result]]
    required: Mapping[str, type] = field(default_factory=dict)
    """The arguments that must be given, with their types."""
    optional: Mapping[str, type] = field(default_factory=dict)
    """The arguments that may be given; the others are absent."""

    def check(self, arguments: Arguments) -> None:
        """Raises an error if an argument is unknown, missing or of the wrong type."""
        known = {**self.required, **self.optional}
        for name, value in arguments.items():
            if name not in known:
                raise NameNotKnown("argument", name, known, place=self.name)
            kind = known[name]
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise ValueRefused(
                    f"{show(value)} is not {_KINDS[kind]}", place=f"{self.name}: {name}"
                )
        for name in self.required:
            if name not in arguments:
                raise ValueRefused(f"the argument {name} is missing", place=self.name)


def checked_limit(arguments: Arguments, default: int) -> int:
    """Returns the argument `limit`, the largest number of rows in the answer."""
    limit: int = arguments.get("limit", default)
    if not 0 < limit <= _LARGEST_LIMIT:
        raise ValueRefused(f"a limit of {limit}", remedy=f"give one from 1 to {_LARGEST_LIMIT:,}")
    return limit


_KINDS: Final = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}
