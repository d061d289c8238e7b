"""Delivery groups in tests: subscribes members and reads what each of them has."""

from __future__ import annotations

from tests.iil.single_peer import SinglePeer

LEASE_S = 15.0


def subscribe_members(
    peer: SinglePeer, *members: str, group: str = "desk", text: str = "Report"
) -> None:
    """Subscribes each member to the group."""
    for member in members:
        peer.subscribe(member, text, group=group)


def deliveries_of(peer: SinglePeer, *members: str) -> dict[str, list[str]]:
    """Returns the unacknowledged events of each member."""
    return {member: peer.events(member) for member in members}
