"""A simulated host: one organisation's gateway on a simulated disk, which can be killed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from math import inf
from typing import Any, NamedTuple, Protocol

from qns.edl.messages import Envelope
from qns.edl.requests import Send
from qns.errors import QnsError, StoreFull
from qns.iil.requests import Answer
from qns.peer.gateway import Gateway
from qns.peer.inputs import Effects, Input
from qns.peer.lineage import NOTE_EVERY_S
from qns.peer.ports import Mark, Store
from qns.peer.recovery import Settings
from qns.peer.steady_time import SteadyTime
from qns.peer.turn import Record, Transaction
from qns.peer.turn_queue import PendingInput, TurnQueue
from qns.simulation.recovery import (
    InterruptedLineage,
    InterruptedStore,
    Interruption,
    Killed,
    records_of,
)
from qns.store.lineage import MemoryLineage

Reply = Callable[[Answer | Envelope | Exception | None], None]


class KillPoint(Enum):
    """The place in a turn at which a process dies."""

    BEFORE_COMMIT = "before its commit"
    AFTER_COMMIT = "after its commit, before any message is sent"
    HALFWAY = "after its commit, with half of its messages sent"


_FAILED = (KillPoint.BEFORE_COMMIT, KillPoint.AFTER_COMMIT)


class Interrupted(Exception):
    """Raised when a host dies in its recovery."""

    def __init__(self, records: list[Record]) -> None:
        super().__init__()
        self.records = records
        """What the recovery had committed by then."""


class Output(NamedTuple):
    """The replies, messages and records that left a host with one commit."""

    replies: list[tuple[Reply, Answer | Envelope | QnsError | None]]
    sends: list[Send]
    records: list[Record]
    wake_at: float = inf
    """When the host needs a turn although nothing arrives, by the time of the world."""


class Disk(Protocol):
    """A store that survives its host and can be copied and restored."""

    def open(self) -> Store: ...

    def copy(self) -> object: ...

    def put_back(self, copy: Any) -> None: ...

    def fill(self, full: bool) -> None:
        """Makes the next commit fail as on a full disk, or not."""

    def take_survived(self) -> list[Transaction]:
        """Returns what commits that had failed have written all the same, once."""

    def heal(self) -> None:
        """Ends the faults of this disk."""

    def discard(self) -> None: ...


@dataclass(slots=True)
class Backup:
    at: float
    copy: object
    marks: tuple[Mark, ...] | None = None
    """The marks outside the store, if the whole host was copied: nothing then shows a restore."""


@dataclass(slots=True, eq=False)
class Node:
    """A host with its disk, clock and backups, and its gateway while it is up."""

    settings: Settings
    disk: Disk
    document: bytes
    """The federation document that the operator configured; a newer one in the store overrides
    it."""
    wall_ahead_s: float = 0.0
    """By how much the clock of the host is ahead."""
    steady: SteadyTime = field(default_factory=SteadyTime)
    """The time that the process makes of this clock, as a real one does."""
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    gateway: Gateway | None = None
    generation: int = 0
    """Counts starts and deaths. Timers and answers of an earlier generation are ignored."""
    queue: TurnQueue = field(default_factory=TurnQueue)
    turn_at: float | None = None
    due_at: float = inf
    """When the host needs a turn although nothing arrives."""
    kill_point: KillPoint | None = None
    full_until: float = 0.0
    commit_s: float = 0.0
    """How long a commit takes."""
    turn_s: float = 0.0
    """How long inputs wait for a turn of a busy host."""
    commits: int = 0
    fail_every: int = 0
    """Each commit whose number is a multiple of this fails; 0 if none does."""
    interruptions: list[int] = field(default_factory=list)
    """The steps at which the next recoveries are interrupted."""
    survived: list[Record] = field(default_factory=list)
    """The records of commits that had failed and were found on the disk."""
    lied_to_until: float = -inf
    """Until when the turns of this peer are measured, because a liar has called it."""
    noted_at: float = 0.0
    """When the number of committed turns was last noted outside the store."""
    backups: list[Backup] = field(default_factory=list)
    snapshots: list[Backup] = field(default_factory=list)
    checkpoints: list[Backup] = field(default_factory=list)
    """What is left of the disk if the write-ahead log is lost."""

    @property
    def copies(self) -> tuple[list[Backup], ...]:
        """The lists of all earlier states of the disk that may be put back."""
        return self.backups, self.snapshots, self.checkpoints

    @property
    def name(self) -> str:
        return self.settings.organisation

    @property
    def is_up(self) -> bool:
        return self.gateway is not None

    def clock(self, now: float) -> float:
        """Returns the time that the process reads at a time of the world."""
        return self.steady.at(now + self.wall_ahead_s, now)

    def wake_at(self, now: float, due: float) -> float:
        """Returns when the process wakes up, by the time of the world, if something is due by its
        own time."""
        return now + (due - self.clock(now))

    def jump(self, now: float, seconds: float) -> None:
        """Sets the clock of the host; the process reads it at once."""
        self.clock(now)
        self.wall_ahead_s += seconds
        self.clock(now)

    def start(self, now: float, nonce: str) -> Effects:
        """Opens the gateway on the disk's store and returns its first effects.

        Raises Interrupted if the host dies in its recovery.
        """
        self.generation += 1
        self.steady = SteadyTime()
        store = self.disk.open()
        self.survived += [each for found in self.disk.take_survived() for each in records_of(found)]
        self.disk.fill(now < self.full_until)
        self.gateway = None
        open_gateway = partial(
            Gateway.open, document=self.document, nonce=nonce, now=self.clock(now)
        )
        if self.interruptions:
            interruption = Interruption(self.interruptions.pop(0))
            recording = replace(self.settings, recording=True)
            with suppress(Killed):
                open_gateway(
                    recording,
                    InterruptedStore(store, interruption),
                    InterruptedLineage(self.lineage, interruption),
                )
            raise Interrupted(interruption.records)
        self.gateway = open_gateway(self.settings, store, self.lineage)
        return self.gateway.first

    def take_survived(self) -> list[Record]:
        survived, self.survived = self.survived, []
        return survived

    def heal(self) -> None:
        """Ends the faults of this host; its clock stays as it is."""
        self.full_until = self.commit_s = self.turn_s = 0.0
        self.fail_every = 0
        self.kill_point = None
        self.interruptions.clear()
        self.disk.heal()

    def die(self) -> None:
        """Stops the process; only the disk and what is outside the host survive."""
        self.generation += 1
        self.gateway = None
        self.queue = TurnQueue()
        self.turn_at = None
        self.due_at = inf
        self.kill_point = None

    # --- copies -----------------------------------------------------------------------------------

    def back_up(self, now: float, nonce: str) -> None:
        """Copies the disk of a host that is up and idle, and renews its mark."""
        assert self.gateway is not None
        backup = Backup(now, self.disk.copy())
        self.gateway.renew_mark(nonce)
        self.backups.append(backup)

    def snapshot(self, now: float) -> Backup:
        """Copies the disk and the marks outside the store."""
        copy = Backup(now, self.disk.copy(), self.lineage.read())
        self.snapshots.append(copy)
        return copy

    def checkpoint(self, now: float) -> None:
        """Keeps what the disk has without the commits from now on, if the host is up."""
        if self.is_up:
            self.checkpoints[:] = [Backup(now, self.disk.copy())]

    # --- turns ------------------------------------------------------------------------------------

    def put(self, input: Input, reply: Reply | None) -> None:
        self.queue.put(PendingInput(input, reply))

    def begin_turn(self, now: float) -> Transaction | None:
        """Runs one turn in memory, as the driver does; returns what to commit now, if anything."""
        assert self.gateway is not None
        self.turn_at = None
        if now >= self.due_at:
            self.queue.is_due = True
            self.due_at = inf
        self.queue.begin_turn(self.gateway, self.clock(now))
        return self.queue.begin_commit()

    def commit(self, now: float, transaction: Transaction) -> Output:
        """Ends a commit and returns what may leave the host then; raises Killed or StoreFailed if
        it fails."""
        assert self.gateway is not None
        kill_point, self.kill_point = self.kill_point, None
        self.commits += 1
        if self.fail_every and self.commits % self.fail_every == 0:  # written or not, it fails
            kill_point = _FAILED[self.commits // self.fail_every % 2]
        self.disk.fill(kill_point is KillPoint.BEFORE_COMMIT or now < self.full_until)
        try:
            if transaction:
                self.gateway.store.commit(transaction)
        except StoreFull as error:
            self.die()
            raise Killed from error
        output = Output([], [], [])
        for inputs, effects, _ in self.queue.end_commit(self.gateway).turns:
            answered = zip(inputs, effects.answers, strict=True)
            output.replies.extend((to.on_answer, answer) for to, answer in answered if to.on_answer)
            output.sends.extend(effects.sends)
            output.records.extend(effects.records)
            output = output._replace(wake_at=self.wake_at(now, effects.wake_at))
        if self.gateway.has_progress and now - self.noted_at >= NOTE_EVERY_S:
            self.noted_at = now
            self.gateway.note_progress()
        if kill_point is None:
            return output
        self.die()
        if kill_point is KillPoint.HALFWAY:
            return Output(output.replies[::2], output.sends[::2], output.records)
        return Output([], [], output.records)
