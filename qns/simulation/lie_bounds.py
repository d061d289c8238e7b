"""Lie bounds: what a member that lies can make the others do, keep and begin is bounded."""

from __future__ import annotations

from collections import Counter
from typing import Final

from qns.edl.validation import MOST_FENCES
from qns.peer.tables import FENCES, INBOUND_FENCES
from qns.simulation.findings import Findings
from qns.simulation.world import World

TURN_LENGTH = "Turn length"
MEMBER_BOUNDS = "Bounds of a member"
CLAIMS = "Bounds of claims"
RULES: Final = (TURN_LENGTH, MEMBER_BOUNDS, CLAIMS)
MOST_LINES: Final = 1_500_000
"""The limit of executed lines of one turn, about half a second. Putting a view of 2,200 elements in
force and replacing it in the same turn executes 1,260,000."""
_MOST_STREAMS: Final = 2
"""The streams from one member: one for each membership that a document has named."""
_MOST_CLAIMS: Final = 10
"""The claims of one member that are believed in the time in which it lies: three at once, and one
after each pause that doubles from a second on."""


def judge_lie_bounds(world: World, findings: Findings) -> None:
    """Judges the turns that handled a lie, and what the honest members have at the end."""
    for at, name, lines in world.lied_to:
        findings.judge(
            TURN_LENGTH,
            lines <= MOST_LINES,
            f"a turn of {name} at {at:.3f} s executed {lines:,} lines for a member that lies.",
        )
    if not world.liars:
        return
    claimed = Counter(
        record["org"] for record in world.history if record["do"] == "start" and record["restored"]
    )
    for name, node in world.nodes.items():
        if name in world.liars or node.gateway is None:
            continue
        _judge_state(world, name, findings)
        if name in world.twins:  # the members know of epochs that this process has not begun
            continue
        starts, put_back = world.ledger.starts[name], world.ledger.restores[name]
        most = len(world.liars) * _MOST_CLAIMS * len(starts) + len(put_back) * len(world.nodes)
        findings.judge(
            CLAIMS,
            claimed[name] <= most,
            f"{name} has begun {claimed[name]} epochs as restored, though it was started "
            f"{len(starts)} times and put back {len(put_back)} times.",
        )


def _judge_state(world: World, name: str, findings: Findings) -> None:
    gateway = world.nodes[name].gateway
    assert gateway is not None
    status, tuning = gateway.status, world.tuning
    early, streams = Counter[str](), Counter[str]()
    for each in status.inbound():
        early[each.producer] += each.early
        streams[each.producer] += 1
    fences = Counter(row.producer for row in gateway.store.rows(INBOUND_FENCES))
    letters = Counter((each.source, each.receiver) for each in status.find_dead_letters())
    own = Counter(row.consumer for row in gateway.store.rows(FENCES))
    for liar in world.liars:
        sizes = (
            ("streams", streams[liar], _MOST_STREAMS),
            ("early entries", early[liar], tuning.most_early * _MOST_STREAMS),
            ("fences", fences[liar], MOST_FENCES * _MOST_STREAMS),
            ("elements", len(status.external_view(liar)), tuning.most_view_elements),
            ("fences for it", own[liar], MOST_FENCES),
            *(
                ("dead letters", number, tuning.most_dead_letters)
                for (source, _), number in letters.items()
                if source == liar
            ),
        )
        for what, number, most in sizes:
            findings.judge(
                MEMBER_BOUNDS,
                number <= most,
                f"{name} keeps {number:,} {what} of {liar}, which lies; the bound is {most:,}.",
            )
