"""Log reason: why a request was refused, without anything that the request contains.

The answer quotes what is wrong, so that the caller can correct it. The log of the peer is read by
others, so values, names and texts of a request are replaced there.
"""

from __future__ import annotations

import re
from typing import Final

from qns.errors import (
    Busy,
    DuplicateId,
    FederationError,
    LimitExceeded,
    NameNotKnown,
    NotAllowed,
    QnsError,
    StoreFailed,
    ValueRefused,
)

_WITHOUT_CONTENT: Final = (
    Busy,
    DuplicateId,
    FederationError,
    LimitExceeded,
    NotAllowed,
    StoreFailed,
)
"""Errors about organisations, ids and limits, which quote nothing else of a request."""
_KNOWN_KINDS: Final = ("subscription", "organisation")
"""Kinds of names that are no content of an event."""
_QUOTED: Final = re.compile("['\"‘“].*['\"’”]", re.DOTALL)
_NUMBER: Final = re.compile(r"[-+]?\d[\w.:+-]*")
_HIDDEN: Final = "…"


def without_quotes(text: str) -> str:
    """Returns a text in which everything between quotation marks is replaced by `…`."""
    return _QUOTED.sub(f"'{_HIDDEN}'", text)


def without_numbers(text: str) -> str:
    return _NUMBER.sub(_HIDDEN, text)


def log_reason(error: QnsError) -> str:
    """Returns the problem and its place; whatever the request may contain is replaced by `…`."""
    text = error.problem
    is_name = isinstance(error, NameNotKnown) and error.kind in _KNOWN_KINDS
    if not is_name and not isinstance(error, _WITHOUT_CONTENT):
        text = without_quotes(text)
    if isinstance(error, ValueRefused):
        text = without_numbers(text)
    return _with_place(error, text)


def _with_place(error: QnsError, text: str) -> str:
    place = without_quotes(error.place)
    return f"{place}: {text}" if place else text
