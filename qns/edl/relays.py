"""Relays: through which peers this producer sends to consumers that it cannot reach itself.

A consumer that is down looks like one behind a broken link. So a relay is tried with one event
first. It gets more when the consumer has acknowledged something, or when the relay has not reported
in time that it cannot reach the consumer either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf

from qns.cbr.event import Event
from qns.edl.outbound_stream import OutboundStream
from qns.edl.reachability import Reachability
from qns.edl.routes import Routes
from qns.peer.backoff import Backoff
from qns.peer.tuning import Tuning

_TRIAL_PAUSES = 2
"""The length of a trial, as a multiple of the time after which events are sent again."""
_MOST_DOUBLINGS = 8
"""The pause before events are relayed again doubles up to this often."""


@dataclass(slots=True, eq=False)
class Way:
    hop: str | None
    """The peer that relays to the consumer; None if there is none."""
    version: int
    """The version of the reachability with which the hop was chosen; -1: choose again."""
    attempts: int = 0
    """How many hops were tried since the consumer last acknowledged something."""
    trial_until: float | None = None
    """When the trial of the hop ends; None before it began, -inf when it was passed."""


@dataclass(slots=True, eq=False)
class Relays:
    reachability: Reachability
    routes: Routes
    tuning: Tuning
    ways: dict[str, Way] = field(default_factory=dict)
    """Consumer -> the way to it, while this peer cannot reach it itself."""

    def hop(self, consumer: str) -> str | None:
        """Returns the peer through which the consumer is reached now, if there is one."""
        way = self.ways.get(consumer)
        return None if way is None else way.hop

    def choose(
        self,
        now: float,
        streams: Mapping[str, OutboundStream],
        next_event: Callable[[OutboundStream], Event | None],
        interested: Callable[[Event], Collection[str]],
    ) -> None:
        """Chooses a relay for each stream to an unreachable consumer that has something to send.

        `next_event` returns the event that is sent next in a stream, `interested` the organisations
        that want an event.
        """
        if self.ways:
            self._end_trials(now)
            self._end_ways(now, streams)
        for consumer in self.reachability.unreachable():
            stream = streams.get(consumer)
            if stream is None or not stream.is_resending:
                continue
            if self._choose(stream, next_event, interested):
                stream.resend()
                stream.resend_at = now + self._pause_s(consumer)

    def _end_trials(self, now: float) -> None:
        for way in self.ways.values():
            if way.trial_until is not None and way.trial_until <= now:
                way.trial_until = -inf

    def _end_ways(self, now: float, streams: Mapping[str, OutboundStream]) -> None:
        """Ends the ways to consumers that are reachable again or have left."""
        for consumer in list(self.ways):
            stream = streams.get(consumer)
            if stream is not None and not self.reachability.reachable(consumer):
                continue
            del self.ways[consumer]
            if stream is not None and stream.owes:  # acknowledgements may still be on their way
                stream.resend_at = now + self.tuning.resend_after_s

    def _choose(
        self,
        stream: OutboundStream,
        next_event: Callable[[OutboundStream], Event | None],
        interested: Callable[[Event], Collection[str]],
    ) -> bool:
        """Chooses a relay that may read the next event, an interested one if possible.

        Returns True if it is a new one.
        """
        way = self.ways.setdefault(stream.consumer, Way(None, -1))
        if way.version == self.reachability.version:
            return False
        event = next_event(stream)
        found = self.routes.hops(stream.consumer, carrying=event)
        way.version = self.reachability.version
        if way.hop in found:
            return False
        way.hop, way.trial_until = None, None
        if found:
            wanted = () if event is None else interested(event)
            found.sort(key=lambda name: name not in wanted)
            way.hop = found[way.attempts % len(found)]
        return way.hop is not None

    def change(self, consumer: str) -> None:
        """Makes another relay due, because the present one refuses or brings no progress."""
        way = self.ways.get(consumer)
        if way is not None:
            way.hop, way.version, way.trial_until = None, -1, None
            way.attempts += 1

    def prove(self, consumer: str) -> None:
        """Ends the trial of a relay through which the consumer has got something."""
        way = self.ways.get(consumer)
        if way is not None:
            way.attempts, way.trial_until = 0, -inf

    def room(self, consumer: str, now: float) -> int:
        """Returns how many events the relay may get now, and begins its trial with the first."""
        way = self.ways[consumer]
        if way.trial_until is None:
            way.trial_until = now + _TRIAL_PAUSES * self.tuning.resend_after_s
            return 1
        return 0 if way.trial_until > now else self.tuning.notifications_per_call

    def pause_s(self, consumer: str) -> float | None:
        """Returns the pause before events are relayed again; None if there is no relay."""
        return None if self.hop(consumer) is None else self._pause_s(consumer)

    def _pause_s(self, consumer: str) -> float:
        first_s = self.tuning.resend_after_s
        pauses = Backoff(first_s, first_s * 2.0**_MOST_DOUBLINGS)
        return pauses.pause_s(self.ways[consumer].attempts + 1)

    def next_due(self) -> float:
        """Returns when the next trial ends."""
        if not self.ways:
            return inf
        ends = [way.trial_until for way in self.ways.values() if way.trial_until is not None]
        return min((each for each in ends if each > -inf), default=inf)
