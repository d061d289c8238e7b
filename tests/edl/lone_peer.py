"""One peer whose partners are played by the test: it answers every request by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from qns.cbr.index import DictionaryIndex
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Done,
    Envelope,
    Hello,
    Notified,
    Notify,
    Outcome,
    ReachabilityRow,
    Reply,
    Request,
    Standing,
    SubChanged,
)
from qns.edl.requests import Send
from qns.edl.view_reader import SLICE_CHARACTERS
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import InstallDocument
from qns.peer.gateway import Gateway
from qns.peer.inputs import Answered, Effects, Input, Received
from qns.peer.peer import Peer
from qns.peer.recovery import Settings
from qns.simulation.world import TUNING
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore

TAKEN = Outcome(True)


@dataclass(eq=False)
class LonePeer:
    name: str
    document: Federation
    tuning: dict[str, Any] = field(default_factory=dict)
    slice_characters: int = SLICE_CHARACTERS
    now: float = 0.0
    store: MemoryStore = field(default_factory=MemoryStore)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    under_way: dict[str, Send] = field(default_factory=dict)
    """Receiver -> the request that is under way to it."""
    last: Effects = field(init=False)
    """The effects of the last turn."""
    gateway: Gateway = field(init=False)
    starts: int = 0

    def __post_init__(self) -> None:
        self.start()

    @property
    def peer(self) -> Peer:
        return self.gateway.peer

    @property
    def custody(self) -> dict[str, tuple[str, ...]]:
        """Receiver -> the receivers below it, for everything that the peer has in custody."""
        return {
            each.entry.receiver: tuple(child.receiver for child in each.entry.children)
            for each in self.peer.edl.forwarder.custody.parcels.values()
        }

    def start(self) -> None:
        """Starts the peer, or starts it again after a crash."""
        self.starts += 1
        self.under_way.clear()
        self.gateway = Gateway.open(
            Settings(
                self.name,
                replace(TUNING, **self.tuning),
                DictionaryIndex,
                slice_characters=self.slice_characters,
            ),
            self.store,
            self.lineage,
            document=write_federation(self.document),
            nonce=f"start{self.starts}",
            now=self.now,
        )
        self._note(self.gateway.first)

    def do(self, *inputs: Input) -> list[Any]:
        """Runs one turn; returns the answers."""
        effects = self.gateway.run(inputs, self.now)
        self._note(effects)
        return effects.answers

    def wait(self, seconds: float) -> None:
        """Lets time pass, with one turn at its end."""
        self.now += seconds
        self.do()

    def receive(self, sender: str, body: Request | Reply) -> Any:
        """Gives the peer a request of another one; returns the body of its reply."""
        envelope = Envelope(sender, self.peer.federation.version, (), body)
        (reply,) = self.do(Received(envelope))
        assert isinstance(reply, Envelope)
        return reply.body

    def request(self, to: str) -> Any:
        """Returns the body of the request that is under way, or None."""
        return self.under_way[to].envelope.body if to in self.under_way else None

    def answer(
        self, to: str, body: Request | Reply | None, unreachable: tuple[str, ...] = ()
    ) -> None:
        """Answers the request that is under way; with None, there is no answer.

        `unreachable` has the organisations that the answering peer reports as unreachable.
        """
        send = self.under_way.pop(to)
        version = self.peer.federation.version
        rows = (ReachabilityRow(to, 1, 1, unreachable),) if unreachable else ()
        envelope = None if body is None else Envelope(to, version, rows, body)
        self.do(Answered(send.number, envelope))

    def settle(self) -> None:
        """Answers every request as a peer does that has and takes everything."""
        while self.under_way:
            to = next(iter(self.under_way))
            self.answer(to, self.polite_reply(to))

    def polite_reply(self, to: str) -> Reply:
        request = self.request(to)
        if isinstance(request, Hello):
            return self.hello_of(to, held=(request.version, request.digest))
        if isinstance(request, ChangeSub):
            return SubChanged(request.version, 1, 0, self.document[to].incarnation, ())
        if isinstance(request, Notify):
            return Notified(tuple(TAKEN for _ in request.items), None)
        return Done()

    def hello_of(
        self,
        other: str,
        *,
        epoch: int = 1,
        held: tuple[int, str] = (0, str(Digest())),
        held_epoch: int | None = None,
        standing: Standing | None = None,
        version: int = 0,
        digest: str = str(Digest()),
        number: int = 0,
    ) -> Hello:
        """Returns a hello of another peer, by default of one that has sent and received nothing."""
        epoch_of_view = self.peer.identity.epoch if held_epoch is None else held_epoch
        return Hello(
            self.document[other].incarnation,
            epoch,
            number,
            (),
            epoch_of_view,
            *held,
            standing or self.standing_of(other, 0, epoch=0),
            version,
            digest,
        )

    def standing_of(
        self, consumer: str, last: int, *, consumer_epoch: int = 1, epoch: int | None = None
    ) -> Standing:
        """Returns how far another peer has come in the stream of this one."""
        known = self.peer.identity.epoch if epoch is None else epoch
        mine = self.peer.identity.incarnation
        return Standing(mine, self.document[consumer].incarnation, consumer_epoch, known, last)

    def acknowledge(self, consumer: str, last: int, *, consumer_epoch: int = 1) -> None:
        standing = self.standing_of(consumer, last, consumer_epoch=consumer_epoch)
        self.receive(consumer, Acknowledge(standing))

    def install(self, document: Federation) -> list[Any]:
        """Installs a newer document; returns the answer."""
        self.document = document
        return self.do(InstallDocument(write_federation(document)))

    def _note(self, effects: Effects) -> None:
        self.last = effects
        for send in effects.sends:
            assert send.to not in self.under_way
            self.under_way[send.to] = send
