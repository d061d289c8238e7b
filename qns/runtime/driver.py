"""Driver: runs the turns of a peer one after the other and commits each before its effects leave.

The peer runs in the event loop; only the wait for the disk is in a thread of its own. The turn
queue decides which turns share a commit. If a commit fails, none of its effects has left. The store
is then opened again after a pause, and meanwhile every request is answered with Busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from logging import ERROR, INFO
from math import inf
from time import perf_counter
from typing import Final

from qns.edl.messages import Envelope
from qns.edl.requests import Send
from qns.errors import Busy, QnsError, StoreFull
from qns.peer.backoff import Backoff
from qns.peer.gateway import Gateway
from qns.peer.inputs import Answered, Effects, Input, Output
from qns.peer.outcomes import Outcomes
from qns.peer.peer import Peer
from qns.peer.status import PeerStatus
from qns.peer.turn_queue import CommitGroup, OnAnswer, PendingInput, TurnQueue
from qns.runtime.chores import Chore, Chores
from qns.runtime.clock import SteadyClock, timed
from qns.runtime.delivery_waiter import DeliveryWaiters
from qns.runtime.documents import report_plan
from qns.runtime.full_disk import FullDisk
from qns.runtime.logs import log_event, log_exception
from qns.runtime.pending_inputs import resolve, resolver

MOST_WAITING: Final = 10_000
_REOPEN: Final = Backoff(first_s=0.5, longest_s=30.0)
_LONGEST_SLEEP_S: Final = 60.0
"""The clock may be changed, so the wake-up time is checked at least this often."""
_SHORTEST_SLEEP_S: Final = 0.001

Open = Callable[[float], Gateway]
"""Opens a gateway on the store at this time; is called in the commit thread."""
SendToPeer = Callable[[Send], Awaitable[Envelope | str]]
"""Sends a request to another peer; returns its answer, or why there is none."""
Observer = Callable[[Outcomes, float], None]
"""Callback that receives the outcomes of a committed turn, and its time."""
OnTurn = Callable[[Mapping[str, float]], None]
"""Callback that receives how many seconds of CPU time the requests of each member took in
a turn."""
OnCommit = Callable[[float], None]
"""Callback that receives how many seconds a commit took."""


@dataclass(slots=True)
class Trouble:
    """Why the peer accepts no input at present."""

    reason: str
    since: float


@dataclass(slots=True, eq=False)
class Driver:
    open: Open
    send_to_peer: SendToPeer
    observers: tuple[Observer, ...] = ()
    on_commit: OnCommit = lambda _: None
    on_turn: OnTurn = lambda _: None
    refuse: Callable[[Input], Busy | None] = lambda _: None
    """Returns an error for an input that the peer does not accept at present."""
    most_waiting: int = MOST_WAITING
    backoff: Backoff = _REOPEN
    """The pauses before the store is opened again after a failure."""
    trouble: Trouble | None = None
    commit_failures: int = 0
    refused_document: str = ""
    """Why the document of the configuration is not in force; empty if it is."""
    last_failure: Trouble | None = None
    is_stopping: bool = False
    waiters: DeliveryWaiters = field(default_factory=DeliveryWaiters)
    """The pulls that wait for deliveries."""
    now: Callable[[], float] = field(default_factory=lambda: SteadyClock().now)
    _gateway: Gateway | None = None
    _generation: int = 0
    """Counts the gateways, so that answers to requests of an earlier one are ignored."""
    _full_disk: FullDisk = field(default_factory=FullDisk)
    _queue: TurnQueue = field(default_factory=TurnQueue)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _commit: asyncio.Future[float] | None = None
    _damage: QnsError | None = None
    """What a check of the store has found; None if nothing."""
    _timer: asyncio.TimerHandle | None = None
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="commit")
    )
    _chores: Chores = field(default_factory=Chores)
    _sending: set[asyncio.Task[None]] = field(default_factory=set)
    _turns: asyncio.Task[None] | None = None

    @property
    def gateway(self) -> Gateway:
        """The gateway in use, or the last one."""
        assert self._gateway is not None, "started first"
        return self._gateway

    @property
    def peer(self) -> Peer:
        return self.gateway.peer

    @property
    def status(self) -> PeerStatus:
        return self.gateway.status

    @property
    def waiting(self) -> int:
        """The number of inputs that wait for a turn."""
        return len(self._queue)

    # --- public -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Opens the store and begins to run turns; raises if the store cannot be opened."""
        await self._open_gateway()
        self._turns = asyncio.create_task(self._run(), name="turns")

    def ask(self, input: Input, on_answer: OnAnswer) -> None:
        """Queues an input; the callback gets the answer after the commit, or Busy at once."""
        refusal = self._refusal() or self._full_disk.refusal(input) or self.refuse(input)
        if refusal is not None:
            on_answer(refusal)
        else:
            self._put(PendingInput(input, on_answer))

    def submit(self, input: Input) -> asyncio.Future[Output]:
        """Awaitable variant of `ask`."""
        answer: asyncio.Future[Output] = asyncio.get_running_loop().create_future()
        self.ask(input, resolver(answer))
        return answer

    def distrust_store(self, error: QnsError) -> None:
        """Serves nothing more from a store that a check has found damaged; opens it again."""
        self._damage = error
        self._wake.set()

    async def between_turns(self, chore: Chore) -> None:
        """Runs a chore in the commit thread while no turn and no commit is under way."""
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
        done = self._chores.add(chore)
        self._wake.set()
        await done

    async def stop(self) -> None:
        """Handles the inputs that wait, then stops; the store stays open."""
        self.is_stopping = True
        self._wake.set()
        if self._turns is not None:
            await self._turns
        self._chores.refuse_all()
        self._sleep_until(inf)
        for task in list(self._sending):
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
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

    def _put(self, pending: PendingInput) -> None:
        self._queue.put(pending)
        self._wake.set()

    # --- turns ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not (self.is_stopping and not self._queue and self._commit is None):
            await self._wake.wait()
            self._wake.clear()
            try:
                if self._damage is not None:
                    raise self._damage
                self._finish_commit()
                if self._chores:
                    await self._run_chore()
                    continue
                self._begin_turn()
                self._begin_commit()
            except Exception as error:
                if not isinstance(error, QnsError):
                    log_exception("a turn failed")
                await self._failed(error)

    def _begin_turn(self) -> None:
        if self._queue.begin_turn(self.gateway, self.now()):
            self._wake.set()
        self.on_turn(self._queue.take_costs())

    async def _run_chore(self) -> None:
        """Runs a chore as soon as the commits that have begun are done; no turn begins before."""
        if self._queue.is_idle:
            await self._chores.run_next(self.gateway, self._thread)
            self._wake.set()
        else:
            self._begin_commit()

    def _begin_commit(self) -> None:
        """Starts to commit the turns that wait, unless a commit is under way."""
        transaction = self._queue.begin_commit()
        if transaction is None:
            return
        if transaction:
            started = perf_counter()
            wait_for_disk = self.gateway.store.prepare(transaction)
            self._commit = asyncio.get_running_loop().run_in_executor(
                self._thread, timed, wait_for_disk, started
            )
            self._commit.add_done_callback(lambda _: self._wake.set())
        else:
            self._conclude(self._queue.end_commit(self.gateway))

    def _finish_commit(self) -> None:
        """Releases the effects of the commit if it is done; raises if it has failed."""
        if self._commit is None or not self._commit.done():
            return
        commit, self._commit = self._commit, None
        self.on_commit(commit.result())
        group = self._queue.end_commit(self.gateway)
        try:
            if self._queue.needs_commit:
                self._begin_commit()  # the disk works while the effects are released
        finally:
            self._conclude(group)

    def _conclude(self, group: CommitGroup) -> None:
        self._full_disk.commit_succeeded(each.input for each in group.inputs)
        for inputs, effects, now in group.turns:
            for pending, output in zip(inputs, effects.answers, strict=True):
                resolve(pending, output)
            self._release(effects, now)

    def _release(self, effects: Effects, now: float) -> None:
        """Releases the effects of a committed turn."""
        for send in effects.sends:
            task = asyncio.create_task(self._send(send, self._generation))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        if self.waiters:
            self.waiters.notify(effects.outcomes.changed_queues())
        self._sleep_until(effects.wake_at)
        try:
            for observe in self.observers:
                observe(effects.outcomes, now)
        except Exception:  # a failing observer must not stop the peer
            log_exception("the records of a turn were not counted")

    async def _send(self, send: Send, generation: int) -> None:
        try:
            answer = await self.send_to_peer(send)
        except Exception:
            log_exception("a request to another peer failed", to=send.to)
            answer = "an unexpected error: see the log"
        if generation == self._generation and not self.is_stopping:
            self._put(PendingInput(Answered.of(send.number, answer), None))

    def _sleep_until(self, wake_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_at < inf:
            pause = min(max(wake_at - self.now(), _SHORTEST_SLEEP_S), _LONGEST_SLEEP_S)
            self._timer = asyncio.get_running_loop().call_later(pause, self._fall_due)

    def _fall_due(self) -> None:
        self._queue.is_due = True
        self._wake.set()

    # --- failures ---------------------------------------------------------------------------------

    async def _open_gateway(self) -> None:
        """Opens the store and releases the effects of the start."""
        now = self.now()
        loop = asyncio.get_running_loop()
        self._gateway = await loop.run_in_executor(self._thread, self.open, now)
        self._generation += 1
        self.refused_document = report_plan(self._gateway.document_plan)
        self._release(self._gateway.first, now)

    async def _failed(self, error: Exception) -> None:
        """Answers the inputs that are lost with the error; then opens the store again."""
        reason = error.problem if isinstance(error, QnsError) else "an unexpected error"
        self.commit_failures += 1
        self.trouble = self.last_failure = Trouble(reason, self.now())
        self._damage = None
        self._generation += 1
        self._sleep_until(inf)
        lost = self._queue.drop_begun()
        if self._commit is not None:  # the commit of earlier turns may still succeed
            await asyncio.wait((self._commit,))
            with suppress(Exception):
                self._finish_commit()
        lost = [*self._queue.drop_commit(), *lost]
        log_event(ERROR, "a turn was not committed", reason=reason, inputs=len(lost))
        for each in lost:
            resolve(each, error)
        if isinstance(error, StoreFull):
            self._full_disk.commit_failed(self.backoff)
        failures = 0
        while not self.is_stopping:
            self._refuse_queue()
            failures += 1
            await self._rest(self.backoff.pause_s(failures))
            try:
                await self._open_gateway()
            except Exception as again:
                if not isinstance(again, QnsError):
                    log_exception("the store could not be opened again")
                self.trouble = Trouble(str(again), self.trouble.since)
                log_event(ERROR, "the store could not be opened again", reason=str(again))
            else:
                self.trouble = None
                log_event(INFO, "the store is open again", epoch=self.status.epoch)
                return
        self._refuse_queue()

    def _refuse_queue(self) -> None:
        refusal = self._refusal()
        for pending in self._queue.drop_waiting():
            resolve(pending, refusal)

    async def _rest(self, pause_s: float) -> None:
        """Waits until the pause is over or the process stops."""
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
