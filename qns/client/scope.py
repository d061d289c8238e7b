"""Scope: the texts of a collection's subscriptions, and the lease that keeps them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic
from typing import Final

from qns.errors import LanguageError

LIFETIME_S: Final = 86_400.0
"""The lifetime of a collection's subscriptions: they end so long after a program has died."""

NOTICE_S: Final = 5.0
"""The longest single wait of `get`: after it, failed callbacks are noticed."""

_CLASS_FIRST = re.compile(r"\s*(?!only\b)[^\W\d`]|\s*`", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scope:
    """A class in the readable notation, with `from …` and `where …` if wanted."""

    text: str

    def __post_init__(self) -> None:
        if not _CLASS_FIRST.match(self.text):
            raise LanguageError(
                "a collection is described by its class first",
                line=1,
                column=1,
                remedy="write it as Enterprise/Holder from INPS where Name.accuracy <= medium",
            )

    @property
    def exactly(self) -> str:
        """The subscription to exactly the class."""
        return f"only {self.text}"

    @property
    def with_all_below(self) -> str:
        """The subscription to the class and the classes below it."""
        return self.text

    @property
    def group(self) -> str:
        """The delivery group of all programs that remove from the same collection."""
        return f"remove {sha256(self.exactly.encode()).hexdigest()[:32]}"


@dataclass(slots=True)
class Lease:
    """The time at which a subscription has to be renewed."""

    lifetime_s: float = LIFETIME_S
    renew_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.was_renewed()

    @property
    def is_due(self) -> bool:
        """True if half of the lifetime has passed."""
        return monotonic() >= self.renew_at

    def was_renewed(self) -> None:
        """Starts a new period."""
        self.renew_at = monotonic() + self.lifetime_s / 2
