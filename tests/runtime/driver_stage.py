"""A driver on a SQLite store, for tests, with other peers that never answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qns.cbr.index import DictionaryIndex
from qns.edl.messages import Envelope
from qns.edl.requests import Send
from qns.errors import StoreFull
from qns.federation.document_xml import write_federation
from qns.peer.backoff import Backoff
from qns.peer.gateway import Gateway
from qns.peer.inputs import Input, Output
from qns.peer.recovery import Settings
from qns.peer.tuning import Tuning
from qns.runtime.driver import Driver
from qns.store.lineage import FileLineage
from qns.store.sqlite import SqliteStore
from tests.runtime.peers import PATIENCE_S, agencies_on_loopback

FEDERATION = agencies_on_loopback()


@dataclass
class Stage:
    """A driver with its store and the requests that it sent to other peers."""

    folder: Path
    commits: list[float] = field(default_factory=list)
    sent: list[Send] = field(default_factory=list)
    silent: bool = False
    """True if other peers keep the connection open instead of closing it immediately."""
    _over: list[tuple[Send, asyncio.Event]] = field(default_factory=list)
    store: SqliteStore | None = None
    opened: int = 0
    refusals: int = 0
    """How many further attempts to open the store fail."""
    document: bytes = write_federation(FEDERATION)
    """The document of the configuration."""
    answer: Callable[[Send], Envelope | str] = lambda _: "there is no answer"
    """Returns the answer of another peer to a request, or why there is none."""
    tuning: Tuning = field(default_factory=Tuning)
    driver: Driver = field(init=False)

    def __post_init__(self) -> None:
        self.driver = Driver(
            self.open,
            self.send,
            on_commit=self.commits.append,
            most_waiting=500,
            backoff=Backoff(0.01, 30.0),
        )

    def open(self, now: float) -> Gateway:
        self.opened += 1
        if self.store is not None:
            self.store.close()
        if self.opened > 1 and self.refusals:
            self.refusals -= 1
            raise StoreFull("no room left on the disk")
        self.store = SqliteStore(self.folder / "inps.db", low_water_bytes=0)
        return Gateway.open(
            Settings("INPS", self.tuning, DictionaryIndex),
            self.store,
            FileLineage(self.folder / "lineage"),
            document=self.document,
            nonce=f"start{self.opened}",
            now=now,
        )

    async def send(self, send: Send) -> Envelope | str:
        self.sent.append(send)
        over = asyncio.Event()
        self._over.append((send, over))
        if self.silent:
            await over.wait()
        return self.answer(send)

    def hang_up(self, sends: list[Send]) -> None:
        """Ends these requests without an answer."""
        for send, over in self._over:
            if any(each is send for each in sends):
                over.set()

    async def ask(self, input: Input) -> Output:
        return await self.driver.submit(input)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.001)


@asynccontextmanager
async def staged(folder: Path, **settings: Any) -> AsyncIterator[Stage]:
    stage = Stage(folder, **settings)
    await stage.driver.start()
    try:
        yield stage
    finally:
        await stage.driver.stop()
        assert stage.store is not None
        stage.store.close()


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await story

    asyncio.run(bounded())
