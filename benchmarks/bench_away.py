"""Measures a producer while one of its consumers is away, with a real disk and SOAP on loopback.

Events are published for two consumers, of which one is away while its backlog grows, and then comes
back. The baseline is a second producer, both of whose consumers are there. The times of the two are
measured in turns, so that both are affected alike by other work of the machine.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any

from benchmarks.away_federation import AwayFederation
from benchmarks.report import figure, micro, table, times
from benchmarks.soap_load import Connection
from benchmarks.timing import OnProgress

EVENTS = 100_000
_CONNECTIONS = 64
_PER_SECOND = 200
_SAMPLES = 10
_PATIENCE_S = 600.0


def run(quick: bool, on_progress: OnProgress, events: int | None = None) -> dict[str, Any]:
    return asyncio.run(_run(events or (2_000 if quick else EVENTS), quick, on_progress))


async def _run(events: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    rounds, per_round = (2, 100) if quick else (20, 500)
    async with AwayFederation() as federation, AwayFederation() as control:
        for each in (control, federation):
            await each.publish(10 * per_round, _CONNECTIONS)
            await _until(each.is_caught_up, "both consumers have everything")
        await federation.away.leave()
        before, memory, seconds = federation.memory_bytes(), [], 0.0
        for nth in range(_SAMPLES):
            on_progress(f"away: {nth * events // _SAMPLES:,} events are owed to the absent one")
            seconds += await federation.publish(events // _SAMPLES, _CONNECTIONS)
            memory.append(federation.memory_bytes())
        for each in (control, federation):  # the bulk was faster than its consumer
            await _until(each.is_near_caught_up, "the near consumer has everything")
        times_both, times_one = Times(), Times()
        for nth in range(rounds):
            on_progress(f"away: round {nth + 1} of {rounds} with and without an absent consumer")
            await _measure(control, per_round, times_both)
            await _measure(federation, per_round, times_one)
        disk, owed = federation.disk_bytes(), events + rounds * per_round
        on_progress("away: it comes back")
        drain_s = await _drain(federation, owed)
        on_progress("away: the store shrinks")
        await _rest(federation, 0.2 if quick else 2.0)
        return {
            "events": events,
            "publish_seconds": seconds,
            "memory_before": before,
            "memory": memory,
            "memory_after": federation.memory_bytes(),
            "latency_both": times_both.summary(),
            "latency_one": times_one.summary(),
            "disk": disk,
            "disk_after": federation.disk_bytes(),
            "owed": owed,
            "drain_seconds": drain_s,
        }


@dataclass
class Times:
    """The seconds from each publication until its answer, and until the other consumer has it."""

    answered: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        return {
            "median": quantiles(self.arrived, n=100)[49],
            "p99": quantiles(self.arrived, n=100)[98],
            "answer_p99": quantiles(self.answered, n=100)[98],
        }


async def _measure(federation: AwayFederation, number: int, times: Times) -> None:
    """Publishes at a steady rate and adds the times."""
    began: dict[str, float] = {}
    before = len(times.arrived)

    def arrived(id: str) -> None:
        if id in began:
            times.arrived.append(time.perf_counter() - began[id])

    federation.near.on_event = arrived
    start, lanes = time.perf_counter() + 0.2, 8

    async def publish(lane: int) -> None:
        connection = Connection(federation.port, "/local")
        for nth in range(lane, number, lanes):
            id, *call = federation.body()
            await asyncio.sleep(max(0.0, start + nth / _PER_SECOND - time.perf_counter()))
            began[id] = time.perf_counter()
            await connection.call(*call)
            times.answered.append(time.perf_counter() - began[id])
        await connection.close()

    await asyncio.gather(*(publish(lane) for lane in range(lanes)))
    await _until(lambda: len(times.arrived) == before + number, "the near consumer has everything")


async def _drain(federation: AwayFederation, owed: int) -> float:
    """Lets the absent consumer come back; returns the seconds from its first event to its last."""
    away = federation.away
    first = away.last
    await away.arrive()
    await _until(lambda: away.last > first, "the consumer is called")
    began, left = time.perf_counter(), first + owed - away.last
    await _until(lambda: away.last >= first + owed, "the backlog is delivered", 60 * _PATIENCE_S)
    return (time.perf_counter() - began) * owed / max(1, left)


async def _rest(federation: AwayFederation, pause_s: float) -> None:
    """Waits until the peer has emptied the log, which it does after giving back all free space."""
    for _ in range(600):
        await asyncio.sleep(pause_s)
        if not federation.log_bytes():
            return


async def _until(is_done: Any, what: str, patience_s: float = _PATIENCE_S) -> None:
    deadline = time.perf_counter() + patience_s
    while not is_done():
        if time.perf_counter() > deadline:
            raise TimeoutError(what)
        await asyncio.sleep(0.01)


def text(results: dict[str, Any]) -> str:
    events, owed = results["events"], results["owed"]
    both, one = results["latency_both"], results["latency_one"]
    most = max(results["memory"])
    rows = [
        ["publish → the other consumer, median", *_pair(both, one, "median")],
        ["publish → the other consumer, p99", *_pair(both, one, "p99")],
        ["publish → answer, p99", *_pair(both, one, "answer_p99")],
    ]
    return "\n\n".join(
        (
            "# A consumer that is away",
            f"One producer on a real disk, two consumers over SOAP; {events:,} events are "
            f"published while one consumer is away, {figure(events / results['publish_seconds'])} "
            f"per second by {_CONNECTIONS} factories. The times are measured at "
            f"{_PER_SECOND} events per second, at the end of the absence and, in turns, with a "
            "producer whose consumers are both there.",
            table(["", "both there", "one away", "ratio"], rows),
            f"Memory of the producer: {_mb(results['memory_before'])} before, at most "
            f"{_mb(most)} with {events:,} events owed "
            f"({', '.join(_mb(each) for each in results['memory'])} after each tenth), "
            f"{_mb(results['memory_after'])} after the backlog is delivered.",
            f"Disk: {_mb(results['disk'])} with {owed:,} events owed "
            f"({results['disk'] / owed:,.0f} bytes each), {_mb(results['disk_after'])} after the "
            "backlog is delivered.",
            f"When the consumer comes back it gets {figure(owed / results['drain_seconds'])} "
            f"events per second ({figure(results['drain_seconds'])} s).",
        )
    )


def _pair(both: dict[str, float], one: dict[str, float], what: str) -> list[str]:
    return [micro(both[what]), micro(one[what]), times(one[what] / both[what])]


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
