"""Soak: rounds of user activity under faults, each followed by calm; then judges the history."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from random import Random

import aiohttp

from qns.cli.commands.history import federation_of, history_of, open_stores
from qns.history.judge import judge
from qns.history.records import Record, new_record, write_record
from qns.history.verdict import Verdict
from qns.peer.tables import DEAD_LETTERS, DELIVERIES
from tests.soak.chaos import Chaos
from tests.soak.ledger import Ledger
from tests.soak.stage import Stage, Unwell
from tests.soak.users import Users
from tests.soak.workload import Workload

PEERS = 5
SUBSCRIBERS = 5
"""The number of subscribers at each organisation."""
_REST_WITHIN_S = 120.0
_SHORTEST_ROUND_S = 5.0
_LAG = re.compile(r'^qns_consumer_lag_events{consumer="(.*)"} (.*)$', re.MULTILINE)
_LOGGED_ERROR = re.compile(r'Traceback|"level": ?"(error|critical)"', re.IGNORECASE)
_MOST_LOGGED_ERRORS = 20

Say = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    seed: int
    folder: Path
    violations: list[str]
    counts: dict[str, int]
    verdict: Verdict | None = None


@dataclass(slots=True, eq=False)
class Soak:
    seed: int
    folder: Path
    seconds: float
    """The approximate duration; the last round is completed."""
    round_s: float = 40.0
    say: Say = lambda _: None
    moments: list[Record] = field(default_factory=list)
    """The records of calm and of lulls."""
    violations: list[str] = field(default_factory=list)

    async def run(self) -> Outcome:
        chance = Random(self.seed)
        stage = await Stage.build(self.folder, PEERS, chance)
        chaos = Chaos(stage, chance)
        connector = aiohttp.TCPConnector(limit=0)
        try:
            async with aiohttp.ClientSession(connector=connector) as session:
                users = Users(stage, session, chance, Workload(chance, stage))
                try:
                    await self._play(stage, users, chaos)
                except Unwell as problem:
                    self.violations.append(str(problem))
        finally:
            await stage.end()
        return self._judged(stage, users, chaos)

    # --- rounds -----------------------------------------------------------------------------------

    async def _play(self, stage: Stage, users: Users, chaos: Chaos) -> None:
        """Plays rounds of chaos, a lull and calm, until the time is up."""
        ends_at = time.monotonic() + self.seconds
        await stage.start()
        while True:
            await self._round(users, chaos, min(self.round_s, ends_at - time.monotonic()))
            if time.monotonic() + _SHORTEST_ROUND_S > ends_at:
                break
            await self._lull(stage, users)
            await stage.start()
            await self._rest(stage)
            self.moments.append(new_record("calm", time.time()))
            await stage.start()
        await users.resume_all()
        await users.read_all()
        await self._rest(stage)

    async def _round(self, users: Users, chaos: Chaos, seconds: float) -> None:
        users.is_over = False
        work = [
            asyncio.create_task(task)
            for name in chaos.stage.peers
            for task in (
                users.publish(name, chaos.published),
                *(users.subscribe(name) for _ in range(SUBSCRIBERS)),
            )
        ]
        try:
            await chaos.run(max(seconds, _SHORTEST_ROUND_S))
            users.is_over = True
            await asyncio.gather(*work)
        finally:
            for task in work:
                task.cancel()
        self.say(
            f"{len(users.ledger.published):,} events published, "
            f"{sum(len(each.received) for each in users.ledger.readers.values()):,} read, "
            f"{sum(chaos.stage.proxy.injected.values()):,} faults, {chaos.counts['kills']} kills"
        )

    async def _lull(self, stage: Stage, users: Users) -> None:
        """Kills a publisher, and its forwarders before they can forward; restarts only these."""
        gone = users.chance.choice(list(stage.peers))
        others = [name for name in stage.peers if name != gone]
        weather = stage.proxy.weather
        weather.blocked |= set(permutations(others, 2))
        await users.publish_many(gone, 10)
        await asyncio.sleep(users.chance.uniform(0.2, 1.5))
        await asyncio.gather(*(peer.kill() for peer in stage.peers.values()))
        weather.heal()
        await stage.start(*others)
        await self._rest(stage, gone)
        self.moments.append(new_record("lull", time.time(), absent=[gone]))

    async def _rest(self, stage: Stage, *absent: str) -> None:
        """Waits until no message is under way and stops all peers; raises Unwell on a timeout."""
        deadline = time.monotonic() + _REST_WITHIN_S
        reason: str | None = "the metrics report a lag"
        while time.monotonic() < deadline:
            if await self._seems_quiet(stage, absent):
                await stage.stop()
                reason = stage.unrest(absent)
                if reason is None:
                    return
                await stage.start(*(name for name in stage.peers if name not in absent))
            await asyncio.sleep(0.5)
        raise Unwell(f"{_REST_WITHIN_S:.0f} s after the faults ended: {reason}")

    async def _seems_quiet(self, stage: Stage, absent: Collection[str]) -> bool:
        """True if the metrics report no lag. The stores give the final answer later."""
        async with aiohttp.ClientSession() as session:
            for name, peer in stage.peers.items():
                if name in absent:
                    continue
                async with session.get(peer.url + "metrics") as response:
                    for consumer, lag in _LAG.findall(await response.text()):
                        if float(lag) and consumer not in absent:
                            return False
        return True

    # --- the verdict ------------------------------------------------------------------------------

    def _judged(self, stage: Stage, users: Users, chaos: Chaos) -> Outcome:
        if not all(path.exists() for path in stage.stores.values()):
            self.violations.append("some peers never started, so there is no history")
            return Outcome(self.seed, self.folder, self.violations, {})
        with ExitStack() as opened:
            stores = open_stores(stage.stores.values(), opened)
            history = list(history_of(federation_of(stores), stores, self.moments))
            waiting = {
                ((name, row.subscription), row.number)
                for name, store in stores.items()
                for row in store.rows(DELIVERIES)
            }
            letters = sum(1 for store in stores.values() for _ in store.rows(DEAD_LETTERS))
        path = self.folder / "history.jsonl"
        path.write_text("".join(map(write_record, history)), encoding="utf-8")
        verdict = judge(history)
        self.violations += [f"{each.rule}: {each.explain()}" for each in verdict.violations]
        self.violations += users.ledger.losses(history, waiting)
        self.violations += self._logged_errors(stage)
        if history[-1]["do"] != "calm":
            self.violations.append("the history does not end in calm")
        counts = _counts(stage, users, chaos, verdict) | {"dead letters": letters}
        return Outcome(self.seed, self.folder, self.violations, counts, verdict)

    def _logged_errors(self, stage: Stage) -> list[str]:
        found = []
        for name in stage.peers:
            text = (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
            found += [
                f"{name} logged an error: {line[:2_000]}"
                for line in text.splitlines()
                if _LOGGED_ERROR.search(line)
            ]
        return found[:_MOST_LOGGED_ERRORS]


def _counts(stage: Stage, users: Users, chaos: Chaos, verdict: Verdict) -> dict[str, int]:
    ledger: Ledger = users.ledger
    return {
        **{f"fault {fault}": number for fault, number in sorted(stage.proxy.injected.items())},
        "calls without a fault": stage.proxy.passed,
        **chaos.counts,
        "starts": sum(peer.starts for peer in stage.peers.values()),
        "requests of users": users.requests,
        "retries": users.retries,
        "publications acknowledged": len(ledger.published),
        "subscriptions acknowledged": len(ledger.subscribed),
        "deliveries read": sum(len(each.received) for each in ledger.readers.values()),
        "notifications": verdict.counts.notifications,
        "records": verdict.counts.records,
    }
