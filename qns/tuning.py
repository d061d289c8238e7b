"""Tuning: the times and bounds of a peer. The defaults suit a federation on the internet."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Tuning:
    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0
    """Between two attempts to reach a peer: doubles from the first to the longest."""
    acknowledge_after_s: float = 1.0
    """How long a consumer gathers before it acknowledges what came through others."""
    pull_after_s: float = 3.0
    """How long a gap may stay open before the producer is asked."""
    resend_after_s: float = 15.0
    """How long an event may stay unacknowledged before the producer sends it directly."""
    gossip_every_s: float = 10.0
    lease_s: float = 60.0
    """How long a member of a delivery group has to acknowledge."""
    notifications_per_call: int = 100
    bytes_per_call: int = 524_288
    """Of events, to another peer or to a user; one event may be larger."""
    most_early: int = 1_000
    """Entries held back for one producer."""
    most_custody: int = 100_000
    most_events: int = 1_000_000
    most_subscriptions: int = 1_000_000
    longest_queue: int = 100_000
    """Deliveries that a user has not read; beyond, the oldest is dropped and counted."""
    most_owed: float = inf
    """The operator's retention limit: events owed to one consumer; beyond, a declared skip."""
    publications_remembered: int = 100_000
    """Ids by which a repeated publication is recognised."""
