"""Chaos: injects network faults and partitions, and kills peers, while the users work."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random

from tests.soak.stage import Stage, some_classes


@dataclass(slots=True, eq=False)
class Chaos:
    stage: Stage
    chance: Random
    counts: Counter[str] = field(default_factory=Counter)
    """How often each kind of fault of a peer was injected."""
    is_active: bool = False
    _busy: set[str] = field(default_factory=set)
    """Organisations whose peer is down, stalled or starting."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, seconds: float) -> None:
        """Injects faults for this time; afterwards all peers run and the network is healed."""
        until = asyncio.get_running_loop().time() + seconds
        self.is_active = True
        await asyncio.gather(self._weather(until), self._partitions(until), self._kills(until))
        self.is_active = False
        self.stage.proxy.weather.heal()
        await asyncio.gather(*self._tasks)
        await self.stage.proxy.settle()
        self.stage.check()

    def published(self, organisation: str) -> None:
        """Callback for an accepted event: kills its peer at once, for one event of 50."""
        if self.is_active and self.chance.random() < 0.02:
            self._begin(organisation, self._crash(organisation))

    # --- the network ------------------------------------------------------------------------------

    async def _weather(self, until: float) -> None:
        weather = self.stage.proxy.weather
        weather.roughness = self.chance.choice((0.3, 0.6))  # even a short run gets faults
        while await self._pause(self.chance.uniform(1.0, 5.0), until):
            weather.roughness = self.chance.choice((0.0, 0.1, 0.3, 0.6))

    async def _partitions(self, until: float) -> None:
        weather = self.stage.proxy.weather
        names = list(self.stage.peers)
        while await self._pause(self.chance.uniform(1.0, 6.0), until):
            inside = set(self.chance.sample(names, self.chance.randint(1, len(names) // 2)))
            pairs = [
                pair
                for one in inside
                for other in names
                if other not in inside
                for pair in ((one, other), (other, one))
            ]
            share = self.chance.choice((0.5, 0.5, 1.0))
            weather.blocked |= {pair for pair in pairs if self.chance.random() < share}
            self.counts["partitions"] += 1
            await self._pause(self.chance.uniform(0.5, 5.0), until)
            weather.blocked.clear()

    # --- the peers --------------------------------------------------------------------------------

    async def _kills(self, until: float) -> None:
        """Kills, stalls and stops peers. The first kill comes after a second, in every run."""
        names, per_s = list(self.stage.peers), self.chance.choice((0.1, 0.3, 0.6))
        pause_s, kind = 1.0, 0.0
        while await self._pause(pause_s, until):
            name = self.chance.choice(names)
            if kind < 0.7:
                self._begin(name, self._crash(name))
            elif kind < 0.82:
                self._begin(name, self._stall(name))
            elif kind < 0.92:
                self._begin(name, self._stop(name))
            elif kind < 0.98:
                self._change_document(name)
                self._begin(name, self._stop(name))
            else:
                self.counts["power cuts"] += 1
                for each in names:
                    self._begin(each, self._crash(each))
            pause_s, kind = self.chance.expovariate(per_s), self.chance.random()

    def _change_document(self, name: str) -> None:
        """Installs a document in which the organisation hosts other classes."""
        self.counts["federation documents"] += 1
        hosts = some_classes(self.chance)
        self.stage.install(self.stage.federation.hosting(name, hosts))

    def _begin(self, name: str, work: Coroutine[None, None, None]) -> None:
        if name in self._busy:
            work.close()
            return
        self._busy.add(name)
        task = asyncio.create_task(work)
        self._tasks.add(task)

        def done(_: asyncio.Task[None]) -> None:
            self._busy.discard(name)

        task.add_done_callback(done)

    async def _crash(self, name: str) -> None:
        peer = self.stage.peers[name]
        self.counts["kills"] += 1
        await peer.kill()
        await asyncio.sleep(self.chance.choice((0.0, 0.0, 1.0, 4.0)))
        if self.chance.random() < 0.2:  # kill it again while it starts
            starting = asyncio.create_task(peer.start())
            await asyncio.sleep(self.chance.uniform(0.1, 1.5))
            self.counts["kills"] += 1
            await peer.kill()
            await starting
        if not peer.is_up:
            await peer.start()

    async def _stall(self, name: str) -> None:
        """Suspends the process for a while, so that it does not answer."""
        peer = self.stage.peers[name]
        self.counts["stalls"] += 1
        peer.signal(signal.SIGSTOP)
        await asyncio.sleep(self.chance.uniform(0.3, 3.0))
        peer.signal(signal.SIGCONT)

    async def _stop(self, name: str) -> None:
        peer = self.stage.peers[name]
        self.counts["stops"] += 1
        await peer.stop()
        await peer.start()

    async def _pause(self, seconds: float, until: float) -> bool:
        """Waits, at most until `until`; True if there is time left afterwards."""
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, min(seconds, until - clock())))
        self.stage.check()
        return clock() < until
