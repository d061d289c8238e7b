"""Measures the time from `publish` at one peer to delivery at two others, over SOAP."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.soap_federation import free_port, process, wind_event
from benchmarks.soap_load import Connection
from benchmarks.soap_members import Members, Security
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Deliveries,
    ListSubscriptions,
    Publish,
    PullDeliveries,
    Request,
    Subscribe,
    Subscriptions,
)
from qns.soap.local_client import read_local, write_local

PUBLISHER, READERS = "Met01", ("Met02", "Met03")
CONNECTIONS = 8


async def latency(
    events: int, per_second: int, security: Security = Security.PLAIN
) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="qns-bench-")))
        ports = {name: free_port() for name in (PUBLISHER, *READERS)}
        members = Members.make(folder, security, ports)
        federation = members.federation(
            members.organisation(name, port) for name, port in ports.items()
        )
        local = {}
        for name, port in ports.items():
            path = members.configuration(name, federation, port, local=0)
            _, local[name] = stack.enter_context(process("-m", "qns.cli", "peer", "run", str(path)))
        for name in READERS:
            await _subscribe(local[name])
        return await _measured(local, events, per_second)


async def _ask(connection: Connection, request: Request, wait_s: float = 0.0) -> Any:
    return read_local(request, 200, await connection.call(*write_local(request, wait_s=wait_s)))


async def _subscribe(port: int) -> None:
    connection = Connection(port, "/local")
    await _ask(connection, Subscribe("bench", "Report", id="all"))
    while True:
        answer = await _ask(connection, ListSubscriptions("bench"))
        assert isinstance(answer, Subscriptions)
        if not answer.subscriptions[0].pending:
            break
        await asyncio.sleep(0.05)
    await connection.close()


async def _measured(ports: dict[str, int], events: int, per_second: int) -> dict[str, Any]:
    began: dict[str, float] = {}
    took: list[float] = []
    bodies = _bodies(events)
    start = time.perf_counter() + 0.2

    async def publish(lane: int) -> None:
        connection = Connection(ports[PUBLISHER], "/local")
        for nth in range(lane, events, CONNECTIONS):
            await asyncio.sleep(max(0.0, start + nth / per_second - time.perf_counter()))
            began[f"e{nth}"] = start + nth / per_second  # when it was due, so delays count
            await connection.call(*bodies[nth])
        await connection.close()

    async def read(name: str) -> None:
        connection = Connection(ports[name], "/local")
        seen = 0
        while seen < events:
            answer = await _ask(connection, PullDeliveries("bench", "all", after=seen), wait_s=10.0)
            now = time.perf_counter()
            assert isinstance(answer, Deliveries)
            took.extend(now - began[each.event] for each in answer.deliveries)
            seen += len(answer.deliveries)
            if answer.deliveries:
                await _ask(connection, AcknowledgeDeliveries("bench", "all", seen))
        await connection.close()

    await asyncio.gather(*map(publish, range(CONNECTIONS)), *map(read, READERS))
    achieved = events / (time.perf_counter() - start)
    took.sort()
    return {
        "per_second": per_second,
        "deliveries": len(took),
        "achieved": achieved,
        "p50": took[len(took) // 2],
        "p90": took[len(took) * 9 // 10],
        "p99": took[len(took) * 99 // 100],
        "longest": took[-1],
    }


def _bodies(events: int) -> list[tuple[bytes, str]]:
    reader = EventReader(WEATHER)
    published = [reader.from_fields(wind_event(f"e{nth}", PUBLISHER)) for nth in range(events)]
    return [write_local(Publish(event), schema=WEATHER) for event in published]
