"""Driver: the turns of a peer, one after the other, each committed before anything of it leaves.

The peer runs in the event loop; only what waits for the disk runs in a thread of its own. While a
commit is under way the peer goes on in memory: the turns that happen meanwhile are committed
together afterwards, so that group commit comes by itself. If a commit fails, nothing of it or of
those turns has left; the peer is opened again from the disk after a pause, and meanwhile everybody
hears that it is busy.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic, perf_counter, time
from typing import Final

from qns.edl.layer import Send
from qns.edl.messages import Envelope
from qns.errors import Busy, QnsError, StoreFull
from qns.gateway import Gateway
from qns.inputs import Answered, Effects, Input, Output
from qns.peer import Peer
from qns.runtime.logs import tell, tell_exception
from qns.runtime.news import Waiter
from qns.runtime.waiting import Group, Then, Waiting, needs_room, told_to
from qns.turn import Record

MOST_WAITING: Final = 10_000
MOST_PER_TURN: Final = 256
"""A turn occupies the event loop: bounded, so that others are heard in between."""
_ENOUGH_TO_WORK_AHEAD: Final = 4
"""Every turn also looks at all links: for one input alone that would cost more than it gains."""
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_LONGEST_SLEEP_S: Final = 60.0
"""The peer's times are of a clock that may be set: the wake-up is looked at again after this."""
_SHORTEST_SLEEP_S: Final = 0.001

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
    _queue: deque[Waiting] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _is_due: bool = False
    """The peer wants a turn though nothing came in."""
    _begun: Group = field(default_factory=Group)
    """Turns that wait for the commit under way."""
    _commit: asyncio.Future[float] | None = None
    _committing: Group | None = None
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
        told, passed = time(), monotonic()  # in this order: what comes in between is not counted
        self._now = max(self._now + max(0.0, passed - self._passed), told)
        self._passed = passed
        return self._now

    # --- from outside -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Opens the store; an error is the caller's."""
        await self._open_gateway()
        self._turns = asyncio.create_task(self._run(), name="turns")

    def ask(self, input: Input, then: Then) -> None:
        """Tells the answer once all that it says is on the disk; Busy at once if too many wait."""
        refusal = self._refusal() or self._no_room_for(input)
        if refusal is not None:
            then(refusal)
        else:
            self._put(Waiting(input, then))

    def submit(self, input: Input) -> asyncio.Future[Output]:
        """The same, for who awaits it."""
        answer: asyncio.Future[Output] = asyncio.get_running_loop().create_future()
        self.ask(input, told_to(answer))
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
        if self._full_until <= monotonic() or not needs_room(input):
            return None
        return StoreFull("no room left on the disk of this peer", remedy="try again later")

    def _put(self, waiting: Waiting) -> None:
        self._queue.append(waiting)
        self._wake.set()

    # --- turns ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not (self.is_stopping and not self._queue and self._commit is None):
            await self._wake.wait()
            self._wake.clear()
            batch: list[Waiting] = []
            try:
                self._see_whether_committed()
                batch = self._gathered()
                if batch or self._is_due:
                    self._turn(batch)
                    batch = []  # it belongs to what is to be committed now
                self._commit_begun()
            except Exception as error:
                if not isinstance(error, QnsError):
                    tell_exception("a turn failed")
                await self._failed(batch, error)

    def _gathered(self) -> list[Waiting]:
        """What waits. While the disk is busy, a few wait until there are more."""
        if self._commit is not None and len(self._queue) < _ENOUGH_TO_WORK_AHEAD:
            return []
        room = MOST_PER_TURN - len(self._begun.inputs)
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), room))]
        if self._queue and self._commit is None:
            self._wake.set()
        return batch

    def _turn(self, batch: list[Waiting]) -> None:
        self._is_due = False
        now = self.now()
        ahead = self._commit is not None or bool(self._begun.turns)
        begun = self.gateway.begin([each.input for each in batch], now, ahead=ahead)
        self._begun.transaction.add(begun.transaction)
        self._begun.turns.append((batch, begun.effects, now))

    def _commit_begun(self) -> None:
        """If there is anything to commit, and nothing on its way to the disk."""
        if self._commit is not None or not self._begun.turns:
            return
        group, self._begun = self._begun, Group()
        self._committing = group
        if group.transaction:
            started = perf_counter()
            make_last = self.gateway.store.prepare(group.transaction)
            self._commit = asyncio.get_running_loop().run_in_executor(
                self._thread, _timed, make_last, started
            )
            self._commit.add_done_callback(lambda _: self._wake.set())
        else:
            self._committing = None
            self._conclude(group)

    def _see_whether_committed(self) -> None:
        """If so, all that waited for it leaves; an error is why it was not."""
        if self._commit is None or not self._commit.done():
            return
        commit, self._commit = self._commit, None
        self.committed(commit.result())
        group, self._committing = self._committing, None
        assert group is not None
        try:
            if self._begun.transaction:
                self._commit_begun()  # the disk need not wait until everybody is told
        finally:
            self._conclude(group)

    def _conclude(self, group: Group) -> None:
        if self._full_pause_s and any(needs_room(each.input) for each in group.inputs):
            self._full_pause_s = 0.0
        self.gateway.committed(len(group.turns))
        for batch, effects, now in group.turns:
            for waiting, output in zip(batch, effects.answers, strict=True):
                waiting.resolve(output)
            self._let_out(effects, now)

    def _let_out(self, effects: Effects, now: float) -> None:
        for send in effects.sends:
            task = asyncio.create_task(self._bring(send, self._life))
            self._exchanges.add(task)
            task.add_done_callback(self._exchanges.discard)
        for record in effects.records if self._waiters else ():
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
            self._put(Waiting(Answered(send.number, envelope), None))

    def _sleep_until(self, wake_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_at < inf:
            pause = min(max(wake_at - self.now(), _SHORTEST_SLEEP_S), _LONGEST_SLEEP_S)
            self._timer = asyncio.get_running_loop().call_later(pause, self._fall_due)

    def _fall_due(self) -> None:
        self._is_due = True
        self._wake.set()

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

    async def _failed(self, batch: list[Waiting], error: Exception) -> None:
        """Everybody in the turn hears why; then the peer is opened again from the disk."""
        reason = error.problem if isinstance(error, QnsError) else "an unexpected error"
        self.commit_failures += 1
        self.trouble = self.last_failure = Trouble(reason, self.now())
        self._life += 1
        self._sleep_until(inf)
        lost = [*self._begun.inputs, *batch]
        self._begun = Group()
        if self._commit is not None:  # of turns before the one that failed
            await asyncio.wait((self._commit,))
            with suppress(Exception):
                self._see_whether_committed()
        if self._committing is not None:
            lost = [*self._committing.inputs, *lost]
            self._committing = None
        tell(logging.ERROR, "a turn was not committed", reason=reason, inputs=len(lost))
        for each in lost:
            each.resolve(error)
        pause = self.pause_s
        if isinstance(error, StoreFull):  # not again and again for each who publishes meanwhile
            self._full_pause_s = min(max(2 * self._full_pause_s, pause), _LONGEST_PAUSE_S)
            self._full_until = monotonic() + self._full_pause_s
        while not self.is_stopping:
            refusal = self._refusal()
            while self._queue:
                self._queue.popleft().resolve(refusal)
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
            self._queue.popleft().resolve(self._refusal())

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


def _timed(do: Callable[[], None], started: float) -> float:
    """How many seconds it took since then."""
    do()
    return perf_counter() - started
