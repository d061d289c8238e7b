"""Twin rules: of two processes of one organisation, the copy gives way, and both say so."""

from __future__ import annotations

from typing import Final

from qns.iil.requests import Publish, Subscribe
from qns.peer.tables import EVENTS, SUBSCRIPTIONS
from qns.simulation.findings import Findings
from qns.simulation.twin import Twin
from qns.simulation.world import World

TWIN = "Twin"
RULES: Final = (TWIN,)


def judge_twins(world: World, findings: Findings) -> None:
    """Judges every twin of a world that came to rest."""
    for name, twin in world.twins.items():
        original = world.nodes[name].gateway
        if original is None or twin.node.gateway is None:
            continue
        findings.judge(
            TWIN,
            not original.status.is_fenced,
            f"{name} has given way to its twin, although members call {name}.",
        )
        is_told = original.status.has_twin
        if world.ledger.starts[name][-1] <= twin.since:
            findings.judge(TWIN, is_told, f"{name} does not say that it has a twin.")
        _judge_twin(world, name, twin, findings)


def _judge_twin(world: World, name: str, twin: Twin, findings: Findings) -> None:
    gateway = twin.node.gateway
    assert gateway is not None
    is_told = gateway.status.has_twin
    findings.judge(
        TWIN, gateway.status.is_fenced and is_told, f"the twin of {name} has not given way."
    )
    fenced_at = twin.fenced_at
    findings.judge(
        TWIN,
        not twin.sent_after_fence,
        f"the twin of {name} gave way at {fenced_at:.3f} s and has sent {twin.sent_after_fence} "
        "messages since.",
    )
    events = {row.id for row in gateway.store.rows(EVENTS)}
    subscriptions = {row.id for row in gateway.store.rows(SUBSCRIPTIONS)}
    for at, request in twin.acknowledged:
        what = request.event.id if isinstance(request, Publish) else request.id
        kept = events if isinstance(request, Publish) else subscriptions
        kind = "event" if isinstance(request, Publish) else "subscription"
        if _is_kept_for_ever(world, name, request):
            findings.judge(
                TWIN,
                what in kept,
                f"the twin of {name} acknowledged {kind} {what} at {at:.3f} s, which is not in its "
                "store any more.",
            )
        findings.judge(
            TWIN,
            at <= fenced_at,
            f"the twin of {name} gave way at {fenced_at:.3f} s and acknowledged {kind} {what} at "
            f"{at:.3f} s.",
        )


def _is_kept_for_ever(world: World, name: str, request: Publish | Subscribe) -> bool:
    """False for an event that was not available any more when its class was hosted elsewhere."""
    if isinstance(request, Subscribe):
        return True
    return world.ledger.always_hosts(name, request.event.data_class)
