"""Every error that QNS raises on purpose.

QnsError                    a problem that QNS expects and explains; it is never a bug of QNS
├── NameNotKnown            a name that is not known: of a class, property, subscription, …
├── ValueRefused            a value of the wrong type, outside its domain or too long
├── Unsatisfiable           constraints on one attribute that no event can meet
├── LimitExceeded           too many terms, too long a text, too many elements
├── LanguageError           a subscription that does not parse; points at the column
├── SchemaError             a schema or a schema mapping that contradicts itself
├── DocumentError           XML or JSON that is malformed or breaks its schema
├── DuplicateId             an identifier that is already in use
├── NotAllowed              a request that this peer may not serve: not a member, not hosted here
├── FederationError         a federation document that contradicts itself or the one in force
├── Busy                    a bounded buffer is full: the same request succeeds later
│   └── StoreFull           no room left on the disk
└── StoreFailed             the store cannot be read or written

Each says what is wrong, where (`place`) and how to correct it (`remedy`).
Errors of lark, lxml, orjson, apsw and numba never leave the module that calls them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Self

_MANY_NAMES = 2_000


class QnsError(Exception):
    """The input is wrong. Says what is wrong, where, and how to correct it."""

    def __init__(self, problem: str, *, place: str = "", remedy: str = "") -> None:
        super().__init__(problem, place, remedy)
        self.problem = problem
        self.place = place
        self.remedy = remedy
        self.line: int | None = None
        self.column: int | None = None

    def at_mark(self, line: int, column: int | None) -> Self:
        """Adds a position in a text, unless the error has one already. Returns the error."""
        if self.line is None:
            self.line, self.column = line, column
            self.at(mark_text(line, column))
        return self

    def at(self, place: str) -> Self:
        """Puts the enclosing place (a file, a line, an event) first. Returns the error."""
        self.place = f"{place}: {self.place}" if self.place else place
        return self

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        what_now = f" ({self.remedy})" if self.remedy else ""
        return f"{where}{self.problem}{what_now}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[QnsError], args: tuple[object, ...], fields: dict[str, object]) -> QnsError:
    """Returns an error from a pickle, without the parameters of its class's constructor."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class NameNotKnown(QnsError):
    """A name that is not known. The remedy lists similar names."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, place: str = "", problem: str = ""
    ) -> None:
        candidates = sorted(known)
        near = near_misses(name, candidates)
        if near:
            remedy = "did you mean " + " or ".join(near) + "?"
        elif candidates:
            remedy = "known: " + ", ".join(candidates[:12]) + ("…" if len(candidates) > 12 else "")
        else:
            remedy = ""
        super().__init__(problem or f"unknown {kind} {shorten(name)}", place=place, remedy=remedy)
        self.kind = kind
        self.name = name
        self.near_misses = near


class ValueRefused(QnsError):
    """A value of the wrong type, or outside its domain."""


class Unsatisfiable(QnsError):
    """No event can satisfy the constraints on one attribute."""

    def __init__(self, attribute: str, *, place: str = "") -> None:
        super().__init__(
            f"no event can satisfy the constraints on {attribute}",
            place=place,
            remedy=f"loosen or remove a constraint on {attribute}",
        )
        self.attribute = attribute


class LimitExceeded(QnsError):
    """More terms, text or elements than a peer agrees to handle."""


class LanguageError(QnsError):
    """A subscription that does not parse. Gives the column and what was expected there."""

    def __init__(self, problem: str, *, line: int, column: int, remedy: str = "") -> None:
        super().__init__(problem, remedy=remedy)
        self.at_mark(line, column)


class SchemaError(QnsError):
    """A schema, or a schema mapping, that contradicts itself."""


class DocumentError(QnsError):
    """XML or JSON that is malformed, or does not follow its schema."""


class DuplicateId(QnsError):
    """An identifier that is already in use."""


class NotAllowed(QnsError):
    """A request that this peer may not serve for anybody."""


class FederationError(QnsError):
    """A federation document that contradicts itself, or the one in force."""


class Busy(QnsError):
    """A bounded buffer is full. Nothing was changed; the same request succeeds later."""

    retry_after_s: float = 0.0
    """After how many seconds the request should be repeated; 0 if nobody says so."""


class StoreFull(Busy):
    """There is no room left on the disk. Nothing was committed."""


class StoreFailed(QnsError):
    """The store cannot be read or written, or is not a store of this peer."""


def mark_text(line: int, column: int | None) -> str:
    if column is None:
        return f"line {line}"
    return f"column {column}" if line == 1 else f"line {line}, column {column}"


def near_misses(name: str, known: Iterable[str]) -> list[str]:
    """Returns up to three known names that are similar to `name`."""
    wanted = name[:200].casefold()
    by_fold = {candidate.casefold(): candidate for candidate in known}
    if len(by_fold) > _MANY_NAMES:  # comparing all names would take seconds
        start = _last_step(wanted)[:2]
        alike = (pair for pair in by_fold.items() if _last_step(pair[0]).startswith(start))
        by_fold = dict(islice(alike, _MANY_NAMES))
    close = difflib.get_close_matches(wanted, by_fold, n=3, cutoff=0.6)
    if not close and wanted:  # `Holder` for `Enterprise/Holder`, `Sped` for `Report/Wind.Speed`
        tails = {fold: _last_step(fold) for fold in by_fold}
        near_tails = difflib.get_close_matches(
            _last_step(wanted), set(tails.values()), n=3, cutoff=0.7
        )
        close = [fold for fold, tail in tails.items() if tail in near_tails][:3]
    return [by_fold[fold] for fold in close]


def _last_step(name: str) -> str:
    return name.replace(".", "/").rsplit("/", 1)[-1]


def show(value: object) -> str:
    """Returns a value as text for a message: short values as they are, others by their type."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, int) and value.bit_length() > 128:
        return "a whole number of more than 38 digits"
    if value is None or isinstance(value, int | float | Decimal | date):
        return f"{value!s:.40}"
    return f"a value of type {type(value).__name__:.60}"


def shorten(text: str, limit: int = 60) -> str:
    """Returns the text in quotes, shortened and on one line, for a message."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    if not shown.isprintable():  # for example a line break, NUL or a lone surrogate
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)
    return f"'{shown}'"
