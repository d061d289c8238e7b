"""Measures how long a backup makes a peer pause: `python -m tests.runtime.admin.measure_backup`.

Events are published without end at a peer with a store of 500 MB, or of the size in the first
argument. The longest gap between two callbacks of the event loop and the latencies of publishing
are taken without a backup, during one, and during an encrypted one.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from qns.iil.requests import Published
from qns.peer.tables import EVENTS
from qns.runtime.process import Running
from qns.store.backup_key import write_new_key
from tests.runtime.admin.stage import ask, running_peer
from tests.runtime.peers import change
from tests.store.rows import numbered, put

_ROW_BYTES = 20_000


class Load:
    """Publishes one event after the other, and watches the event loop."""

    def __init__(self, running: Running, prefix: str) -> None:
        self.latencies: list[float] = []
        self.longest_gap_s = 0.0
        self._running = running
        self._prefix = prefix

    async def __aenter__(self) -> Load:
        self._tasks = [asyncio.create_task(self._publish()), asyncio.create_task(self._watch())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _publish(self) -> None:
        while True:
            started = perf_counter()
            answer = await self._running.driver.submit(
                change(f"{self._prefix}{len(self.latencies)}")
            )
            assert isinstance(answer, Published)
            self.latencies.append(perf_counter() - started)

    async def _watch(self) -> None:
        before = perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = perf_counter()
            self.longest_gap_s = max(self.longest_gap_s, now - before - 0.001)
            before = now

    def __str__(self) -> str:
        ordered = sorted(self.latencies)
        p99 = ordered[int(len(ordered) * 0.99)]
        return (
            f"{len(ordered)} publications, p50 {ordered[len(ordered) // 2] * 1e3:.1f} ms, "
            f"p99 {p99 * 1e3:.1f} ms, longest {ordered[-1] * 1e3:.1f} ms; longest gap of the event "
            f"loop {self.longest_gap_s * 1e3:.1f} ms"
        )


async def measure(folder: Path, megabytes: int) -> None:
    async with running_peer(folder) as running:
        store = running.driver.gateway.store
        for start in range(0, megabytes * 1_000_000 // _ROW_BYTES, 500):
            rows = (numbered(EVENTS, n, xml=bytes(_ROW_BYTES)) for n in range(start, start + 500))
            store.commit(put(*((EVENTS, row) for row in rows)))
        size = (folder / "INPS.db").stat().st_size
        print(f"the store has {size / 1e6:.0f} MB")
        await running.driver.submit(change("first"))  # loads what a real peer loads at its start
        await asyncio.sleep(2)
        async with Load(running, "alone") as load:
            await asyncio.sleep(10)
        print(f"without a backup: {load}")
        write_new_key(folder / "a.key")
        for name, more in (("plain", {}), ("encrypted", {"key": str(folder / "a.key")})):
            async with Load(running, name) as load:
                *_, last = await ask(running, "backup", file=str(folder / name), **more)
            print(f"during a backup ({name}, {last['result']['seconds']} s): {load}")


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with TemporaryDirectory(dir=".") as temporary:
        asyncio.run(measure(Path(temporary).absolute(), size))
