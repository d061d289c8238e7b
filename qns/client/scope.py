"""Scope: what a collection stands for, as the subscriptions behind it are written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic
from typing import Final

from qns.errors import LanguageError

LIFETIME_S: Final = 86_400.0
"""Of a collection's subscriptions: a program that dies leaves nothing behind for longer."""

NOTICE_S: Final = 5.0
"""How long `get` waits at a time: then it looks whether a callback has failed."""

_CLASS_FIRST = re.compile(r"\s*(?!only\b)[^\W\d`]|\s*`", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scope:
    """A class, with `from …` and `where …` if wanted, in the readable notation."""

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
        """The class itself."""
        return f"only {self.text}"

    @property
    def with_all_below(self) -> str:
        """The class and the classes below it."""
        return self.text

    @property
    def group(self) -> str:
        """The delivery group that all share who remove from the same collection."""
        return f"remove {sha256(self.exactly.encode()).hexdigest()[:32]}"


@dataclass(slots=True)
class Lease:
    """When a subscription has to be renewed."""

    renew_at: float = field(default_factory=lambda: monotonic() + LIFETIME_S / 2)

    @property
    def is_due(self) -> bool:
        return monotonic() >= self.renew_at

    def was_renewed(self) -> None:
        self.renew_at = monotonic() + LIFETIME_S / 2
