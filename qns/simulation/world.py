"""A simulated world: gateways, network and clock, all driven from one queue and one seed.

The peers in it are the production ones. The same seed gives the same world, to the last message.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

from qns.cbr.index import DictionaryIndex
from qns.d2q.event_json import write_event_json
from qns.d2q.schema_xml import write_schema
from qns.edl.layer import Send
from qns.edl.messages import Envelope
from qns.errors import QnsError, StoreFull
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import Answer, Request
from qns.inputs import Answered, Input, Received
from qns.recovery import Settings
from qns.simulation.disks import MemoryDisk
from qns.simulation.network import Network
from qns.simulation.node import Backup, Disk, Killed, KillPoint, Node, Reply
from qns.tuning import Tuning
from qns.turn import Record

TUNING = Tuning(
    longest_pause_s=8.0,
    acknowledge_after_s=0.5,
    pull_after_s=1.0,
    resend_after_s=4.0,
    gossip_every_s=10.0,
    lease_s=15.0,
    bytes_per_call=2_000,
)
"""Shorter times and smaller calls than in production: a simulated minute holds many events."""

TIMEOUT_S = 2.0
_TURN_S = 0.002
"""What comes in within this time shares a turn, and a commit."""


@dataclass(slots=True, eq=False)
class World:
    seed: int
    federation: Federation
    tuning: Tuning = TUNING
    make_disk: Callable[[], Disk] = MemoryDisk
    now: float = 0.0
    chance: Random = field(init=False)
    network: Network = field(init=False)
    nodes: dict[str, Node] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    """Hosts that stay down whoever starts them."""
    history: list[Record] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)
    """How many of each kind of request were sent."""
    traffic: list[tuple[float, str, str, Any]] = field(default_factory=list)
    """Every request that was sent: when, from, to, body."""
    _queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _ticks: int = 0

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)  # noqa: S311
        self.network = Network(self.chance)
        xml = write_schema(self.federation.schema).decode()
        self.history.append({"t": 0.0, "do": "schema", "xml": xml})
        for name in self.federation.organisations:
            self.add(name)

    # --- hosts ------------------------------------------------------------------------------------

    def add(self, name: str, clock_ahead_s: float = 0.0) -> Node:
        settings = Settings(name, self.tuning, DictionaryIndex)
        node = Node(settings, self.make_disk(), write_federation(self.federation), clock_ahead_s)
        self.nodes[name] = node
        self.note(name, "join", joined=self.federation[name].joined)
        return node

    def start(self, *names: str) -> None:
        for name in names or self.nodes:
            node = self.nodes[name]
            if node.is_up or name in self.absent:
                continue
            try:
                first = node.start(self.now, f"{self.chance.getrandbits(64):016x}")
            except StoreFull:
                self.at(self.now + 1.0, lambda name=name: self.start(name))  # type: ignore[misc]
                continue
            self._spread(node, first.sends, first.records)
            self._wake(node, first.wake_at - node.clock_ahead_s)

    def kill(self, name: str, at: KillPoint | None = None) -> None:
        """At once, or in the host's next turn."""
        node = self.nodes[name]
        if at is None:
            node.die()
        else:
            node.kill_point = at

    def back_up(self, name: str) -> None:
        node = self.nodes[name]
        if node.gateway is not None:
            backup = Backup(self.now, node.disk.copy())
            try:
                node.gateway.renew_mark(f"{self.chance.getrandbits(64):016x}")
            except StoreFull:
                node.die()
            else:
                node.backups.append(backup)

    def put_back(self, name: str, backup: Backup) -> None:
        """The host comes back from an old backup."""
        node = self.nodes[name]
        node.die()
        node.disk.put_back(backup.copy)
        node.backups = [each for each in node.backups if each.at <= backup.at]
        self.note(name, "restore", since=backup.at)
        self.start(name)

    # --- time -------------------------------------------------------------------------------------

    def at(self, when: float, action: Callable[[], None]) -> None:
        self._ticks += 1
        heapq.heappush(self._queue, (max(when, self.now), self._ticks, action))

    def run_until(self, when: float) -> None:
        while self._queue and self._queue[0][0] <= when:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        self.now = max(self.now, when)

    def run_for(self, seconds: float) -> None:
        self.run_until(self.now + seconds)

    # --- requests of users, factories and operators -----------------------------------------------

    def ask(self, name: str, request: Request, reply: Reply | None = None) -> bool:
        """Hands a request to the host, if it is up; the answer comes with its turn."""
        node = self.nodes[name]
        if not node.is_up:
            return False
        self._arrive(node, request, reply)
        return True

    def do(self, name: str, request: Request) -> Answer:
        """The same, and waits for the answer."""
        answers: list[Answer | Envelope | QnsError | None] = []
        if not self.ask(name, request, answers.append):
            raise AssertionError(f"{name} is down")
        while not answers:
            self.run_until(self._queue[0][0])
        (answer,) = answers
        if isinstance(answer, QnsError):
            raise answer
        assert not isinstance(answer, Envelope | None)
        return answer

    def note(self, name: str, do: str, **fields: object) -> None:
        self.history.append({"t": self.now, "org": name, "do": do, **fields})

    # --- the machinery ----------------------------------------------------------------------------

    def _arrive(self, node: Node, message: Input, reply: Reply | None) -> None:
        node.inbox.append((message, reply))
        self._wake(node, self.now + _TURN_S)

    def _wake(self, node: Node, when: float) -> None:
        """The host has a turn at that time, or before."""
        when = max(when, self.now)
        if when == inf or (node.turn_at is not None and node.turn_at <= when):
            return
        node.turn_at, life = when, node.life
        self.at(when, lambda: self._turn(node, when, life))

    def _turn(self, node: Node, when: float, life: int) -> None:
        if node.life != life or node.turn_at != when or not node.is_up:
            return
        try:
            said = node.run(self.now)
        except Killed:
            return
        for reply, answer in said.replies:
            reply(answer)
        self._spread(node, said.sends, said.records)
        self._wake(node, max(said.wake_at, self.now + _TURN_S))

    def _spread(self, node: Node, sends: Sequence[Send], records: Sequence[Record]) -> None:
        for record in records:
            if record["do"] == "pub":
                record["event"] = write_event_json(record["event"], self.federation.schema)
            self.history.append({"t": self.now, "org": node.name, **record})
        for send in sends:
            kind = type(send.envelope.body).__name__
            self.messages[kind] += 1
            self.traffic.append((self.now, node.name, send.to, send.envelope.body))
            self._carry(node, send)

    def _carry(self, node: Node, send: Send) -> None:
        life, number, to = node.life, send.number, send.to
        answered = [False]

        def answer(envelope: Envelope | None) -> None:
            if not answered[0] and node.life == life and node.is_up:
                answered[0] = True
                self._arrive(node, Answered(number, envelope), None)

        def reply(result: Answer | Envelope | QnsError | None) -> None:
            if isinstance(result, Envelope):
                for delay in self.network.arrivals(to, node.name, is_request=False):
                    self.at(self.now + delay, lambda: answer(result))

        def arrive() -> None:
            other = self.nodes.get(to)
            if other is not None and other.is_up:
                self._arrive(other, Received(send.envelope), reply)

        for delay in self.network.arrivals(node.name, to, is_request=True):
            self.at(self.now + delay, arrive)
        self.at(self.now + TIMEOUT_S, lambda: answer(None))
