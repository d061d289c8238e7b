"""Timestamper: gets timestamps for the roots of the evidence, beside the traffic.

Nothing waits for it. If the authority does not answer, the roots wait, and the next attempt comes
after a pause. Only hashes leave the peer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from random import random
from typing import Final, Self

import aiohttp

from qns.errors import QnsError
from qns.evidence.stamping import MOST_ROOTS, Batch, keep_timestamp, next_batch
from qns.evidence.timestamps import MAX_RESPONSE_BYTES, Request
from qns.peer.backoff import Backoff
from qns.peer.gateway import Gateway
from qns.runtime.causes import cause_of
from qns.runtime.driver import Driver
from qns.runtime.evidence_settings import EvidenceSettings, TimestampSettings
from qns.runtime.logs import log_event, log_exception
from qns.runtime.reasons import Reason, ReasonKind

LATE_S: Final = 3_600.0
"""Roots that wait longer for a timestamp are a reason in the health."""
_ANSWER_WITHIN_S: Final = 30.0
_RETRY: Final = Backoff(first_s=5.0, longest_s=600.0)
_HEADERS: Final = {"Content-Type": "application/timestamp-query"}


@dataclass(slots=True, eq=False)
class Timestamper:
    driver: Driver
    settings: TimestampSettings | None
    """The authority; None if there is none, and then nothing is done."""
    retry: Backoff = _RETRY
    problem: str = ""
    """Why the last attempt failed; empty if it did not."""
    waits_since: float | None = None
    """When the oldest root without a timestamp was kept; None if there is none."""
    _task: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, settings: EvidenceSettings | None, driver: Driver) -> Self:
        return cls(driver, None if settings is None else settings.timestamps)

    def start(self) -> None:
        if self.settings is not None:
            self._task = asyncio.create_task(self._run(self.settings), name="timestamper")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, settings: TimestampSettings) -> None:
        failures = 0
        while True:
            pause_s = self.retry.pause_s(failures, random()) if failures else settings.every_s  # noqa: S311
            await asyncio.sleep(pause_s)
            try:
                while await self._stamp_next(settings):
                    pass
            except (QnsError, aiohttp.ClientError, OSError, TimeoutError) as error:
                is_own = isinstance(error, QnsError)
                reason = str(error) if is_own else cause_of(error, has_tls=False)
                if reason != self.problem:
                    log_event(logging.WARNING, "no timestamp", reason=reason)
                self.problem = reason
                failures += 1
            except Exception:  # the next attempt may succeed
                log_exception("no timestamp")
                self.problem = "an unexpected error: see the log"
                failures += 1
            else:
                self.problem, failures = "", 0

    async def _stamp_next(self, settings: TimestampSettings) -> bool:
        """Gets the next timestamp; returns True if more roots may wait."""
        found: list[Batch | None] = []
        await self.driver.between_turns(lambda gateway: found.append(next_batch(gateway.store)))
        (batch,) = found
        self.waits_since = None if batch is None else batch.rows[0].kept_at
        if batch is None:
            return False
        request = Request(batch.root)
        response = await ask_authority(settings.url, request.as_bytes())
        request.check(response, settings.authority)

        def keep(gateway: Gateway) -> None:
            keep_timestamp(gateway.store, batch, response)

        await self.driver.between_turns(keep)
        self.waits_since = None
        return len(batch.rows) == MOST_ROOTS


def of_timestamps(timestamper: Timestamper | None, now: float) -> Iterator[Reason]:
    """Yields that roots wait for timestamps for long."""
    if timestamper is None or timestamper.waits_since is None:
        return
    for_s = now - timestamper.waits_since
    if for_s >= LATE_S:
        why = f": {timestamper.problem}" if timestamper.problem else ""
        words = f"evidence waits for its timestamp since {for_s / 3_600:.1f} hours{why}"
        yield Reason(ReasonKind.TIMESTAMPS_LATE, words)


async def ask_authority(url: str, request: bytes) -> bytes:
    """Sends a request for a timestamp; returns the response, both in DER."""
    timeout = aiohttp.ClientTimeout(total=_ANSWER_WITHIN_S)
    async with (
        aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
        session.post(url, data=request, headers=_HEADERS, allow_redirects=False) as response,
    ):
        if response.status != HTTPStatus.OK:
            raise QnsError(f"the timestamping authority answers with status {response.status}")
        content = bytearray()
        async for piece in response.content.iter_any():
            content += piece
            if len(content) > MAX_RESPONSE_BYTES:
                raise QnsError("the response of the timestamping authority is too long")
        return bytes(content)
