"""Lineage upkeep: notes outside the store how many turns are committed.

A store that loses commits is thereby detected at the next start, even if nothing had left the peer
(`qns.peer.lineage`).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from qns.errors import QnsError
from qns.peer.lineage import NOTE_EVERY_S
from qns.runtime.driver import Driver
from qns.runtime.logs import log_event


@dataclass(slots=True, eq=False)
class LineageUpkeep:
    driver: Driver
    _task: asyncio.Task[None] | None = None
    _has_failed: bool = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="lineage upkeep")

    async def stop(self) -> None:
        """Notes the turns up to the end; the driver has stopped before."""
        if self._task is not None:
            self._task.cancel()
            await self._note()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(NOTE_EVERY_S)
            await self._note()

    async def _note(self) -> None:
        gateway = self.driver.gateway
        if not gateway.has_progress:
            return
        try:
            await asyncio.to_thread(gateway.note_progress)
            self._has_failed = False
        except QnsError as error:  # a loss of commits would be noticed later, or by others
            if not self._has_failed:
                log_event(logging.WARNING, "the lineage was not written", reason=str(error))
            self._has_failed = True
