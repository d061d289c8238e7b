"""A simulated host: one organisation's gateway on a simulated disk, which can be killed at will."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Any, NamedTuple, Protocol

from qns.edl.layer import Send
from qns.edl.messages import Envelope
from qns.errors import QnsError, StoreFull
from qns.gateway import Gateway
from qns.iil.requests import Answer
from qns.inputs import Effects, Input
from qns.ports import Store
from qns.recovery import Settings
from qns.store.lineage import MemoryLineage
from qns.turn import Record

Reply = Callable[[Answer | Envelope | QnsError | None], None]


class Killed(Exception):
    """The process died here."""


class KillPoint(Enum):
    BEFORE_COMMIT = "before its commit"
    AFTER_COMMIT = "after its commit, before a word left"
    HALFWAY = "after its commit, with half of its words said"


class Said(NamedTuple):
    """What left a host in one turn."""

    replies: list[tuple[Reply, Answer | Envelope | QnsError | None]]
    sends: list[Send]
    records: list[Record]
    wake_at: float


class Disk(Protocol):
    """A store that survives its host, and can be copied and put back."""

    def open(self) -> Store: ...

    def copy(self) -> object: ...

    def put_back(self, copy: Any) -> None: ...

    def fill(self, full: bool) -> None:
        """Whether the next commit finds it full."""

    def discard(self) -> None: ...


@dataclass(slots=True)
class Backup:
    at: float
    copy: object


@dataclass(slots=True, eq=False)
class Node:
    settings: Settings
    disk: Disk
    document: bytes
    """What the operator configured; the store's own counts once it is newer."""
    clock_ahead_s: float = 0.0
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    gateway: Gateway | None = None
    life: int = 0
    """Counts starts and deaths: what was meant for an earlier life is lost."""
    inbox: list[tuple[Input, Reply | None]] = field(default_factory=list)
    turn_at: float | None = None
    kill_point: KillPoint | None = None
    full_until: float = 0.0
    backups: list[Backup] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.settings.organisation

    @property
    def is_up(self) -> bool:
        return self.gateway is not None

    def start(self, now: float, nonce: str) -> Effects:
        self.life += 1
        store = self.disk.open()
        self.disk.fill(now < self.full_until)
        self.gateway = None
        gateway = Gateway.open(
            self.settings,
            store,
            self.lineage,
            document=self.document,
            nonce=nonce,
            now=now + self.clock_ahead_s,
        )
        self.gateway = gateway
        return gateway.first

    def die(self) -> None:
        self.life += 1
        self.gateway = None
        self.inbox.clear()
        self.turn_at = None
        self.kill_point = None

    def run(self, now: float) -> Said:
        """One turn over everything in the inbox; raises Killed if the process died in it."""
        assert self.gateway is not None
        batch, self.inbox = self.inbox, []
        kill_point, self.kill_point = self.kill_point, None
        self.turn_at = None
        self.disk.fill(kill_point is KillPoint.BEFORE_COMMIT or now < self.full_until)
        try:
            effects = self.gateway.run([each for each, _ in batch], now + self.clock_ahead_s)
        except StoreFull as error:
            self.die()
            raise Killed from error
        replies = [
            (reply, answer)
            for (_, reply), answer in zip(batch, effects.answers, strict=True)
            if reply is not None
        ]
        if kill_point is None:
            wake_at = effects.wake_at - self.clock_ahead_s
            return Said(replies, effects.sends, effects.records, wake_at)
        self.die()
        if kill_point is KillPoint.HALFWAY:
            return Said(replies[::2], effects.sends[::2], effects.records, inf)
        return Said([], [], effects.records, inf)
