"""Store upkeep: slowly verifies the pages of the store and gives free space back to the disk.

SQLite verifies the pages that it reads. The upkeep finds damage in the pages that nothing reads for
a long time, before a backup with the right content has been deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from qns.errors import StoreFailed, StoreFull
from qns.runtime.driver import Driver
from qns.store.sqlite import SqliteStore

_PAUSE_S: Final = 0.25
_PAGES: Final = 64
"""The pages between two pauses. One mebibyte per second is verified, 100 MiB in 100 seconds."""


@dataclass(slots=True, eq=False)
class StoreUpkeep:
    driver: Driver
    store: Callable[[], SqliteStore | None]
    """Returns the store in use."""
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="store upkeep")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        """Works in small steps until it is stopped; a damaged store is not used any more."""
        while True:
            await asyncio.sleep(_PAUSE_S)
            store = self.store()
            if store is None or self.driver.trouble is not None:
                continue
            try:
                await asyncio.to_thread(store.check_next_pages, _PAGES)
                await asyncio.to_thread(store.compact)
            except StoreFull:
                continue
            except StoreFailed as error:
                if store is self.store():  # otherwise the driver has closed it meanwhile
                    self.driver.distrust_store(error)
