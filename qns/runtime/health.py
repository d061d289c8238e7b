"""Health: whether the peer does its work, and if not fully, why, in words."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any, Final

from qns import __version__
from qns.edl.messages import ReachabilityRow
from qns.peer import Peer
from qns.runtime.driver import Driver
from qns.store.sqlite import LOW_WATER_BYTES

OK: Final = "ok"
DEGRADED: Final = "degraded"
FAILING: Final = "failing"

_REMEMBERED_S: Final = 300.0
"""How long a failed commit is told after the peer has recovered."""
_NEARLY_FULL: Final = 4
"""Times the low-water mark."""


@dataclass(slots=True, eq=False)
class Health:
    driver: Driver
    store: Path
    started: float

    def state(self) -> dict[str, Any]:
        peer = self.driver.peer
        failing = self._failing()
        degraded = [*self._degraded(), *_of_federation(peer), *_of_queues(peer)]
        return {
            "status": FAILING if failing else DEGRADED if degraded else OK,
            "reasons": [*failing, *degraded],
            "organisation": peer.me,
            "version": __version__,
            "epoch": peer.identity.epoch,
            "federation": peer.federation.name,
            "document": peer.federation.version,
            "subscriptions": len(peer.iil.table),
            "commit_failures": self.driver.commit_failures,
            "uptime_s": round(time() - self.started, 3),
            "time": time(),
        }

    def _failing(self) -> list[str]:
        reasons = []
        driver = self.driver
        if driver.is_stopping:
            reasons.append("the peer is stopping")
        if driver.trouble is not None:
            for_s = driver.now() - driver.trouble.since
            reasons.append(f"nothing can be stored since {for_s:.0f} s: {driver.trouble.reason}")
        free = free_bytes(self.store)
        if free is not None and free < LOW_WATER_BYTES:
            reasons.append(f"only {free:,} bytes are free on the disk: free some space")
        return reasons

    def _degraded(self) -> list[str]:
        reasons = []
        driver = self.driver
        free, enough = free_bytes(self.store), _NEARLY_FULL * LOW_WATER_BYTES
        if free is not None and LOW_WATER_BYTES <= free < enough:
            reasons.append(
                f"{free:,} bytes are free on the disk; below {LOW_WATER_BYTES:,} nothing is stored"
            )
        last = driver.last_failure
        if driver.trouble is None and last and driver.now() - last.since < _REMEMBERED_S:
            ago = driver.now() - last.since
            reasons.append(f"a turn could not be stored {ago:.0f} s ago: {last.reason}")
        if driver.waiting >= driver.most_waiting:
            reasons.append(f"{driver.waiting:,} requests are waiting: more are refused")
        if driver.refused_document:
            reasons.append(f"the configured document is not in force: {driver.refused_document}")
        if driver.gateway.restored:
            reasons.append(
                "the store was put back from an older copy: events may have been declared lost"
            )
        return reasons


def free_bytes(store: Path) -> int | None:
    try:
        disk = os.statvfs(store.parent)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def unreachable(peer: Peer) -> tuple[str, ...]:
    """The other peers that did not answer when they were last called."""
    rows: list[ReachabilityRow] = peer.edl.membership.rows()
    return next((row.unreachable for row in rows if row.organisation == peer.me), ())


def _of_federation(peer: Peer) -> list[str]:
    reasons = []
    version = peer.federation.version
    if not peer.is_member:
        reasons.append(f"{peer.me} is not a member of the federation {peer.federation.name}")
    silent = unreachable(peer)
    if silent:
        reasons.append(f"no answer from {', '.join(silent)}: what is owed there is kept")
    newer = max((link.claimed_document for link in peer.edl.forwarder.links.values()), default=0)
    if newer > version:
        reasons.append(
            f"version {version} of the federation document is in force here, others have {newer}"
        )
    unknown = [name for name, each in peer.federation.organisations.items() if not each.endpoint]
    others = [name for name in unknown if name != peer.me]
    if others:
        reasons.append(f"the federation document has no endpoint for {', '.join(others)}")
    return reasons


def _of_queues(peer: Peer) -> list[str]:
    letters = len(peer.edl.forwarder.custody.dead_letters)
    if letters:
        return [f"{letters} notifications were refused by their receivers: see the dead letters"]
    return []
