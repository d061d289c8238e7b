"""A simulated world: gateways, network and clock, driven by one queue and one seed.

The peers in it are the production ones. The same seed gives the same world, down to each message.
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
from qns.edl.messages import Envelope, Notify
from qns.edl.requests import Send
from qns.edl.view_reader import SLICE_CHARACTERS
from qns.errors import StoreFailed, StoreFull
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import Answer, Request
from qns.peer.inputs import Answered, Input, Received
from qns.peer.recovery import Settings
from qns.peer.tuning import Tuning
from qns.peer.turn import Record, Transaction
from qns.simulation.disks import MemoryDisk
from qns.simulation.ledger import Ledger
from qns.simulation.network import Network
from qns.simulation.node import Backup, Disk, Interrupted, KillPoint, Node, Reply
from qns.simulation.recovery import Killed
from qns.simulation.sent import Sent, add_sent
from qns.simulation.signers import Signers
from qns.simulation.stub_seals import read_stub_certificate, stub_signer
from qns.simulation.turn_cost import counted
from qns.simulation.twin import Twin
from qns.store.faults import RESTORE
from qns.store.losing_disk import LosingDisk

TUNING = Tuning(
    longest_pause_s=8.0,
    acknowledge_after_s=0.5,
    pull_after_s=1.0,
    resend_after_s=4.0,
    gossip_every_s=10.0,
    compare_within_s=0.0,
    lease_s=15.0,
    bytes_per_call=2_000,
)
"""Shorter times and smaller calls than in production: a simulated minute has many events."""

TIMEOUT_S = 2.0
_TURN_S = 0.002
"""Inputs that arrive within this time share a turn and its commit."""


@dataclass(slots=True, eq=False)
class World:
    """The hosts of a federation with their network, and the history of what happens."""

    seed: int
    federation: Federation
    tuning: Tuning = TUNING
    make_disk: Callable[[], Disk] = MemoryDisk
    recording: bool = False
    """True if the stores have the records too, by which a failed commit is found to be written."""
    slice_characters: int = SLICE_CHARACTERS
    exact_merging: bool = False
    """True if the peers merge beyond containment, as those of every fourth scenario do."""
    epoch_scatter: int = 1
    tamper: Callable[[str, str, Envelope], Envelope] = lambda _sender, _to, envelope: envelope
    """Alters a request on its way, as a forger would: (sender, receiver, request) -> request."""
    now: float = 0.0
    signers: Signers | None = None
    """Who signs the documents; None if they are not signed."""
    chance: Random = field(init=False)
    network: Network = field(init=False)
    nodes: dict[str, Node] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    """Hosts that stay down: `start` ignores them."""
    liars: frozenset[str] = frozenset()
    """Members that also send what no correct peer sends: nothing is expected of them."""
    twins: dict[str, Twin] = field(default_factory=dict)
    """Organisation -> the copy of its host that runs beside it."""
    on_damage: Callable[[str], None] = lambda _: None
    """Is called with an organisation whose store must be restored."""
    silent_until: dict[str, float] = field(default_factory=dict)
    """Liar -> until when it passes no event on."""
    lied_to: list[tuple[float, str, int]] = field(default_factory=list)
    """Time, organisation and executed lines of each turn that handled a lie."""
    history: list[Record] = field(default_factory=list)
    ledger: Ledger = field(init=False)
    """What users and this world did, without the records of the peers."""
    messages: Counter[str] = field(default_factory=Counter)
    """Kind of request -> how many were sent."""
    traffic: list[tuple[float, str, str, Any]] = field(default_factory=list)
    """Time, sender, receiver and body of each request that was sent."""
    sent: list[Sent] = field(default_factory=list)
    """Every message with events."""
    _queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _ticks: int = 0

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)  # noqa: S311
        self.network = Network(self.chance)
        self.ledger = Ledger(self.tuning)
        self.history.append({"t": 0.0, "do": "schema"})
        self.change_document(self.federation)
        for name in self.federation.organisations:
            self.add(name)

    def change_document(self, federation: Federation) -> None:
        """Notes the newest document. The judge reads the history with its schema."""
        if self.signers is not None:
            federation = self.signers.sign(federation)
        self.federation = federation
        self.history[0]["xml"] = write_schema(federation.schema).decode()
        self.ledger.document_changed(self.now, federation)

    # --- hosts ------------------------------------------------------------------------------------

    def add(self, name: str, clock_ahead_s: float = 0.0) -> Node:
        """Adds the host of a new member, which is not started yet."""
        settings = Settings(
            name,
            self.tuning,
            DictionaryIndex,
            recording=self.recording,
            slice_characters=self.slice_characters,
            exact_merging=self.exact_merging,
            anchor=None if self.signers is None else self.signers.anchor(self.federation),
            epoch_scatter=self.epoch_scatter,
            signer=stub_signer(self.federation[name]),
            read_certificate=read_stub_certificate,
        )
        node = Node(settings, self.make_disk(), write_federation(self.federation), clock_ahead_s)
        self.nodes[name] = node
        self.join(name)
        return node

    def join(self, name: str) -> None:
        """Notes that an organisation is a member from now on."""
        self.note(name, "join", joined=self.federation[name].incarnation)
        self.ledger.moves[name].append((self.now, "join"))

    def leave(self, name: str) -> None:
        """Notes that an organisation is removed, and removes it from the newest document."""
        self.note(name, "leave", joined=self.federation[name].incarnation)
        self.ledger.moves[name].append((self.now, "leave"))
        self.change_document(self.federation.without(name))

    def start(self, *names: str) -> None:
        """Starts these hosts, or all, if they are down and not absent."""
        for name in names or self.nodes:
            node = self.nodes[name]
            if node.is_up or name in self.absent:
                continue
            self.ledger.process_started(self.now, name, node.wall_ahead_s)
            try:
                first = node.start(self.now, f"{self.chance.getrandbits(64):016x}")
            except (StoreFull, StoreFailed, Interrupted) as error:
                records = error.records if isinstance(error, Interrupted) else []
                self._spread(node, (), [*node.take_survived(), *records])
                self._reopen(node, error)
                continue
            self._spread(node, first.sends, [*node.take_survived(), *first.records])
            self._sleep(node, node.wake_at(self.now, first.wake_at))
            self._keep_up(node, node.generation)

    def _reopen(self, node: Node, error: Exception) -> None:
        """Starts a host again soon, as the driver of a real peer opens its store again."""
        self.at(self.now + 1.0, lambda: self.start(node.name))
        if isinstance(error, StoreFailed):
            node.die()
            if error.remedy == RESTORE:
                self.on_damage(node.name)

    def look_after(self, node: Node, work: Callable[[], None]) -> None:
        """Does something with the store of a host, and stops the host if the store fails."""
        try:
            work()
        except StoreFull:
            node.die()
        except StoreFailed as error:
            self._reopen(node, error)

    def _keep_up(self, node: Node, generation: int) -> None:
        """Looks after the store every second while the process runs."""
        if node.generation == generation and isinstance(node.disk, LosingDisk):
            self.look_after(node, node.disk.upkeep)
            self.at(self.now + 1.0, lambda: self._keep_up(node, generation))

    def kill(self, name: str, at: KillPoint | None = None) -> None:
        """Kills the host at once, or at a point of its next turn."""
        if at is None:
            self.nodes[name].die()
        else:
            self.nodes[name].kill_point = at

    def back_up(self, name: str) -> None:
        """Copies the disk of a host that is up and renews its mark."""
        node = self.nodes[name]
        if node.is_up and node.queue.is_idle:
            nonce = f"{self.chance.getrandbits(64):016x}"
            self.look_after(node, lambda: node.back_up(self.now, nonce))

    def snapshot(self, name: str) -> Backup:
        """Copies a whole host: its disk and the marks outside its store."""
        return self.nodes[name].snapshot(self.now)

    def put_back(self, name: str, backup: Backup) -> None:
        """Puts an earlier state of the disk back and starts the host."""
        node = self.nodes[name]
        node.die()
        node.disk.put_back(backup.copy)
        if backup.marks is not None:
            node.lineage.write(backup.marks)
        for copies in node.copies:
            copies[:] = [each for each in copies if each.at <= backup.at]
        self.note(name, "restore", since=backup.at)
        self.ledger.restored(self.now, name, backup.at)
        self.start(name)

    def start_twin(self, name: str) -> bool:
        """Starts a copy of a host that is up beside it; returns False if that is not possible."""
        node = self.nodes[name]
        if not node.is_up or not node.queue.is_idle or name in self.twins:
            return False
        twin = Twin(Node(node.settings, self.make_disk(), node.document), self.now)
        twin.node.wall_ahead_s = node.wall_ahead_s
        twin.node.disk.put_back(node.disk.copy())
        twin.node.lineage.write(node.lineage.read())
        self.twins[name] = twin
        first = twin.node.start(self.now, f"{self.chance.getrandbits(64):016x}")
        self._spread(twin.node, first.sends, first.records)
        self._sleep(twin.node, twin.node.wake_at(self.now, first.wake_at))
        return True

    def set_clock(self, name: str, jump_s: float) -> None:
        """Makes the clock of a host jump."""
        self.nodes[name].jump(self.now, jump_s)
        self.ledger.clock_set(self.now, name, self.nodes[name].wall_ahead_s)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Schedules an action."""
        self._ticks += 1
        heapq.heappush(self._queue, (max(when, self.now), self._ticks, action))

    def run_until(self, when: float) -> None:
        """Performs all actions that are scheduled up to this time."""
        while self._queue and self._queue[0][0] <= when:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        self.now = max(self.now, when)

    def run_for(self, seconds: float) -> None:
        self.run_until(self.now + seconds)

    # --- requests of users, factories and operators -----------------------------------------------

    def ask(self, name: str, request: Request, reply: Reply | None = None) -> bool:
        """Hands a request to the host; returns False if it is down. `reply` gets the answer."""
        node = self.nodes[name]
        if not node.is_up:
            return False
        self.arrive(node, request, reply)
        return True

    def do(self, name: str, request: Request) -> Answer:
        """Hands a request to the host and runs the world until the answer comes; returns it."""
        answers: list[Answer | Envelope | Exception | None] = []
        if not self.ask(name, request, answers.append):
            raise AssertionError(f"{name} is down")
        while not answers:
            self.run_until(self._queue[0][0])
        (answer,) = answers
        if isinstance(answer, Exception):
            raise answer
        assert not isinstance(answer, Envelope | None)
        return answer

    def note(self, name: str, do: str, **fields: object) -> None:
        """Appends a record of this time to the history."""
        self.history.append({"t": self.now, "org": name, "do": do, **fields})

    # --- the machinery ----------------------------------------------------------------------------

    def arrive(self, node: Node, message: Input, reply: Reply | None) -> None:
        """Hands an input to a host."""
        node.put(message, reply)
        self._wake(node, self.now + _TURN_S)

    def _wake(self, node: Node, when: float) -> None:
        """Schedules a turn of the host, unless it has one at that time or before."""
        when = max(when, self.now + node.turn_s)
        if when == inf or (node.turn_at is not None and node.turn_at <= when):
            return
        node.turn_at, generation = when, node.generation
        self.at(when, lambda: self._turn(node, when, generation))

    def _sleep(self, node: Node, until: float) -> None:
        """Schedules the turn that a host needs although nothing arrives."""
        node.due_at = max(until, self.now + _TURN_S)
        self._wake(node, node.due_at)

    def _turn(self, node: Node, when: float, generation: int) -> None:
        if node.generation == generation and node.turn_at == when and node.is_up:
            try:
                if self.now > node.lied_to_until:
                    transaction = node.begin_turn(self.now)
                else:
                    transaction, lines = counted(lambda: node.begin_turn(self.now))
                    self.lied_to.append((self.now, node.name, lines))
            except StoreFailed as error:
                self._reopen(node, error)
            else:
                self._begin_commit(node, transaction)

    def _begin_commit(self, node: Node, transaction: Transaction | None) -> None:
        """Commits at once, or after the time that the disk of the host takes."""
        if transaction is None:
            return
        if not node.commit_s:
            self._end_commit(node, transaction)
            return
        generation = node.generation

        def finish() -> None:
            if node.generation == generation:
                self._end_commit(node, transaction)

        self.at(self.now + node.commit_s, finish)

    def _end_commit(self, node: Node, transaction: Transaction) -> None:
        generation = node.generation
        try:
            output = node.commit(self.now, transaction)
        except Killed:
            return
        except StoreFailed as error:
            self._reopen(node, error)
            return
        for reply, answer in output.replies:
            reply(answer)
        self._spread(node, output.sends, output.records)
        if node.generation == generation:
            self._sleep(node, output.wake_at)
            if node.queue:
                self._wake(node, self.now + _TURN_S)
            self._begin_commit(node, node.queue.begin_commit())

    def _spread(self, node: Node, sends: Sequence[Send], records: Sequence[Record]) -> None:
        """Appends a host's records to the history and sends its messages."""
        twin = self.twins.get(node.name)
        if twin is not None and twin.node is node:
            twin.note(self.now, records, len(sends))
            records = ()
        for record in records:
            if record["do"] == "pub" and not isinstance(record["event"], dict):
                record["event"] = write_event_json(record["event"], self.federation.schema)
            self.history.append({"t": self.now, "org": node.name, **record})
        for send in sends:
            kind = type(send.envelope.body).__name__
            self.messages[kind] += 1
            self.traffic.append((self.now, node.name, send.to, send.envelope.body))
            add_sent(self.sent, self.now, send.to, send.envelope)
            self._carry(node, send)

    def _carry(self, node: Node, send: Send) -> None:
        """Schedules the arrivals of a request, its answer and its timeout."""
        generation, number, to = node.generation, send.number, send.to
        answered = [False]

        def answer(envelope: Envelope | None) -> None:
            if not answered[0] and node.generation == generation and node.is_up:
                answered[0] = True
                self.arrive(node, Answered(number, envelope), None)

        def reply(result: Answer | Envelope | Exception | None) -> None:
            if isinstance(result, Envelope):
                add_sent(self.sent, self.now, node.name, result)
                for delay in self.network.arrivals(to, node.name, is_request=False):
                    self.at(self.now + delay, lambda: answer(result))

        def arrive() -> None:
            other = self.nodes.get(to)
            if other is not None and other.is_up:
                envelope = self.tamper(node.name, to, send.envelope)
                self.arrive(other, Received(envelope), reply)

        delays = self.network.arrivals(node.name, to, is_request=True)
        if self.silent_until.get(node.name, 0.0) > self.now:
            delays = [] if isinstance(send.envelope.body, Notify) else delays
        for delay in delays:
            self.at(self.now + delay, arrive)
        self.ledger.duplicates += [self.now + delay for delay in delays[1:]]
        self.at(self.now + TIMEOUT_S, lambda: answer(None))
