"""Names: bounds the names that XML documents leave in the memory of lxml.

lxml keeps the names of elements and attributes, prefixes, namespaces and short white space for as
long as the thread lives. They are therefore counted here: when `MAX_KNOWN` are known, a document
with other names is read in a separate thread, whose names are freed with the tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Thread
from typing import Final, TypeVar

T = TypeVar("T")

MAX_KNOWN: Final = 2_048
MAX_KNOWN_BYTES: Final = 256
"""The limit for one name."""

# Anything that begins with `<`, with the white space after it, of which lxml keeps up to 59
# characters. The last, empty alternative matches a `<` that begins nothing, so that none is
# skipped. No part backtracks, so the time is proportional to the length.
MARKUP: Final = re.compile(
    rb"<(?:"
    rb"[^<>\"'!?]++(?:\"[^<\"]*+\"[^<>\"']*+|'[^<']*+'[^<>\"']*+)*+>"
    rb"|!--.*?(?:-->|\Z)"
    rb"|!\[CDATA\[.*?(?:\]\]>|\Z)"
    rb"|![A-Za-z]++"
    rb"|\?[^<>?]{0,40}+"
    rb"|)[ \t\r\n]{0,59}+",
    re.DOTALL,
)
QUOTED: Final = re.compile(rb"\"[^\"]*+\"|'[^']*+'")
_ODD_REFERENCE = re.compile(rb"&(?!(?:lt|gt|amp|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")


_DECLARATIONS: Final = frozenset((b"<?xml version= encoding=", b"<?xml version="))
"""XML declarations in the form of `words_of`. They leave no name in lxml."""


class Vocabulary:
    """The names that lxml has read and keeps, for one kind of documents."""

    def __init__(self) -> None:
        self.known: set[bytes] = set(_DECLARATIONS)

    def takes(self, words: list[bytes]) -> bool:
        """True if all words are known, or have become known by this call."""
        if self.known.issuperset(words):
            return True
        new = {word for word in words if word not in self.known}
        if len(self.known) + len(new) > MAX_KNOWN or any(
            len(word) > MAX_KNOWN_BYTES or word.startswith((b"<!", b"<?")) or word == b"<"
            for word in new
        ):
            return False
        self.known |= new
        return True


def words_of(raw: bytes) -> list[bytes]:
    """Returns the tags without attribute values, except namespaces, which lxml keeps as well."""
    words = [
        QUOTED.sub(b"", tag) if b"=" in tag and b"xmlns" not in tag else tag
        for tag in MARKUP.findall(raw)
    ]
    if b"&" in raw and _ODD_REFERENCE.search(raw):
        words.append(b"<!")  # lxml would keep the name of an entity as well
    return words


def apart(read: Callable[[], T]) -> T:
    """Calls `read` in a separate thread, so that lxml frees the names at its end."""
    outcome: list[T] = []
    problems: list[Exception] = []

    def run() -> None:
        try:
            outcome.append(read())
        except Exception as problem:
            problems.append(problem)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return outcome[0]
