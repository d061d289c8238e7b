"""The types of the port Peer that its operations share: the parts of their requests and replies."""

from __future__ import annotations

from typing import NamedTuple

from qns.edl.messages import (
    Entry,
    Fence,
    Hello,
    Notification,
    Outcome,
    ReachabilityRow,
    Skip,
    Standing,
    SubChanged,
)
from qns.soap.shapes import Itself, Leaf, many, once, perhaps, record, reserved

_SIGNATURE = "Reserved and ignored. Leave it out."
SEAL = (
    "Required if the federation document has seal certificates of the producer: the SHA-256 of one "
    "of them, then the signature over the root of a Merkle tree (docs/seals.md)."
)
_CARRIER = (
    "A peer that may bring the entry besides the producer; an empty one stands for every member."
)
_PROOF = "Leads from this entry to the root that the seal signs (docs/seals.md)."


class Origin(NamedTuple):
    """The sender of an envelope, and the news that every envelope carries."""

    organisation: str
    document: int
    reachability: tuple[ReachabilityRow, ...]


REACHABILITY = record(
    "Reachability",
    "The organisations that one organisation cannot reach, as it reports itself.",
    ReachabilityRow,
    once("organisation", Leaf.TEXT, "The organisation that reports."),
    once("epoch", Leaf.NUMBER, "The epoch of its report; it grows with every start of its peer."),
    once("version", Leaf.NUMBER, "The version of its report; only the newest one is valid."),
    many("unreachable", Leaf.TEXT, "An organisation that it cannot reach."),
)

ORIGIN = record(
    "Origin",
    "The sender of a request or reply, with what every message carries.",
    Origin,
    once("organisation", Leaf.TEXT, "The sender's name in the federation document."),
    once("document", Leaf.NUMBER, "Version of the federation document in force at the sender."),
    many("reachability", REACHABILITY, "A report of an organisation, as the sender has it."),
    reserved("signature", _SIGNATURE),
)

FENCE = record(
    "Fence",
    "The first number of an epoch. Entries of older epochs are valid only below it.",
    Fence,
    once("epoch", Leaf.NUMBER, "The producer's epoch."),
    once("first", Leaf.NUMBER, "The first number of the epoch."),
)
FENCES = "A fence that the receiver may not have yet."

ENTRY = record(
    "Entry",
    "A place in the stream to one receiver, and the subtree of further receivers.",
    Entry,
    once("receiver", Leaf.TEXT, "The organisation that receives the stream."),
    once("joined", Leaf.NUMBER, "The receiver's incarnation."),
    once("epoch", Leaf.NUMBER, "The producer's epoch when it assigned the number."),
    once("number", Leaf.NUMBER, "The number in the stream; numbers are dense."),
    once("confirmed", Leaf.NUMBER, "The epoch up to which the receiver has all fences."),
    many("fence", FENCE, "A fence after that epoch."),
    many("child", Itself.ITSELF, "The entry of an organisation to which the receiver forwards."),
    reserved("signature", _SIGNATURE),
    many("carrier", Leaf.TEXT, _CARRIER),
    perhaps("proof", Leaf.BYTES, _PROOF, b""),
)

NOTIFICATION = record(
    "Notification",
    "One event on its way to one receiver, and through it to the receiver's subtree.",
    Notification,
    once("source", Leaf.TEXT, "The organisation that published the event."),
    once("joined", Leaf.NUMBER, "The producer's incarnation."),
    once("epoch", Leaf.NUMBER, "The producer's epoch at publication."),
    once("sequence", Leaf.NUMBER, "With joined and epoch, the place in publication order."),
    once("event", Leaf.TEXT, "The event's id, which is unique for its source."),
    once("xml", Leaf.BYTES, "The event as D2Q XML, exactly as its producer wrote it."),
    once("remaining", Leaf.SECONDS, "The seconds of availability that remain; INF: without end."),
    once("entry", ENTRY, "The receiver's entry, with its subtree."),
    many("path", Leaf.TEXT, "An organisation that has forwarded it; the first is the producer."),
    reserved("signature", _SIGNATURE),
    perhaps("seal", Leaf.BYTES, SEAL, b""),
)

SKIP = record(
    "Skip",
    "A producer's declaration that it cannot send these numbers any more.",
    Skip,
    once("source", Leaf.TEXT, "The producer."),
    once("joined", Leaf.NUMBER, "The producer's incarnation."),
    once("first", ENTRY, "The entry with the first number."),
    once("last", Leaf.NUMBER, "The last number."),
    once("reason", Leaf.PROSE, "Why the producer cannot send them."),
    perhaps("seal", Leaf.BYTES, SEAL, b""),
)

OUTCOME = record(
    "Outcome",
    "The result for one notification or skip.",
    Outcome,
    once("taken", Leaf.FLAG, "Whether the receiver has stored it durably."),
    perhaps("reason", Leaf.PROSE, "Why the receiver has not taken it.", ""),
    once("permanent", Leaf.FLAG, "True if the rejection is final: do not send it again."),
)

PRODUCER_INCARNATION = "The producer's incarnation, as the consumer has it."

STANDING = record(
    "Standing",
    "How far a consumer has come in a producer's stream.",
    Standing,
    once("joined", Leaf.NUMBER, PRODUCER_INCARNATION),
    once("own", Leaf.NUMBER, "The consumer's own incarnation."),
    once("consumerEpoch", Leaf.NUMBER, "The consumer's epoch."),
    once("epoch", Leaf.NUMBER, "The newest epoch of the producer whose fences it has."),
    once("last", Leaf.NUMBER, "The last number up to which it has taken everything."),
    many("fence", FENCE, "A fence that it has."),
)

# It is not called Hello because generators of client code use that name for the operation hello.
GREETING = record(
    "Greeting",
    "The sender's state for the receiver. Peers exchange it at a start and after a partition.",
    Hello,
    once("joined", Leaf.NUMBER, "The sender's incarnation."),
    once("epoch", Leaf.NUMBER, "The sender's epoch."),
    once("number", Leaf.NUMBER, "The last number in the sender's stream to the receiver."),
    many("fence", FENCE, FENCES),
    once("heldEpoch", Leaf.NUMBER, "The receiver's epoch when it sent the view that is held here."),
    once("heldVersion", Leaf.NUMBER, "The version of the receiver's view that is held here."),
    once("heldDigest", Leaf.TEXT, "Its digest, computed as for changeSub."),
    once("standing", STANDING, "How far the sender has come in the receiver's stream."),
    once("version", Leaf.NUMBER, "The version that the sender's view must have at the receiver."),
    once("digest", Leaf.TEXT, "Its digest, computed as for changeSub; empty if there is none."),
)

CHANGED = record(
    "Changed",
    "The view that is in force at the producer, and the end of its backlog.",
    SubChanged,
    once("version", Leaf.NUMBER, "The version in force."),
    once("epoch", Leaf.NUMBER, "The producer's epoch."),
    once("upto", Leaf.NUMBER, "The last number of the backlog."),
    once("joined", Leaf.NUMBER, "The producer's incarnation."),
    many("fence", FENCE, FENCES),
)
