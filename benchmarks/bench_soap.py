"""Measures SOAP on loopback: QNS's server against spyne as it comes, and against the limit.

Many producers at once send `notify` with 1, 10 and 100 notifications in an envelope. QNS takes each
notification with a durable commit (SQLite, synchronous=FULL), matches it and queues it for a user.
spyne only decodes it; the limit only parses it. A second part measures the time from `publish` to
delivery between three peers.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack
from functools import partial
from statistics import median
from typing import Any, Literal

from benchmarks.report import figure, micro, table, times
from benchmarks.soap_federation import PRODUCERS, Federated, served
from benchmarks.soap_latency import latency
from benchmarks.soap_load import Connection, Spent, run_load
from benchmarks.soap_members import Security
from benchmarks.timing import OnProgress

_QNS = {
    "qns": Security.PLAIN,
    "qns over TLS": Security.TLS,
    "qns over TLS, sealed": Security.SEALED,
    "qns, each call signed": Security.SIGNED,
}
_SLOW = ("spyne", "qns, each call signed")
"""These get an eighth of the calls."""
SERVERS = ("spyne", *_QNS, "bare", "lean")
PER_CALL = (1, 10, 100)
_PER_SECOND = 500
_LATENCIES = (Security.PLAIN, Security.SEALED)
_LEAST_CALLS = 4
"""The least number of calls of each producer in a round: a single burst does not show how a server
performs that handles calls in groups."""


def run(quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    return asyncio.run(_run(quick, on_progress))


async def _run(quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    repeats, number = (2, 800) if quick else (5, 16_000)
    spent: dict[str, dict[int, list[Spent]]] = {
        name: {each: [] for each in PER_CALL} for name in SERVERS
    }
    async with AsyncExitStack() as stack:
        federations = {
            name: await stack.enter_async_context(Federated(security))
            for name, security in _QNS.items()
        }
        plain = federations["qns"]
        servers = {name: (each.pid, each.peer_port) for name, each in federations.items()}
        with served("bare") as bare, served("lean") as lean, served("spyne") as spyne:
            servers |= {"bare": bare, "lean": lean, "spyne": spyne}
            for nth in range(repeats):
                for per_call in PER_CALL:
                    on_progress(f"soap: {per_call} per envelope, round {nth + 1} of {repeats}")
                    for name in SERVERS:
                        enough = number // 8 if name in _SLOW else number
                        enough = max(enough, _LEAST_CALLS * per_call * PRODUCERS)
                        federation = federations.get(name, plain)
                        is_qns = name in _QNS
                        calls = federation.calls(enough, per_call, fresh=is_qns)
                        took = await play(
                            *servers[name], calls, check=is_qns, tls=is_qns and federation.tls
                        )
                        if is_qns:
                            await federation.read()
                        actual = per_call * sum(map(len, calls.values()))
                        spent[name][per_call].append(
                            Spent(took.seconds / actual, took.cpu_seconds / actual)
                        )
        delivered = await plain.delivered()
    seconds = {
        name: {
            each: {
                "seconds": median(one.seconds for one in rounds),
                "cpu_seconds": median(one.cpu_seconds for one in rounds),
            }
            for each, rounds in by.items()
        }
        for name, by in spent.items()
    }
    return {
        "notify": seconds,
        "producers": PRODUCERS,
        "delivered": delivered,
        "latency": await _latencies(quick, on_progress),
    }


async def _latencies(quick: bool, on_progress: OnProgress) -> dict[str, dict[str, Any]]:
    """Returns the latency of three peers with each kind of security, the median of repetitions.

    The kinds alternate, and of each the repetition with the median p99 counts.
    """
    found: dict[str, list[dict[str, Any]]] = {each: [] for each in _LATENCIES}
    for nth in range(1 if quick else 3):
        for security in _LATENCIES:
            on_progress(f"soap: three peers, {_PER_SECOND} events a second, {security}, {nth + 1}")
            events = 1_000 if quick else 10_000
            found[security].append(await latency(events, _PER_SECOND, security))
    return {
        security: sorted(each, key=lambda one: float(one["p99"]))[len(each) // 2]
        for security, each in found.items()
    }


async def play(
    pid: int,
    port: int,
    calls: dict[str, list[bytes]],
    *,
    check: bool,
    tls: dict[str, ssl.SSLContext] | Literal[False] = False,
) -> Spent:
    """Sends the calls of each producer on a connection of its own, with its certificate if any."""
    contexts = tls or {}
    connections = {name: Connection(port, "/peer", contexts.get(name)) for name in calls}

    async def send(name: str) -> None:
        for body in calls[name]:
            answer = await connections[name].call(body, '"notify"')
            if check and b"taken>false<" in answer:
                raise RuntimeError(answer.decode())

    took = await run_load(pid, [partial(send, name) for name in calls])
    for connection in connections.values():
        await connection.close()
    return took


def text(results: dict[str, Any]) -> str:
    notify = results["notify"]
    rows = []
    for name, by in notify.items():
        for per_call, took in by.items():
            limit = notify["bare"][per_call]["seconds"]
            spyne = notify["spyne"][per_call]["seconds"]
            rows.append(
                [
                    name,
                    str(per_call),
                    figure(1 / took["seconds"]),
                    micro(took["cpu_seconds"]),
                    times(limit / took["seconds"]),
                    times(spyne / took["seconds"]),
                ]
            )
    secure = "".join(
        f" As a part of plain loopback, `{name}` reaches {_ratios(notify, name)} per envelope."
        for name in notify
        if name in _QNS and name != "qns"
    )
    return "\n\n".join(
        (
            "# SOAP on loopback",
            f"`notify` from {results['producers']} producers at once, each on one kept-alive "
            "connection; medians of rounds in which the servers alternate. `qns` commits durably "
            "before it answers, and delivers each event to one user, who reads between the rounds; "
            "sealed calls have one signature each, and those `each call signed` one of WS-Security "
            "(ECDSA) besides; "
            "`spyne` decodes and answers; `bare`, the limit, parses and answers, on aiohttp's "
            "server and uvloop; `lean` does so on the HTTP layer of QNS; `spyne` is on waitress."
            f"{secure}",
            table(
                ["server", "per envelope", "notifications/s", "CPU", "of the limit", "of spyne"],
                rows,
            ),
            _latency_text(results["latency"]),
        )
    )


def _ratios(notify: dict[str, Any], name: str) -> str:
    return ", ".join(
        f"{times(took['seconds'] / notify[name][per_call]['seconds'])} at {per_call}"
        for per_call, took in notify["qns"].items()
    )


def _latency_text(by_security: dict[str, dict[str, Any]]) -> str:
    plain = by_security[Security.PLAIN]
    rows = [
        [
            security,
            *(micro(found[each]) for each in ("p50", "p90", "p99", "longest")),
            times(found["p99"] / plain["p99"]),
            figure(found["achieved"]),
        ]
        for security, found in by_security.items()
    ]
    return (
        f"Three peers, {plain['per_second']} events/s published at one, each wanted by a user at "
        "each of the others: from the call of `publish` to the answer of `pull`, "
        f"{plain['deliveries']:,} deliveries for each row.\n\n"
        + table(["peers", "median", "p90", "p99", "longest", "p99 of plain", "events/s"], rows)
    )
