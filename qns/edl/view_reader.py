"""View reader: reads the elements of large views in slices, so that no turn takes long.

A change of a view takes effect only when all its elements are read, and the matcher is prepared for
them. Until then the consumer is asked to repeat it later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.cbr.subscription import Subscription
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import read_subscription
from qns.edl.external_matcher import ExternalMatcher
from qns.errors import Busy, QnsError
from qns.peer.turn import Turn

SLICE_CHARACTERS: Final = 100_000
"""About as many characters of elements are read and prepared in one turn; this takes some 50 ms."""
PAUSE_S: Final = 0.05
"""The pause after a slice, so that reading takes at most about half of the time of the peer."""


@dataclass(slots=True, eq=False)
class ViewReader:
    schema: Schema
    matcher: ExternalMatcher
    slice_characters: int = SLICE_CHARACTERS
    _read: dict[str, dict[str, Subscription]] = field(default_factory=dict)
    """Consumer -> the elements that are read and not in force yet, by their text."""
    _unread: dict[str, list[str]] = field(default_factory=dict)
    """Consumer -> the elements that later turns read, the next one last."""
    _next_at: float = 0.0
    """When the next slice may be read."""

    @property
    def is_reading(self) -> bool:
        return bool(self._unread)

    def next_due(self) -> float:
        return self._next_at if self._unread else inf

    def read(self, turn: Turn, consumer: str, texts: Iterable[str]) -> dict[str, Subscription]:
        """Returns the elements by their texts; the matcher is prepared for them.

        Raises Busy if the next turns have to go on reading, and QnsError for an invalid element.
        """
        before = self._read.pop(consumer, {})
        self._unread.pop(consumer, None)
        wanted = dict.fromkeys(texts)
        found = {text: before[text] for text in wanted if text in before}
        self.matcher.drop(consumer, [text for text in before if text not in wanted])
        unread = [text for text in reversed(wanted) if text not in found]
        if unread:
            self._read[consumer] = found  # also if the next one is invalid
            self._read_slice(consumer, found, unread)
        if unread:
            self._unread[consumer] = unread
            self._next_at = turn.now + PAUSE_S
            raise Busy(f"the {len(wanted):,} elements of the view of {consumer} are being read")
        self._read.pop(consumer, None)
        return found

    def go_on(self, turn: Turn) -> str | None:
        """Reads a slice of a view, unless the pause after the last one is not over.

        Returns the consumer if all its elements are read now.
        """
        if turn.now < self._next_at:
            return None
        for consumer, unread in self._unread.items():
            begun, self._next_at = turn.stopwatch(), turn.now + PAUSE_S
            try:
                self._read_slice(consumer, self._read[consumer], unread)
            except QnsError:  # the consumer gets the error when it repeats the change
                unread = []
            turn.charge(consumer, begun)
            if unread:
                return None
            del self._unread[consumer]
            return consumer
        return None

    def forget(self, consumer: str) -> None:
        self.matcher.drop(consumer, self._read.pop(consumer, {}))
        self._unread.pop(consumer, None)

    def apply_schema(self, schema: Schema) -> None:
        """Reads everything again with a schema that has grown."""
        self.schema = schema
        for consumer in list(self._read):
            self.forget(consumer)

    def _read_slice(self, consumer: str, found: dict[str, Subscription], unread: list[str]) -> None:
        """Moves elements from the end of `unread` to `found`: at least one, if there is one."""
        room = self.slice_characters
        while unread and room > 0:
            subscription = read_subscription(unread[-1], self.schema)
            self.matcher.prepare(consumer, unread[-1], subscription)
            found[unread[-1]] = subscription
            room -= len(unread.pop())
