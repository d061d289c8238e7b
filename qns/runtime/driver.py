"""Driver: the turns of a peer, one after the other, each committed before anything of it leaves.

The peer runs in the event loop; only the commit runs in a thread of its own. What comes in while a
commit is under way gathers and goes together into the next turn: group commit comes by itself. If
a commit fails, the peer is opened again from the disk after a pause; meanwhile everybody hears
that it is busy.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import inf
from time import monotonic, perf_counter, time
from typing import Final

from qns.edl.layer import Send
from qns.edl.messages import ChangeSub, Envelope, Notify
from qns.errors import Busy, QnsError, StoreFull
from qns.gateway import Gateway
from qns.iil.requests import (
    AcknowledgeDeliveries,
    ListSubscriptions,
    Pause,
    Read,
    Renew,
    Resume,
    Unsubscribe,
)
from qns.inputs import Answered, Effects, Input, Output, Received
from qns.peer import Peer
from qns.runtime.logs import tell, tell_exception
from qns.turn import Record

MOST_WAITING: Final = 10_000
MOST_PER_TURN: Final = 256
"""A turn occupies the event loop: bounded, so that others are heard in between."""
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_LONGEST_SLEEP_S: Final = 60.0
"""The peer's times are of a clock that may be set: the wake-up is looked at again after this."""
_SHORTEST_SLEEP_S: Final = 0.001

_SMALL: Final = (
    *(AcknowledgeDeliveries, Read, ListSubscriptions, Unsubscribe, Renew, Pause, Resume),
    Answered,
)
"""What frees room on the disk, or needs next to none."""

Open = Callable[[float], Gateway]
"""A gateway on the store, opened afresh at this time; called in the commit thread."""
Exchange = Callable[[Send], Awaitable[Envelope | None]]
"""Brings a request to another peer and its answer back, or None if there is none."""
Watch = Callable[[Peer, list[Record], float], None]
"""Is told what a committed turn recorded, and its time."""
Committed = Callable[[float], None]
"""Is told how many seconds a commit took."""


@dataclass(slots=True)
class Trouble:
    """Why the peer takes nothing in at present."""

    reason: str
    since: float


@dataclass(slots=True, eq=False)
class _Waiting:
    input: Input
    answer: asyncio.Future[Output] | None


