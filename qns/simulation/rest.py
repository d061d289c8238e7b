"""Rest: whether anything is still under way in a simulated world, and whether views are right."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from qns.cbr.exact_merge import ExactMerge
from qns.cbr.oracle import producer_view
from qns.edl.merge_subscriptions_table import ViewState
from qns.federation.schema_mapper import SchemaMapper
from qns.peer.status import PeerStatus
from qns.simulation.findings import Findings
from qns.simulation.world import World

REST = "Rest"
QUIET = "Quiet"
MERGE_TABLE = "Merge table"
RULES: Final = (REST, QUIET, MERGE_TABLE)
"""The rules that are judged while the world runs."""


def unrest(world: World) -> str | None:
    """Returns something that is still under way, in words; None if the world is at rest."""
    others = world.absent | world.liars
    for name, twin in world.twins.items():
        if not twin.has_given_way:
            return f"the twin of {name} has not given way"
    for node in world.nodes.values():
        if node.name in others:
            continue
        if node.gateway is None:
            return f"{node.name} is down"
        if node.queue or not node.queue.is_idle:
            return f"{node.name} has not handled all that came in"
        status = node.gateway.status
        if status.federation.version != world.federation.version and not world.absent:
            return f"{node.name} does not have the newest federation document"
        reason = _unrest_of(status, others, world.liars)
        if reason is not None:
            return reason
    return None


def _unrest_of(status: PeerStatus, absent: set[str], liars: Collection[str]) -> str | None:
    me = status.organisation
    for link in status.links():
        if link.other in absent:
            continue
        if link.is_resting:
            return f"{me} waits to try {link.other} again"
        if link.is_asking:
            return f"{me} waits for an answer of {link.other}"
        if link.has_messages:
            return f"{me} has a message for {link.other}"
        if link.has_timer:
            return f"{me} will ask or acknowledge {link.other}"
    for stream in status.outbound():
        if stream.consumer not in absent and stream.lag_events:
            return f"{me} owes {stream.consumer} events from {stream.acknowledged + 1} on"
    for view in status.views():
        if view.producer in absent:
            continue
        if view.state is not ViewState.IN_FORCE:
            return f"{me} has not sent {view.producer} its view"
        if view.has_pending:
            return f"{me} has subscriptions that are not stable at {view.producer}"
    for inbound in status.inbound():
        if inbound.early and inbound.producer not in absent:
            return f"{me} holds back early entries"
    for source, receiver in status.promises():
        # An event of a liar may never be taken: the numbers before it do not exist.
        if receiver not in absent and source not in liars:
            return f"{me} has events in custody for {receiver}"
    return None


def judge_tables(world: World, findings: Findings) -> list[str]:
    """Compares every External Merge Table with one that is computed anew (semantics §6).

    Returns the violations that it has added.
    """
    before = len(findings.violations)
    document = world.federation
    for consumer in document.organisations:
        gateway = world.nodes[consumer].gateway
        assert gateway is not None
        subscriptions = gateway.status.local_subscriptions()
        for producer in document.organisations:
            other = world.nodes[producer].gateway
            if producer == consumer or other is None or {producer, consumer} & world.liars:
                continue
            hosts = SchemaMapper(document).producers(except_for=consumer)[producer]
            expected = producer_view(subscriptions, producer, hosts)
            if world.exact_merging:
                expected = set(ExactMerge(expected).subscriptions)
            held = {
                each.projected(producer, hosts)
                for each in other.status.external_view(consumer).values()
            }
            findings.judge(
                MERGE_TABLE,
                held == expected,
                f"at rest, {producer} holds {len(held)} elements for {consumer}, but its users' "
                f"subscriptions merge to {len(expected)}.",
            )
    return findings.violations[before:]
