"""Dialogue: what requests and replies of a peer have in common.

Every envelope carries the reachability of organisations and the version of the federation document.
A hello is a request and a reply at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qns.edl.consumer import Consumer
from qns.edl.forwarder import Forwarder
from qns.edl.link import Link
from qns.edl.messages import Envelope, Hello, ReachabilityRow, Reply, Request
from qns.edl.producer import Producer
from qns.edl.reachability import Reachability
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class Dialogue:
    me: str
    reachability: Reachability
    producer: Producer
    consumer: Consumer
    forwarder: Forwarder
    document_xml: bytes
    """The federation document in force, byte for byte."""
    is_closed: bool = False
    """True if the document has expired and its grace is over: until there is a fresh one, nothing
    but documents is exchanged."""
    postponed_document: int = 0
    """A version of the document that waits until everything that is owed is delivered."""

    def envelope(self, to: str, body: Request | Reply, *, is_reply: bool = False) -> Envelope:
        """Returns the message with what every envelope to the receiver carries besides it."""
        news = self.reachability.news_for(to, is_reply=is_reply)
        return Envelope(self.me, self.consumer.federation.version, news, body)

    def learn_from(
        self, turn: Turn, sender: str, document: int, reachability: Iterable[ReachabilityRow]
    ) -> None:
        """Takes over what every envelope carries besides its message."""
        federation = self.consumer.federation
        self.reachability.update(sender, reachability, federation.organisations)
        link = self.forwarder.link(sender)
        link.received(turn.now)
        link.claimed_document = document
        known = max(federation.version, link.useless_document)
        if known < document != self.postponed_document:
            link.wants_document = True

    def may_offer_document(self, link: Link) -> None:
        """Makes an offer of the document due if the other peer still has an older one.

        Usually the other peer fetches the document after its first fault. It cannot do so if its
        own document does not name this peer, or names it at another endpoint.
        """
        version, claimed = self.consumer.federation.version, link.claimed_document
        if link.other in self.consumer.federation and link.refused_offer != (version, claimed):
            link.wants_offer |= link.failures > 0 and claimed < version

    def reject_document(self, sender: str, version: int, reason: str) -> bool:
        """Notes that the document that the sender gave is no use here; True if that is new.

        A document that waits until everything that is owed is delivered is not rejected.
        """
        if max(self.consumer.federation.version, self.postponed_document) >= version:
            return False
        link = self.forwarder.link(sender)
        before = link.useless_document, link.useless_reason
        link.useless_document, link.useless_reason = version, reason
        return before != (version, reason)

    def handle_hello(self, turn: Turn, sender: str, hello: Hello) -> None:
        self.consumer.handle_hello(turn, sender, hello)
        self.producer.handle_hello(turn, sender, hello)

    def hello(self, other: str) -> Hello:
        """Returns the hello for the other peer, with the state of both streams and both views."""
        self.reachability.repeat_own(other)
        stream = self.producer.streams.get(other)
        view = self.consumer.merger.table.get(other)
        return Hello(
            self.producer.incarnation,
            self.producer.epoch,
            stream.number if stream else 0,
            tuple(stream.fences) if stream else (),
            max(stream.view_epoch, 0) if stream else 0,
            stream.version if stream else 0,
            self.producer.table.digest(other),
            self.consumer.standing_for_hello(other),
            view.version if view else 0,
            str(view.digest) if view else "",
        )