@dataclass(slots=True, eq=False)
class Driver:
    open: Open
    exchange: Exchange
    watch: Watch = lambda *_: None
    committed: Committed = lambda _: None
    most_waiting: int = MOST_WAITING
    pause_s: float = _FIRST_PAUSE_S
    """Before the store is opened again after a failure; doubles while it fails."""
    trouble: Trouble | None = None
    commit_failures: int = 0
    refused_document: str = ""
    """Why the document of the configuration is not in force."""
    last_failure: Trouble | None = None
    is_stopping: bool = False
    _gateway: Gateway | None = None
    _life: int = 0
    """Counts gateways: the answer to a request of an earlier one is nobody's."""
    _now: float = 0.0
    _passed: float = inf
    """The monotonic clock at that time."""
    _full_until: float = 0.0
    _full_pause_s: float = 0.0
    """For how long nothing is taken in that needs room on the disk."""
    _queue: deque[_Waiting] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _timer: asyncio.TimerHandle | None = None
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="commit")
    )
    _exchanges: set[asyncio.Task[None]] = field(default_factory=set)
    _turns: asyncio.Task[None] | None = None
    _waiters: dict[str, set[asyncio.Event]] = field(default_factory=dict)

    @property
    def gateway(self) -> Gateway:
        """The one in use, or the last one."""
        assert self._gateway is not None, "started first"
        return self._gateway

    @property
    def peer(self) -> Peer:
        return self.gateway.peer

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def pulls(self) -> int:
        """How many wait for deliveries."""
        return sum(map(len, self._waiters.values()))

    def now(self) -> float:
        """The time of day; if the clock is set back, it goes on from where it was."""
        passed = monotonic()
        self._now = max(self._now + max(0.0, passed - self._passed), time())
        self._passed = passed
        return self._now

    # --- from outside -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Opens the store; an error is the caller's."""
        await self._open_gateway()
        self._turns = asyncio.create_task(self._run(), name="turns")

    def submit(self, input: Input) -> asyncio.Future[Output]:
        """The answer, once all that it tells is on the disk; Busy at once if too many wait."""
        answer: asyncio.Future[Output] = asyncio.get_running_loop().create_future()
        refusal = self._refusal() or self._no_room_for(input)
        if refusal is not None:
            answer.set_result(refusal)
        else:
            self._put(_Waiting(input, answer))
        return answer

    def deliveries_of(self, subscription: str) -> Waiter:
        """To wait for deliveries of a subscription: `with driver.deliveries_of(id) as news`."""
        return Waiter(self._waiters, subscription)

    def wake_waiters(self) -> None:
        """Nobody waits for deliveries any longer: the process stops."""
        for events in self._waiters.values():
            for event in events:
                event.set()

    async def stop(self) -> None:
        """Finishes what is waiting, then closes nothing but itself."""
        self.is_stopping = True
        self._wake.set()
        if self._turns is not None:
            await self._turns
        self._sleep_until(inf)
        for task in list(self._exchanges):
            task.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        self._thread.shutdown()

    def _refusal(self) -> Busy | None:
        if self.trouble is not None:
            return Busy(
                f"the store is being opened again: {self.trouble.reason}", remedy="try again later"
            )
        if self.is_stopping:
            return Busy("the peer is stopping", remedy="try again later")
        if len(self._queue) >= self.most_waiting:
            return Busy(
                f"{len(self._queue):,} requests are waiting already", remedy="try again later"
            )
        return None

    def _no_room_for(self, input: Input) -> Busy | None:
        """While the disk is full only what frees room, or needs none, is taken in."""
        if self._full_until <= monotonic() or not _needs_room(input):
            return None
        return StoreFull("no room left on the disk of this peer", remedy="try again later")

    def _put(self, waiting: _Waiting) -> None:
        self._queue.append(waiting)
        self._wake.set()

    # --- turns ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not (self.is_stopping and not self._queue):
            await self._wake.wait()
            self._wake.clear()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MOST_PER_TURN))]
            if self._queue:
                self._wake.set()
            try:
                await self._turn(batch)
            except Exception as error:
                if not isinstance(error, QnsError):
                    tell_exception("a turn failed")
                await self._failed(batch, error)

    async def _turn(self, batch: list[_Waiting]) -> None:
        now = self.now()
        gateway = self.gateway
        begun = gateway.begin([each.input for each in batch], now)
        if begun.transaction:
            started = perf_counter()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, gateway.store.commit, begun.transaction)
            self.committed(perf_counter() - started)
            if self._full_pause_s and any(_needs_room(each.input) for each in batch):
                self._full_pause_s = 0.0
        gateway.committed()
        effects = begun.effects
        for waiting, output in zip(batch, effects.answers, strict=True):
            _resolve(waiting, output)
        self._let_out(effects, now)

    def _let_out(self, effects: Effects, now: float) -> None:
        for send in effects.sends:
            task = asyncio.create_task(self._bring(send, self._life))
            self._exchanges.add(task)
            task.add_done_callback(self._exchanges.discard)
        for record in effects.records:
            if record["do"] == "ntfy" and record["sub"] in self._waiters:
                for event in self._waiters[record["sub"]]:
                    event.set()
        self._sleep_until(effects.wake_at)
        try:
            self.watch(self.peer, effects.records, now)
        except Exception:  # who only watches cannot stop the peer
            tell_exception("the records of a turn were not counted")

    async def _bring(self, send: Send, life: int) -> None:
        try:
            envelope = await self.exchange(send)
        except Exception:
            tell_exception("a request to another peer failed", to=send.to)
            envelope = None
        if life == self._life and not self.is_stopping:
            self._put(_Waiting(Answered(send.number, envelope), None))

    def _sleep_until(self, wake_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_at < inf:
            pause = min(max(wake_at - self.now(), _SHORTEST_SLEEP_S), _LONGEST_SLEEP_S)
            self._timer = asyncio.get_running_loop().call_later(pause, self._wake.set)

    # --- failures ---------------------------------------------------------------------------------

    async def _open_gateway(self) -> None:
        """The first effects are let out like those of a turn."""
        now = self.now()
        loop = asyncio.get_running_loop()
        self._gateway = await loop.run_in_executor(self._thread, self.open, now)
        self._life += 1
        if self._gateway.restored:
            tell(
                logging.WARNING,
                "the store was put back from an older copy",
                epoch=self.peer.identity.epoch,
            )
        for answer in self._gateway.first.answers:
            if isinstance(answer, QnsError):
                self.refused_document = str(answer)
                tell(
                    logging.WARNING,
                    "the federation document is not put in force",
                    reason=str(answer),
                )
        self._let_out(self._gateway.first, now)

    async def _failed(self, batch: list[_Waiting], error: Exception) -> None:
        """Everybody in the turn hears why; then the peer is opened again from the disk."""
        reason = error.problem if isinstance(error, QnsError) else "an unexpected error"
        self.commit_failures += 1
        self.trouble = self.last_failure = Trouble(reason, self.now())
        self._life += 1
        self._sleep_until(inf)
        tell(logging.ERROR, "a turn was not committed", reason=reason, inputs=len(batch))
        for each in batch:
            _fail(each, error)
        pause = self.pause_s
        if isinstance(error, StoreFull):  # not again and again for each who publishes meanwhile
            self._full_pause_s = min(max(2 * self._full_pause_s, pause), _LONGEST_PAUSE_S)
            self._full_until = monotonic() + self._full_pause_s
        while not self.is_stopping:
            refusal = self._refusal()
            while self._queue:
                _resolve(self._queue.popleft(), refusal)
            await self._rest(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            try:
                await self._open_gateway()
            except Exception as again:
                if not isinstance(again, QnsError):
                    tell_exception("the store could not be opened again")
                self.trouble = Trouble(str(again), self.trouble.since)
                tell(logging.ERROR, "the store could not be opened again", reason=str(again))
            else:
                self.trouble = None
                tell(logging.INFO, "the store is open again", epoch=self.peer.identity.epoch)
                return
        while self._queue:
            _resolve(self._queue.popleft(), self._refusal())

    async def _rest(self, pause_s: float) -> None:
        """Until the pause is over or the process stops."""
        deadline = asyncio.get_running_loop().time() + pause_s
        while not self.is_stopping:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return
            try:
                await asyncio.wait_for(self._wake.wait(), left)
            except TimeoutError:
                return
            self._wake.clear()


@dataclass(slots=True, eq=False)
class Waiter:
    """Waits for deliveries of one subscription; those from its beginning on are noticed."""

    _waiters: dict[str, set[asyncio.Event]]
    _subscription: str
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __enter__(self) -> Waiter:
        self._waiters.setdefault(self._subscription, set()).add(self._news)
        return self

    def __exit__(self, *_: object) -> None:
        others = self._waiters[self._subscription]
        others.discard(self._news)
        if not others:
            del self._waiters[self._subscription]

    async def wait(self, timeout_s: float) -> bool:
        """Whether there is news, or may be."""
        try:
            await asyncio.wait_for(self._news.wait(), timeout_s)
        except TimeoutError:
            return False
        self._news.clear()
        return True


def _needs_room(input: Input) -> bool:
    if isinstance(input, Received):
        return isinstance(input.envelope.body, Notify | ChangeSub)
    return not isinstance(input, _SMALL)


def _resolve(waiting: _Waiting, output: Output) -> None:
    if waiting.answer is not None and not waiting.answer.done():
        waiting.answer.set_result(output)


def _fail(waiting: _Waiting, error: Exception) -> None:
    if waiting.answer is None or waiting.answer.done():
        return
    if isinstance(error, QnsError):
        waiting.answer.set_result(error)
    else:
        waiting.answer.set_exception(error)
