"""Measures SOAP on loopback: QNS's server against spyne as it comes, and against the limit.

Many producers at once send `notify` with 1, 10 and 100 notifications in an envelope. QNS takes each
notification with a durable commit (SQLite, synchronous=FULL), matches it and queues it for a user.
spyne only decodes it; the limit only parses it. A second part measures the time from `publish` to
delivery between three peers.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from statistics import median
from typing import Any, Literal

from benchmarks.report import figure, micro, table, times
from benchmarks.soap_federation import PRODUCERS, Federated, served
from benchmarks.soap_latency import latency
from benchmarks.soap_load import Connection, Spent, run_load
from benchmarks.timing import OnProgress

SERVERS = ("spyne", "qns", "qns over TLS", "bare", "lean")
_QNS = ("qns", "qns over TLS")
PER_CALL = (1, 10, 100)
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
    async with Federated() as plain, Federated(has_tls=True) as secure:
        federations = dict(zip(_QNS, (plain, secure), strict=True))
        servers = {name: (each.pid, each.peer_port) for name, each in federations.items()}
        with served("bare") as bare, served("lean") as lean, served("spyne") as spyne:
            servers |= {"bare": bare, "lean": lean, "spyne": spyne}
            for nth in range(repeats):
                for per_call in PER_CALL:
                    on_progress(f"soap: {per_call} per envelope, round {nth + 1} of {repeats}")
                    for name in SERVERS:
                        enough = number // 8 if name == "spyne" else number
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
    on_progress("soap: three peers, 500 events a second")
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
        "latency": await latency(events=1_000 if quick else 10_000, per_second=500),
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
    found = results["latency"]
    secure = ""
    if "qns over TLS" in notify:
        ratios = {
            per_call: took["seconds"] / notify["qns over TLS"][per_call]["seconds"]
            for per_call, took in notify["qns"].items()
        }
        shown = ", ".join(f"{times(ratio)} at {each}" for each, ratio in ratios.items())
        secure = f" Over mutual TLS, `qns` takes {shown} per envelope, as a part of plain loopback."
    return "\n\n".join(
        (
            "# SOAP on loopback",
            f"`notify` from {results['producers']} producers at once, each on one kept-alive "
            "connection; medians of rounds in which the servers alternate. `qns` commits durably "
            "before it answers, and delivers each event to one user, who reads between the rounds; "
            "`spyne` decodes and answers; `bare`, the limit, parses and answers, on aiohttp's "
            "server and uvloop; `lean` does so on the HTTP layer of QNS; `spyne` is on waitress."
            f"{secure}",
            table(
                ["server", "per envelope", "notifications/s", "CPU", "of the limit", "of spyne"],
                rows,
            ),
            f"Three peers, {found['per_second']} events/s published at one, each wanted by a user "
            f"at each of the others: from the call of `publish` to the answer of `pull`, "
            f"{found['deliveries']:,} deliveries: median {micro(found['p50'])}, "
            f"p90 {micro(found['p90'])}, **p99 {micro(found['p99'])}**, longest "
            f"{micro(found['longest'])}; {figure(found['achieved'])} events/s were reached.",
        )
    )
