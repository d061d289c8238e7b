"""Tuning: the times and bounds of a peer. The defaults suit a federation on the internet."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from qns.peer.backoff import Backoff


@dataclass(frozen=True, slots=True)
class Tuning:
    first_pause_s: float = 1.0
    """The pause after the first failed attempt to reach a peer. It doubles with each failure."""
    longest_pause_s: float = 60.0
    acknowledge_after_s: float = 1.0
    """How long a consumer collects before it acknowledges events that came through others."""
    pull_after_s: float = 3.0
    """How long a gap may stay open before the consumer pulls it from the producer."""
    resend_after_s: float = 15.0
    """How long an event may stay unacknowledged before the producer sends it directly."""
    gossip_every_s: float = 10.0
    document_warning_s: float = 14 * 86_400.0
    """How long before the federation document expires the operator is warned."""
    document_grace_s: float = 7 * 86_400.0
    """How long the peer works with a federation document that has expired; then it is closed."""
    compare_within_s: float = 600.0
    """How long after a start a consumer gets every event while it has not compared its view; after
    that its stored view counts."""
    lease_s: float = 60.0
    """How long a member of a delivery group has to acknowledge."""
    requests_per_s: int = 5_000
    """The quota of one member: its requests in a second; beyond it they are refused for now."""
    bytes_per_s: int = 50_000_000
    """The quota of one member: the bytes of its requests in a second."""
    cpu_share: float = 0.6
    """The quota of one member: the CPU time that its requests may take, in seconds a second."""
    notifications_per_call: int = 100
    bytes_per_call: int = 524_288
    """Bytes of events in one call to a peer or one answer to a user; one event may be larger."""
    most_early: int = 1_000
    """The limit of early entries that are held back for one producer."""
    most_view_elements: int = 100_000
    """The limit of elements in the view of one consumer."""
    most_view_terms: int = 1_000_000
    """The limit of terms of all elements in the view of one consumer together."""
    most_custody: int = 100_000
    most_dead_letters: int = 1_000
    """The limit of dead letters with events of one source for one receiver."""
    most_events: int = 1_000_000
    """The limit of events in memory; those that are only on the disk, because they are owed to
    consumers or users have not read them, do not count."""
    most_subscriptions: int = 1_000_000
    longest_queue: float = inf
    """The operator's limit: unread deliveries and queued events of one subscription; beyond it the
    oldest is dropped, and declared to the reader."""
    most_owed: float = inf
    """The operator's retention limit: events owed to one consumer; beyond it, a declared skip."""
    most_owed_bytes: float = inf
    """As most_owed, in bytes of events."""
    owed_in_memory: int = 2_000
    """Rows of events owed to one consumer that are kept in memory; the others are on the disk."""
    unread_in_memory: int = 2_000
    """Rows of unread deliveries of one subscription that are kept in memory, and as many rows of
    events that wait for it; the others are on the disk."""
    events_in_memory: int = 10_000
    """Events kept in memory that are not available any more; the others are on the disk."""
    ended_remembered: int = 100_000
    """The number of ids of ended subscriptions that cannot be chosen again."""
    publications_remembered: int = 100_000
    """The number of ids by which repeated publications are recognised."""
    events_remembered: int = 10_000
    """Past events of one other producer by which a consumer recognises what the producer publishes
    again because it went back in time."""

    @property
    def link_backoff(self) -> Backoff:
        """The pauses between attempts to reach another peer."""
        return Backoff(self.first_pause_s, self.longest_pause_s)
