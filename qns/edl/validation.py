"""Validation: rejects messages of other peers that no correct peer can send.

These are numbers that no stream can have, times that are not a number, texts that cannot be stored
and subtrees that are too deep. The sender gets a fault, and the message changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from qns.edl.messages import Entry, Envelope, Fence, Notification, Notify

LARGEST: Final = 2**53
MOST_PARTS: Final = 2_000_000
_MOST_ON_FAST_PATH: Final = MOST_PARTS // 100
MOST_FENCES: Final = 1_000
"""The limit of fences of one stream: each is a restore, or a start that is not known yet."""
DEEPEST: Final = 80
"""The limit of levels of a subtree."""


def validate_envelope(envelope: Envelope) -> str | None:
    """Returns what is wrong with the envelope; None if it is valid."""
    if _is_ordinary(envelope):
        return None
    waiting: list[object] = [envelope]
    parts = 0
    while waiting:
        value = waiting.pop()
        parts += 1
        if parts > MOST_PARTS:
            return f"a message of more than {MOST_PARTS:,} parts"
        kind = type(value)
        check = _CHECKS.get(kind)
        if check is not None:
            reason = check(value)
            if reason is not None:
                return reason
        elif isinstance(value, Entry):
            entries = _subtree(value)
            if entries is None:
                return f"a subtree of more than {DEEPEST} levels"
            for entry in entries:
                waiting += _ENTRY(entry)
                waiting += (entry.fences, entry.carriers)
        elif isinstance(value, tuple):
            if len(value) > MOST_FENCES and isinstance(value[0], Fence):
                return f"more than {MOST_FENCES:,} fences"
            waiting += value
        elif is_dataclass(kind):
            waiting += _parts(kind)(value)
        else:
            return f"a value of type {kind.__name__}"
    return None


def _is_ordinary(envelope: Envelope) -> bool:
    """True if it has only plain notifications, as most envelopes do: a fast path."""
    body, sender, document = envelope.body, envelope.sender, envelope.document
    return (
        type(body) is Notify
        and type(body.items) is tuple
        and not envelope.reachability
        and type(sender) is str
        and sender.isascii()
        and type(document) is int
        and 0 <= document < LARGEST
        and len(body.items) <= _MOST_ON_FAST_PATH
        and all(type(item) is Notification and _is_plain(item) for item in body.items)
    )


def _is_plain(item: Any) -> bool:
    """True if the notification has no subtree and is valid."""
    source, incarnation, epoch, sequence, event, xml, remaining_s, entry, path, seal = item
    receiver, receiver_incarnation, given, number, confirmed, fences, children, carriers, proof = (
        entry
    )
    if children or fences or carriers or type(seal) is not bytes or type(proof) is not bytes:
        return False
    for value in (incarnation, epoch, sequence, receiver_incarnation, given, number, confirmed):
        if type(value) is not int or not 0 <= value < LARGEST:
            return False
    for text in (source, event, receiver, *path):
        if type(text) is not str or not text.isascii():
            return False
    return type(xml) is bytes and type(remaining_s) is float and remaining_s >= 0


def _subtree(top: Entry) -> list[Entry] | None:
    """Returns all entries of the subtree; None if it is too deep."""
    if not top.children:
        return [top]
    found, level = [], [top]
    for _ in range(DEEPEST):
        found += level
        level = [child for entry in level for child in entry.children]
        if not level:
            return found
    return None


def _number(value: Any) -> str | None:
    if 0 <= value < LARGEST:
        return None
    return f"a number that is negative or not below {LARGEST:,}"


def _time(value: Any) -> str | None:
    return None if value >= 0 else "a time that is negative or not a number"


def _text(value: Any) -> str | None:
    return None if value.isascii() or _is_text(value) else "a text that cannot be written down"


def _nothing(_: object) -> None:
    return None


_CHECKS: Final[dict[type, Callable[[Any], str | None]]] = {
    int: _number,
    float: _time,
    str: _text,
    bool: _nothing,
    bytes: _nothing,
    type(None): _nothing,
}


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_ENTRY: Final = attrgetter("receiver", "incarnation", "epoch", "number", "confirmed", "proof")


@lru_cache(maxsize=64)
def _parts(kind: type[Any]) -> Callable[[Any], tuple[object, ...]]:
    names = [field.name for field in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)
