"""Past events: what has left the event log, so that a repeated publication is recognised.

A producer that goes back in time forgets publications, and its factory may publish them again. A
consumer recognises them here. Memory has the newest events of each producer that were offered to
the users since this start; nothing is stored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from sys import maxsize
from typing import Final

_ROOT: Final = b"<event "
_PUBLISHED: Final = b' published="'


PastEvent = tuple[int, int, tuple[int, int, int]]
"""`content_of` its XML, the newest subscription (`created`) when it was offered to the users, and
its position. One is made for each event, so it is a plain tuple."""

EVERYONE: Final = maxsize
"""Stands for a subscription that is newer than all others."""

_NONE: Final[Mapping[str, PastEvent]] = {}


class PastEvents:
    def __init__(self, most: int) -> None:
        self._most = most
        """The most events of one producer."""
        self._by_source: dict[str, OrderedDict[str, PastEvent]] = {}
        self._went_back: set[str] = set()

    def remember(
        self, source: str, id: str, xml: bytes, offered_to: int, position: tuple[int, int, int]
    ) -> None:
        """Adds an event that leaves the log."""
        events = self._by_source.get(source)
        if events is None:
            events = self._by_source[source] = OrderedDict()
        events[id] = content_of(xml), offered_to, position
        if len(events) > self._most:
            events.popitem(last=False)

    def producer_went_back(self, source: str) -> None:
        """Notes that a producer may have forgotten publications."""
        self._went_back.add(source)

    def repeatable(self, source: str) -> Mapping[str, PastEvent]:
        """Returns the events that a producer may publish again, by their ids.

        They are none unless it went back: an id that it forgot in the course of time is new.
        """
        return self._by_source.get(source, _NONE) if source in self._went_back else _NONE

    def find(self, source: str, id: str, xml: bytes, position: tuple[int, int, int]) -> int | None:
        """Returns to which subscription, at most, the same event was offered; None if it is new.

        An event with the same position is not published again, only sent again: to nobody.
        """
        past = self.repeatable(source).get(id)
        if past is None or past[0] != content_of(xml):
            return None
        return EVERYONE if past[2] == position else past[1]


def content_of(xml: bytes) -> int:
    """Returns a hash of an event without the time of its publication.

    If a factory gives no time, its peer adds one, which differs when the event is published again.
    """
    root = xml.find(_ROOT)
    start = -1 if root < 0 else xml.find(_PUBLISHED, root, xml.find(b">", root))
    if start < 0:
        return hash(xml)
    end = xml.find(b'"', start + len(_PUBLISHED))
    return hash(xml[:start] + xml[end + 1 :])
