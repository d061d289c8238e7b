"""Soundness: whether a message of another peer can be what it says, asked before all else.

Numbers that no stream can have, times that are none, texts that cannot be stored, a subtree without
end: a member that sends such a thing gets a fault, and nothing else happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from qns.edl.messages import Entry, Envelope, Notification, Notify

LARGEST: Final = 2**53
MOST_PARTS: Final = 2_000_000
_MOST_AT_A_GLANCE: Final = MOST_PARTS // 100
DEEPEST: Final = 80
"""Levels of a subtree."""


def objection(envelope: Envelope) -> str | None:
    """What is wrong with it, if anything is."""
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
        wrong = _OBJECTIONS.get(kind)
        if wrong is not None:
            reason = wrong(value)
            if reason is not None:
                return reason
        elif isinstance(value, Entry):
            entries = _subtree(value)
            if entries is None:
                return f"a subtree of more than {DEEPEST} levels"
            for entry in entries:
                waiting += _ENTRY(entry)
                waiting += entry.fences
        elif isinstance(value, tuple):
            waiting += value
        elif is_dataclass(kind):
            waiting += _parts(kind)(value)
        else:
            return f"a value of type {kind.__name__}"
    return None


def _is_ordinary(envelope: Envelope) -> bool:
    """Whether it only brings plain notifications, as most do: then a quicker look is enough."""
    body, sender, document = envelope.body, envelope.sender, envelope.document
    return (
        type(body) is Notify
        and type(body.items) is tuple
        and not envelope.reachability
        and type(sender) is str
        and sender.isascii()
        and type(document) is int
        and 0 <= document < LARGEST
        and len(body.items) <= _MOST_AT_A_GLANCE
        and all(type(item) is Notification and _is_plain(item) for item in body.items)
    )


def _is_plain(item: Any) -> bool:
    """Whether there is nothing to object to in a notification without a subtree."""
    source, joined, epoch, sequence, event, xml, remaining_s, entry, path = item
    receiver, own, given, number, confirmed, fences, children = entry
    if children or fences:
        return False
    for value in (joined, epoch, sequence, own, given, number, confirmed):
        if type(value) is not int or not 0 <= value < LARGEST:
            return False
    for text in (source, event, receiver, *path):
        if type(text) is not str or not text.isascii():
            return False
    return type(xml) is bytes and type(remaining_s) is float and remaining_s >= 0


def _subtree(top: Entry) -> list[Entry] | None:
    """All its entries; None if it goes too deep."""
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
    return None if value >= 0 else "a time that is negative or none"


def _text(value: Any) -> str | None:
    return None if value.isascii() or _is_text(value) else "a text that cannot be written down"


def _nothing(_: object) -> None:
    return None


_OBJECTIONS: Final[dict[type, Callable[[Any], str | None]]] = {
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


_ENTRY: Final = attrgetter("receiver", "joined", "epoch", "number", "confirmed")


@lru_cache(maxsize=64)
def _parts(kind: type[Any]) -> Callable[[Any], tuple[object, ...]]:
    names = [field.name for field in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)
