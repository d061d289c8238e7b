"""The largest messages that a peer sends in a large federation are read by the receiver.

A message that exceeds the bounds of the port Peer would be sent and refused again and again.
"""

from __future__ import annotations

from qns.d2q.shipped import WEATHER
from qns.edl.messages import Entry, Envelope, Fence, Gossip, Notification, Notify, ReachabilityRow
from qns.edl.reachability import Reachability
from qns.edl.tree_builder import Tree, TreeBuilder
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import MAX_ORGANISATIONS
from qns.peer.inputs import Received
from qns.soap.endpoint import Endpoint
from qns.soap.peer_client import write_call
from qns.soap.shapes import Port

HEADERS = {"Content-Type": "text/xml; charset=utf-8"}
PRODUCER = "P"
NAMES = tuple(f"Organisation-{number:05}" for number in range(MAX_ORGANISATIONS - 1))


def arrives(envelope: Envelope) -> Envelope:
    """Returns the envelope as the receiver reads it."""
    call = Endpoint(WEATHER).decode(Port.PEER, HEADERS, write_call(envelope)[0])
    assert isinstance(call.input, Received)
    return call.input.envelope


def entry_of(name: str, children: Tree, fences: tuple[Fence, ...]) -> Entry:
    below = tuple(entry_of(child, further, fences) for child, further in children)
    return Entry(name, 1, 7, 2**40, 7, fences, below)


def test_notification_for_the_largest_federation_is_read() -> None:
    """The producer can serve one peer only, and has been restored four times."""
    members = {name: Organisation(name, frozenset(), capability=4) for name in NAMES}
    members[PRODUCER] = Organisation(PRODUCER, frozenset(), capability=1)
    federation = Federation("weather", WEATHER, members)
    builder = TreeBuilder(PRODUCER, Reachability(PRODUCER, 1))
    builder.apply_document(federation, federation)
    fences = tuple(Fence(epoch, 2**40) for epoch in range(3, 7))
    received: set[str] = set()
    for name, children in builder.tree(NAMES):
        entry = entry_of(name, children, fences)
        item = Notification(PRODUCER, 1, 7, 9, "e1", b"x" * 524_288, 60.0, entry, (PRODUCER,))
        envelope = Envelope(PRODUCER, 1, (), Notify((item,)))
        assert arrives(envelope) == envelope
        received.update(entry.receivers())
    assert received == set(NAMES)


def test_reports_of_a_partition_of_a_large_federation_are_read() -> None:
    """500 organisations of 1,000 report that they cannot reach the other 500."""
    here, there = NAMES[:500], NAMES[500:1_000]
    reachability = Reachability(here[0], 1)
    for name in there:
        reachability.observe(name, reachable=False)
    rows = [ReachabilityRow(name, 1, 500, there) for name in here[1:]]
    reachability.update("X", rows, {*here, *there})
    other = Reachability(there[0], 1)
    for _ in range(len(rows) + 1):
        news = reachability.news_for(there[0])
        envelope = Envelope(here[0], 1, news, Gossip())
        assert arrives(envelope) == envelope
        other.update("Me", news, {*here, *there})
    assert reachability.news_for(there[0]) == ()
    assert other.rows()[:-1] == reachability.rows()
