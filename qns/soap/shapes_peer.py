"""The port Peer: the operations that peers call at each other, as tables (thesis 5.4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Document,
    Done,
    Envelope,
    Fence,
    FetchDocument,
    GapPulled,
    Gossip,
    Item,
    Notification,
    Notified,
    Notify,
    OfferDocument,
    PullGap,
    RelayAcknowledgement,
    Reply,
    Request,
    SendAll,
    Skip,
    SubChanged,
)
from qns.errors import DocumentError
from qns.soap.digest_text import DIGEST
from qns.soap.parts import PartedChange, ViewPart
from qns.soap.shapes import (
    Field,
    Leaf,
    Operation,
    Port,
    Shape,
    attributes,
    many,
    once,
    perhaps,
)
from qns.soap.shapes_parts import (
    CHANGED,
    FENCE,
    FENCES,
    GREETING,
    NOTIFICATION,
    ORIGIN,
    OUTCOME,
    PRODUCER_INCARNATION,
    SKIP,
    STANDING,
    Origin,
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
    """Separates notifications from skips, which follow them in the message."""
    return (
        tuple(item for item in items if isinstance(item, Notification)),
        tuple(item for item in items if isinstance(item, Skip)),
    )


def _pulled(
    notifications: tuple[Notification, ...],
    skips: tuple[Skip, ...],
    epoch: int,
    fences: tuple[Fence, ...],
) -> GapPulled:
    return GapPulled((*notifications, *skips), epoch, fences)


_CHANGE = attributes(
    "producer_incarnation",
    "consumer_incarnation",
    "epoch",
    "base",
    "version",
    "added",
    "removed",
    "digest",
)


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
            "changed and sendAll contradict each other",
            remedy="send changed with sendAll=false, or sendAll=true alone",
        )
    return SendAll() if changed is None else changed


_nothing = attributes()
_SKIP = "Numbers that the producer cannot send any more."
_ADDED = "A subscription that the change adds, as D2Q XML."
_REMOVED = "A subscription that the change removes, as D2Q XML."
_VERSION_AFTER = "The version of the view after the change."

OPERATIONS: Final = (
    _peer(
        "notify",
        "Sends events, each with the subtree to which the receiver forwards it. An entry may be "
        "for an organisation that the sender cannot reach: then the receiver relays the event. "
        "With its reply, the receiver takes custody of those that it has taken. The operation is "
        "idempotent.",
        (
            many("notification", NOTIFICATION, "An event."),
            many("skip", SKIP, _SKIP),
        ),
        lambda notifications, skips: Notify((*notifications, *skips)),
        lambda body: parted(body.items),
        (
            many("outcome", OUTCOME, "An outcome for each notification, then for each skip."),
            perhaps("standing", STANDING, "How far the receiver has come in the sender's stream."),
        ),
        Notified,
        attributes("outcomes", "standing"),
    ),
    _peer(
        "changeSub",
        "Changes the sender's view at the receiver. The reply gives the last number of the "
        "backlog, or requests the complete view.",
        (
            once("joined", Leaf.NUMBER, PRODUCER_INCARNATION),
            once("own", Leaf.NUMBER, "The consumer's own incarnation."),
            once("epoch", Leaf.NUMBER, "The consumer's epoch."),
            perhaps(
                "base",
                Leaf.NUMBER,
                "The version that the change is based on; if absent, the view is sent complete.",
            ),
            once("version", Leaf.NUMBER, _VERSION_AFTER),
            many("added", Leaf.TEXT, _ADDED),
            many("removed", Leaf.TEXT, _REMOVED),
            once("digest", Leaf.TEXT, DIGEST),
            perhaps("parts", Leaf.NUMBER, "The number of parts sent before, in viewPart.", 0),
        ),
        _change_made,
        _change_taken,
        (
            perhaps("changed", CHANGED, "Present if the view is in force."),
            once("sendAll", Leaf.FLAG, "True if the sender must send the complete view."),
        ),
        _change,
        lambda body: (None, True) if isinstance(body, SendAll) else (body, False),
    ),
    _peer(
        "viewPart",
        "Sends a part of a change that is too large for one changeSub. The receiver only keeps "
        "it; the changeSub of the same epoch, version and digest applies it.",
        (
            once("epoch", Leaf.NUMBER, "The consumer's epoch."),
            once("version", Leaf.NUMBER, _VERSION_AFTER),
            once("digest", Leaf.TEXT, "The digest of the changeSub."),
            once("part", Leaf.NUMBER, "The number of the part; the first is 0."),
            many("added", Leaf.TEXT, _ADDED),
            many("removed", Leaf.TEXT, _REMOVED),
        ),
        ViewPart,
        attributes("epoch", "version", "digest", "part", "added", "removed"),
        (),
        Done,
        _nothing,
    ),
    _peer(
        "hello",
        "Exchanges the state of both sides, so that each sees what the other is missing.",
        (once("hello", GREETING, "The sender's state."),),
        lambda hello: hello,
        lambda body: (body,),
        (once("hello", GREETING, "The receiver's state."),),
        lambda hello: hello,
        lambda body: (body,),
    ),
    _peer(
        "pullGap",
        "Requests the numbers of a producer's stream that the consumer is missing.",
        (
            once("standing", STANDING, "How far the consumer has come."),
            once("upto", Leaf.NUMBER, "The last number that is missing."),
        ),
        PullGap,
        attributes("standing", "upto"),
        (
            many("notification", NOTIFICATION, "An event."),
            many("skip", SKIP, _SKIP),
            once("epoch", Leaf.NUMBER, "The producer's epoch."),
            many("fence", FENCE, FENCES),
        ),
        _pulled,
        lambda body: (*parted(body.items), body.epoch, body.fences),
    ),
    _peer(
        "acknowledgeStream",
        "Acknowledges a producer's stream, so that the producer can delete what was taken.",
        (once("standing", STANDING, "How far the consumer has come."),),
        Acknowledge,
        attributes("standing"),
        (),
        Done,
        _nothing,
    ),
    _peer(
        "relayAcknowledgement",
        "Passes on the acknowledgement of a consumer that cannot reach the producer itself. "
        "The receiver is the producer, or passes it on to another peer.",
        (
            once("producer", Leaf.TEXT, "The producer of the stream."),
            once("consumer", Leaf.TEXT, "The consumer of the stream."),
            once("standing", STANDING, "How far the consumer has come."),
            many("path", Leaf.TEXT, "An organisation that has passed it on, consumer first."),
            perhaps("proof", Leaf.BYTES, "Leads to the root that the consumer's seal signs.", b""),
            perhaps("seal", Leaf.BYTES, "The consumer's seal, as in a notification.", b""),
        ),
        RelayAcknowledgement,
        attributes("producer", "consumer", "standing", "path", "proof", "seal"),
        (),
        Done,
        _nothing,
    ),
    _peer(
        "gossip",
        "Sends only what every request carries: reachability and the version of the document.",
        (),
        Gossip,
        _nothing,
        (),
        Done,
        _nothing,
    ),
    _peer(
        "fetchDocument",
        "Returns the federation document that is in force at the receiver.",
        (),
        FetchDocument,
        _nothing,
        (once("xml", Leaf.BYTES, "The document, byte for byte as the receiver has it."),),
        Document,
        attributes("xml"),
    ),
    _peer(
        "offerDocument",
        "Gives the receiver a newer federation document. An organisation calls it if the receiver "
        "cannot fetch the document, because its own does not name the caller, or elsewhere.",
        (once("xml", Leaf.BYTES, "The document, byte for byte as the sender has it."),),
        OfferDocument,
        attributes("xml"),
        (),
        Done,
        _nothing,
    ),
)
