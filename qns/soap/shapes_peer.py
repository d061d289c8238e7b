"""The port Peer: what peers say to each other, as tables (thesis 5.4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Document,
    Done,
    Entry,
    Envelope,
    Fence,
    FetchDocument,
    Gossip,
    Hello,
    Item,
    Notification,
    Notified,
    Notify,
    Outcome,
    Pull,
    Pulled,
    ReachabilityRow,
    Reply,
    Request,
    SendAll,
    Skip,
    Standing,
    SubChanged,
)
from qns.errors import DocumentError
from qns.soap.parts import PartedChange, ViewPart
from qns.soap.shapes import (
    Field,
    Itself,
    Leaf,
    Operation,
    Port,
    Shape,
    attributes,
    many,
    once,
    perhaps,
    record,
    reserved,
)

_SIGNATURE = "Reserved: the signature over the exact bytes. Leave it out."


class Origin(NamedTuple):
    """What every envelope says of its sender."""

    organisation: str
    document: int
    reachability: tuple[ReachabilityRow, ...]


REACHABILITY = record(
    "Reachability",
    "Whom one organisation cannot reach, as it says itself.",
    ReachabilityRow,
    once("organisation", Leaf.TEXT, "Who says so."),
    once("epoch", Leaf.NUMBER, "Its life that says so; it grows with every start."),
    once("version", Leaf.NUMBER, "The newest row of an organisation is the one that counts."),
    many("unreachable", Leaf.TEXT, "An organisation that it cannot reach."),
)

ORIGIN = record(
    "Origin",
    "The sender of a request or reply, and the news that travel with everything it sends.",
    Origin,
    once("organisation", Leaf.TEXT, "The sender's name in the federation document."),
    once("document", Leaf.NUMBER, "Version of the federation document in force at the sender."),
    many("reachability", REACHABILITY, "Who reaches whom, as far as the sender knows."),
    reserved("signature", _SIGNATURE),
)

FENCE = record(
    "Fence",
    "A producer came back from an old backup: entries of older epochs end below this number.",
    Fence,
    once("epoch", Leaf.NUMBER, "The epoch that begins."),
    once("first", Leaf.NUMBER, "Its first number."),
)
_FENCES = "Fences that the other side may not know."

ENTRY = record(
    "Entry",
    "A place in one receiver's stream, and the subtree of further receivers.",
    Entry,
    once("receiver", Leaf.TEXT, "The organisation for which this place is meant."),
    once("joined", Leaf.NUMBER, "The receiver's incarnation."),
    once("epoch", Leaf.NUMBER, "The producer's epoch that gave the number."),
    once("number", Leaf.NUMBER, "The place in the stream from producer to receiver; no gaps."),
    once("confirmed", Leaf.NUMBER, "The epoch up to which the receiver knows all fences."),
    many("fence", FENCE, "The fences after that epoch."),
    many("child", Itself.ITSELF, "To whom the receiver forwards the event."),
    reserved("signature", _SIGNATURE),
)

NOTIFICATION = record(
    "Notification",
    "One event on its way to one receiver, and through it to the receiver's subtree.",
    Notification,
    once("source", Leaf.TEXT, "The organisation that published the event."),
    once("joined", Leaf.NUMBER, "The producer's incarnation."),
    once("epoch", Leaf.NUMBER, "The producer's epoch at publication."),
    once("sequence", Leaf.NUMBER, "With joined and epoch: its place in publication order."),
    once("event", Leaf.TEXT, "The event's id, unique for its source."),
    once("xml", Leaf.BYTES, "The event as D2Q XML, exactly as its producer wrote it."),
    once("remaining", Leaf.SECONDS, "Seconds that are left of its availability; INF: for ever."),
    once("entry", ENTRY, "The receiver's place, and its subtree."),
    many("path", Leaf.TEXT, "Who has carried it so far, the producer first."),
    reserved("signature", _SIGNATURE),
)

SKIP = record(
    "Skip",
    "A producer's declaration that it cannot send these numbers any more.",
    Skip,
    once("source", Leaf.TEXT, "The producer."),
    once("joined", Leaf.NUMBER, "The producer's incarnation."),
    once("first", ENTRY, "The entry of the first number."),
    once("last", Leaf.NUMBER, "The last number."),
    once("reason", Leaf.PROSE, "Why they cannot be sent."),
)

OUTCOME = record(
    "Outcome",
    "What became of one notification or skip.",
    Outcome,
    once("taken", Leaf.FLAG, "Whether the receiver has taken it over, durably."),
    perhaps("reason", Leaf.PROSE, "Why not.", ""),
    once("permanent", Leaf.FLAG, "It will never be taken: do not send it again."),
)

STANDING = record(
    "Standing",
    "Where a consumer stands in a producer's stream.",
    Standing,
    once("joined", Leaf.NUMBER, "The producer's incarnation, as the consumer knows it."),
    once("own", Leaf.NUMBER, "The consumer's own incarnation."),
    once("consumerEpoch", Leaf.NUMBER, "The life of the consumer that says so."),
    once("epoch", Leaf.NUMBER, "The newest epoch of the producer whose fences it knows."),
    once("last", Leaf.NUMBER, "The last number that it has taken, with all before it."),
    many("fence", FENCE, "The fences that it knows."),
)

# Not called Hello: generators of client code would give it the class name of the operation hello.
GREETING = record(
    "Greeting",
    "What have you, what do you miss: said at every start and when a partition heals.",
    Hello,
    once("joined", Leaf.NUMBER, "The sender's incarnation."),
    once("epoch", Leaf.NUMBER, "The sender's epoch."),
    once("number", Leaf.NUMBER, "The last number that it gave out to the receiver."),
    many("fence", FENCE, _FENCES),
    once("heldEpoch", Leaf.NUMBER, "The life of the receiver that told the view held for it."),
    once("heldVersion", Leaf.NUMBER, "The version of the view held for the receiver."),
    once("heldDigest", Leaf.TEXT, "The digest of the view held for the receiver."),
    once("standing", STANDING, "Where the sender stands in the receiver's stream."),
    once("version", Leaf.NUMBER, "The version of the sender's view, as it should be there."),
    once("digest", Leaf.TEXT, "The digest of the sender's view, as it should be there."),
)

CHANGED = record(
    "Changed",
    "The view is in force, and its backlog is complete with a number.",
    SubChanged,
    once("version", Leaf.NUMBER, "The version in force."),
    once("epoch", Leaf.NUMBER, "The producer's epoch."),
    once("upto", Leaf.NUMBER, "The number with which the backlog ends."),
    once("joined", Leaf.NUMBER, "The producer's incarnation."),
    many("fence", FENCE, _FENCES),
)


def _peer(
    name: str,
    documentation: str,
    request: tuple[Field, ...],
    make: Callable[..., Request | ViewPart | PartedChange],
    take: Callable[[Any], tuple[Any, ...]],
    reply: tuple[Field, ...],
    make_reply: Callable[..., Reply],
    take_reply: Callable[[Any], tuple[Any, ...]],
) -> Operation:
    return Operation(
        Port.PEER,
        name,
        documentation,
        _enveloped(name, f"Request of {name}.", request, make, take),
        _enveloped(f"{name}Response", f"Reply of {name}.", reply, make_reply, take_reply),
    )


def _enveloped(
    name: str,
    documentation: str,
    body: tuple[Field, ...],
    make: Callable[..., Any],
    take: Callable[[Any], tuple[Any, ...]],
) -> Shape:
    def made(origin: Origin, *values: Any) -> Envelope:
        return Envelope(*origin, make(*values))

    def taken(envelope: Envelope) -> tuple[Any, ...]:
        origin = Origin(envelope.sender, envelope.document, envelope.reachability)
        return (origin, *take(envelope.body))

    return Shape(name, documentation, (once("origin", ORIGIN, "The sender."), *body), made, taken)


def parted(items: tuple[Item, ...]) -> tuple[tuple[Notification, ...], tuple[Skip, ...]]:
    """Notifications stand first on the wire, skips after them."""
    return (
        tuple(item for item in items if isinstance(item, Notification)),
        tuple(item for item in items if isinstance(item, Skip)),
    )


def _pulled(
    notifications: tuple[Notification, ...],
    skips: tuple[Skip, ...],
    epoch: int,
    fences: tuple[Fence, ...],
) -> Pulled:
    return Pulled((*notifications, *skips), epoch, fences)


_CHANGE = attributes("joined", "own", "epoch", "base", "version", "added", "removed", "digest")


def _change_made(*values: Any) -> ChangeSub | PartedChange:
    *change, parts = values
    return PartedChange(ChangeSub(*change), parts) if parts else ChangeSub(*change)


def _change_taken(body: ChangeSub | PartedChange) -> tuple[Any, ...]:
    if isinstance(body, PartedChange):
        return (*_CHANGE(body.change), body.parts)
    return (*_CHANGE(body), 0)


def _change(changed: SubChanged | None, send_all: bool) -> SubChanged | SendAll:
    if (changed is None) is not send_all:
        raise DocumentError(
            "a view is changed or to be sent anew, and this says neither or both",
            remedy="give changed and sendAll=false, or sendAll=true alone",
        )
    return SendAll() if changed is None else changed


_nothing = attributes()

OPERATIONS: Final = (
    _peer(
        "notify",
        "Hands over events, one or many, each with the subtree to which the receiver forwards it. "
        "Once it answers, the receiver answers for them. Repeating it does no harm.",
        (
            many("notification", NOTIFICATION, "An event."),
            many("skip", SKIP, "Numbers that the producer cannot send any more."),
        ),
        lambda notifications, skips: Notify((*notifications, *skips)),
        lambda body: parted(body.items),
        (
            many("outcome", OUTCOME, "One for each notification, then one for each skip."),
            perhaps("standing", STANDING, "How far the sender's own stream has come."),
        ),
        Notified,
        attributes("outcomes", "standing"),
    ),
    _peer(
        "changeSub",
        "Changes the sender's merge subscription as the receiver sees it. The answer says with "
        "which number the new view is complete, or asks for all of it anew.",
        (
            once("joined", Leaf.NUMBER, "The producer's incarnation, as the consumer knows it."),
            once("own", Leaf.NUMBER, "The consumer's own incarnation."),
            once("epoch", Leaf.NUMBER, "The consumer's epoch."),
            perhaps("base", Leaf.NUMBER, "The version that it changes; absent: all is told anew."),
            once("version", Leaf.NUMBER, "The version that comes of it."),
            many("added", Leaf.TEXT, "An element that comes in: a subscription as D2Q XML."),
            many("removed", Leaf.TEXT, "An element that goes: a subscription as D2Q XML."),
            once("digest", Leaf.TEXT, "The digest of the whole view after the change."),
            perhaps("parts", Leaf.NUMBER, "How many parts came before, in viewPart.", 0),
        ),
        _change_made,
        _change_taken,
        (
            perhaps("changed", CHANGED, "The view is in force."),
            once("sendAll", Leaf.FLAG, "The change does not fit: tell everything anew."),
        ),
        _change,
        lambda body: (None, True) if isinstance(body, SendAll) else (body, False),
    ),
    _peer(
        "viewPart",
        "Brings a part of a change that is too large for one changeSub. It is only kept: the "
        "changeSub of the same epoch, version and digest makes it count.",
        (
            once("epoch", Leaf.NUMBER, "The consumer's epoch."),
            once("version", Leaf.NUMBER, "The version that comes of the change."),
            once("digest", Leaf.TEXT, "The digest of the whole view after the change."),
            once("part", Leaf.NUMBER, "Which part it is; the first is 0."),
            many("added", Leaf.TEXT, "An element that comes in: a subscription as D2Q XML."),
            many("removed", Leaf.TEXT, "An element that goes: a subscription as D2Q XML."),
        ),
        ViewPart,
        attributes("epoch", "version", "digest", "part", "added", "removed"),
        (),
        Done,
        _nothing,
    ),
    _peer(
        "hello",
        "Compares notes: what has each of the two sides, what does it miss.",
        (once("hello", GREETING, "The sender's side."),),
        lambda hello: hello,
        lambda body: (body,),
        (once("hello", GREETING, "The answering side."),),
        lambda hello: hello,
        lambda body: (body,),
    ),
    _peer(
        "pullGap",
        "Asks a producer for numbers of its stream that the consumer misses.",
        (
            once("standing", STANDING, "Where the consumer stands."),
            once("upto", Leaf.NUMBER, "The last number that it misses."),
        ),
        Pull,
        attributes("standing", "upto"),
        (
            many("notification", NOTIFICATION, "An event."),
            many("skip", SKIP, "Numbers that the producer cannot send any more."),
            once("epoch", Leaf.NUMBER, "The producer's epoch."),
            many("fence", FENCE, _FENCES),
        ),
        _pulled,
        lambda body: (*parted(body.items), body.epoch, body.fences),
    ),
    _peer(
        "acknowledgeStream",
        "Tells a producer how far its stream has come, so that it need not keep what is before.",
        (once("standing", STANDING, "Where the consumer stands."),),
        Acknowledge,
        attributes("standing"),
        (),
        Done,
        _nothing,
    ),
    _peer(
        "gossip",
        "Carries only what every request carries: who reaches whom, which document is in force.",
        (),
        Gossip,
        _nothing,
        (),
        Done,
        _nothing,
    ),
    _peer(
        "fetchDocument",
        "Asks for the federation document in force at the receiver.",
        (),
        FetchDocument,
        _nothing,
        (once("xml", Leaf.BYTES, "The document, exactly as it was signed."),),
        Document,
        attributes("xml"),
    ),
)
