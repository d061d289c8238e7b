"""Names: XML can bring ever new ones, and lxml keeps each for as long as the thread lives.

It keeps the names of elements and attributes, prefixes, namespaces and short white space. What is
met here is therefore counted: once `MAX_KNOWN` are known, a document with other ones is read in a
thread of its own, whose names are forgotten with the tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Thread
from typing import Final, TypeVar

T = TypeVar("T")

MAX_KNOWN: Final = 2_048
MAX_KNOWN_BYTES: Final = 256
"""Of one of them."""

# Whatever begins with `<`, with the white space after it, of which lxml keeps up to 59 characters.
# The last, empty alternative takes a `<` that begins nothing, so that none is passed over.
# Nothing is tried twice on the same bytes: the time is proportional to the length.
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
"""As `words_of` gives them. Our own documents begin with one; it leaves no name behind."""


class Vocabulary:
    """What lxml has met and keeps, for one kind of documents."""

    def __init__(self) -> None:
        self.known: set[bytes] = set(_DECLARATIONS)

    def takes(self, words: list[bytes]) -> bool:
        """Whether all of them are known, or known from now on."""
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
    """The tags without the values of attributes, which lxml does not keep; namespaces it does."""
    words = [
        QUOTED.sub(b"", tag) if b"=" in tag and b"xmlns" not in tag else tag
        for tag in MARKUP.findall(raw)
    ]
    if b"&" in raw and _ODD_REFERENCE.search(raw):
        words.append(b"<!")  # an entity's name would be kept too
    return words


def apart(read: Callable[[], T]) -> T:
    """What `read` gives or raises, in a thread of its own: lxml forgets the names with it."""
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
