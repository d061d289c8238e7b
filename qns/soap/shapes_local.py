"""The port Local: the operations that users and programs of one organisation call at its peer."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final, NamedTuple

from qns.iil.deliveries_dropped import Dropped
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    Delivery,
    ListSubscriptions,
    Ok,
    Pause,
    Published,
    PullDeliveries,
    Renew,
    Request,
    Resume,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Subscriptions,
    Unsubscribe,
    Unsubscribed,
)
from qns.soap.shapes import (
    CONTRACT,
    Field,
    Leaf,
    Operation,
    Port,
    Shape,
    attributes,
    many,
    once,
    perhaps,
    record,
)
from qns.soap.typed_event import TypedEvent, TypedPublish, TypedQuality, TypedValue


class LocalCall(NamedTuple):
    """A request with the fields that only its SOAP message has."""

    token: str
    request: Request | TypedPublish
    wait_s: float = 0.0
    contract: int = CONTRACT
    """The version of the contract that the caller reads."""


DATA = record(
    "Data",
    "The value of one property.",
    TypedValue,
    once("property", Leaf.TEXT, "The property's name, in any spelling that the schema allows."),
    once("value", Leaf.TEXT, "The value as text: 42, 12.5, true, 2024-01-31 or any string."),
)

QUALITY = record(
    "Quality",
    "The quality of one property in one dimension.",
    TypedQuality,
    once("property", Leaf.TEXT, "The property's name, in any spelling that the schema allows."),
    once("dimension", Leaf.TEXT, "One of accuracy, completeness, currency and consistency."),
    perhaps("value", Leaf.TEXT, "The new quality: a number from 0 to 1, or a label."),
    perhaps("previous", Leaf.TEXT, "The quality before the change, if it is known."),
)

EVENT = record(
    "Event",
    "A change of quality values of one data object.",
    TypedEvent,
    once("id", Leaf.TEXT, "The publisher chooses the id; a duplicate publish changes nothing."),
    once("class", Leaf.TEXT, "The path of the object's class in the schema."),
    once("source", Leaf.TEXT, "The organisation that publishes the event: that of the peer."),
    perhaps("published", Leaf.TEXT, "A dateTime; if absent, the time of the request.", ""),
    perhaps(
        "available",
        Leaf.SECONDS,
        "How many seconds late subscribers get the event; INF means without end.",
        0.0,
    ),
    many("data", DATA, "The value of a property."),
    many("quality", QUALITY, "The quality of a property."),
)

_EXPIRES = "When the subscription ends, in seconds since 1970; if absent, never."
_WARNING = (
    "Why the subscription, or a part of it, may never match, such as an unknown source. Only "
    "callers that give contract 2 get it."
)
_ENDS = "When the subscription ends; if absent, never. Only callers that give contract 2 get it."
_PENDING = "A producer at which the subscription is not stable yet."

SUBSCRIPTION = record(
    "SubscriptionInfo",
    "A subscription and its state.",
    SubscriptionInfo,
    once("id", Leaf.TEXT, "The id of the subscription."),
    once("text", Leaf.TEXT, "The subscription in the subscription language."),
    perhaps("group", Leaf.TEXT, "The delivery group.", ""),
    once("paused", Leaf.FLAG, "Whether the subscription is paused."),
    perhaps("expires", Leaf.SECONDS, _EXPIRES, inf),
    many("pending", Leaf.TEXT, _PENDING),
    once("delivered", Leaf.NUMBER, "The number of deliveries so far."),
    once("dropped", Leaf.NUMBER, "The number of deliveries dropped because they were not read."),
    once("waiting", Leaf.NUMBER, "The number of unacknowledged deliveries and queued events."),
    many("warning", Leaf.PROSE, _WARNING, since=2),
    perhaps("ends", Leaf.MOMENT, _ENDS, since=2),
    derived=("ends",),
)

DELIVERY = record(
    "Delivery",
    "An event in the queue of one subscription.",
    Delivery,
    once("number", Leaf.NUMBER, "The number of the delivery in its subscription."),
    once("source", Leaf.TEXT, "The organisation that published the event."),
    once("event", Leaf.TEXT, "The event's id, which is unique for its source."),
    once("xml", Leaf.BYTES, "The event as D2Q XML, exactly as its producer wrote it."),
    perhaps(
        "series",
        Leaf.TEXT,
        "The number series of the delivery. Store it with the number, and give both back. Only "
        "callers that give contract 2 get it.",
        "",
        since=2,
    ),
)

DROPPED = record(
    "Dropped",
    "Deliveries that the operator's limit on queues dropped before they were read.",
    Dropped,
    once("first", Leaf.NUMBER, "The number of the first one."),
    once("last", Leaf.NUMBER, "The number of the last one."),
)

_HEAD = (
    perhaps("token", Leaf.TEXT, "Reserved for the API token. It is ignored.", ""),
    perhaps(
        "contract",
        Leaf.NUMBER,
        "The version of this contract that the caller reads: give 2. If absent, the reply has only "
        "the elements of version 1, which is that of QNS 0.2.0.",
        1,
    ),
    once("owner", Leaf.TEXT, "The user. Only the owner sees and changes a subscription."),
)
_ID = once("id", Leaf.TEXT, "The id of the subscription.")
_LIFETIME = perhaps(
    "lifetime", Leaf.SECONDS, "Seconds until the subscription ends; if absent, it does not.", inf
)
_SUBSCRIBED = (
    _ID,
    many("pending", Leaf.TEXT, _PENDING),
    perhaps("expires", Leaf.SECONDS, _EXPIRES, inf),
    perhaps("ends", Leaf.MOMENT, _ENDS, since=2),
)
_SERIES = perhaps(
    "series",
    Leaf.TEXT,
    "The number series of the delivery with this number. If the peer was put back to an older "
    "state and that delivery is gone, the request is refused. If absent, it is not checked.",
    "",
    since=2,
)
_LIMIT = PullDeliveries("", "").limit
_nothing = attributes()
_take_subscribed = attributes("id", "pending", "expires_at", "ends")


def _subscribed(
    id: str,
    pending: tuple[str, ...],
    expires_at: float,
    _: object,
    warnings: tuple[str, ...] = (),
) -> Subscribed:
    return Subscribed(id, pending, expires_at, warnings)


def _local(
    name: str,
    documentation: str,
    request: tuple[Field, ...],
    make: Callable[..., Request | TypedPublish],
    take: Callable[[Any], tuple[Any, ...]],
    reply: tuple[Field, ...] = (),
    make_reply: Callable[..., Answer] = Ok,
    take_reply: Callable[[Any], tuple[Any, ...]] = _nothing,
) -> Operation:
    """Returns an operation; `make` and `take` handle all fields but the token, the owner first."""

    def made(token: str, contract: int, *values: Any) -> LocalCall:
        return LocalCall(token, make(*values), contract=contract)

    def taken(call: LocalCall) -> tuple[Any, ...]:
        return (call.token, call.contract, *take(call.request))

    return Operation(
        Port.LOCAL,
        name,
        documentation,
        Shape(name, f"Request of {name}.", (*_HEAD, *request), made, taken),
        Shape(f"{name}Response", f"Reply of {name}.", reply, make_reply, take_reply),
    )


def _pull() -> Operation:
    """Returns the operation pull, whose `wait` is part of the message but not of the request."""
    fields = (
        _ID,
        once("after", Leaf.NUMBER, "The last number that the caller has read, or 0."),
        perhaps("limit", Leaf.NUMBER, "The most deliveries to return; if absent, 100.", _LIMIT),
        perhaps("wait", Leaf.WAIT, "Seconds to wait for a first delivery, at most 60.", 0.0),
        _SERIES,
    )

    def made(token: str, contract: int, *values: Any) -> LocalCall:
        owner, id, after, limit, wait_s, series = values
        pull = PullDeliveries(owner, id, after, limit, series)
        return LocalCall(token, pull, wait_s, contract)

    def taken(call: LocalCall) -> tuple[Any, ...]:
        pull = call.request
        assert isinstance(pull, PullDeliveries)
        return (
            *(call.token, call.contract, pull.owner, pull.id),
            *(pull.after, pull.limit, call.wait_s, pull.series),
        )

    return Operation(
        Port.LOCAL,
        "pull",
        "Returns the deliveries of a subscription after a number, without changing anything. If "
        "the operator's limit has dropped deliveries after that number, the fault names them until "
        "they are acknowledged or the pull asks for deliveries after them. "
        "Process them, store the last number and its series together with the result, then "
        "acknowledge it: no delivery is then lost or processed twice, whatever fails.",
        Shape("pull", "Request of pull.", (*_HEAD, *fields), made, taken),
        Shape(
            "pullResponse",
            "Reply of pull.",
            (many("delivery", DELIVERY, "A delivery, in the order of the numbers."),),
            lambda deliveries: Deliveries(deliveries),
            attributes("deliveries"),
        ),
    )


OPERATIONS: Final = (
    _local(
        "subscribe",
        "Subscribes to quality changes. It returns at once; the reply lists the producers at "
        "which the subscription is still pending.",
        (
            once(
                "subscription",
                Leaf.TEXT,
                "The subscription, in the subscription language or as D2Q XML.",
            ),
            perhaps("id", Leaf.TEXT, "An id that the caller chooses, so that a retry is safe.", ""),
            perhaps("group", Leaf.TEXT, "The delivery group; each event goes to one member.", ""),
            _LIFETIME,
        ),
        Subscribe,
        attributes("owner", "text", "id", "group", "lifetime_s"),
        (*_SUBSCRIBED, many("warning", Leaf.PROSE, _WARNING, since=2)),
        _subscribed,
        attributes("id", "pending", "expires_at", "ends", "warnings"),
    ),
    _local(
        "unsubscribe",
        "Ends a subscription.",
        (_ID,),
        Unsubscribe,
        attributes("owner", "id"),
        (once("dropped", Leaf.NUMBER, "The number of deliveries that were not read."),),
        lambda dropped: Unsubscribed("", dropped),
        attributes("dropped"),
    ),
    _local(
        "renew",
        "Sets a new lifetime of a subscription, from now on.",
        (_ID, _LIFETIME),
        Renew,
        attributes("owner", "id", "lifetime_s"),
        _SUBSCRIBED,
        _subscribed,
        _take_subscribed,
    ),
    _local(
        "pause",
        "Pauses a subscription: matching events are queued and not delivered.",
        (_ID,),
        Pause,
        attributes("owner", "id"),
    ),
    _local(
        "resume",
        "Resumes a paused subscription: the queued events are delivered.",
        (_ID,),
        Resume,
        attributes("owner", "id"),
    ),
    _local(
        "listSubscriptions",
        "Returns all subscriptions of one owner.",
        (),
        ListSubscriptions,
        attributes("owner"),
        (many("subscription", SUBSCRIPTION, "A subscription of the owner."),),
        lambda subscriptions: Subscriptions(subscriptions),
        attributes("subscriptions"),
    ),
    _local(
        "publish",
        "Publishes an event. After the reply, its delivery to every subscriber is guaranteed.",
        (once("event", EVENT, "The event."),),
        TypedPublish,
        lambda request: (request.owner, request.event),
        (
            once("id", Leaf.TEXT, "The event's id."),
            many("sentTo", Leaf.TEXT, "An organisation to which the event is sent."),
            once("again", Leaf.FLAG, "True for a duplicate: the event was published before."),
        ),
        Published,
        attributes("id", "sent_to", "again"),
    ),
    _pull(),
    _local(
        "acknowledge",
        "Acknowledges the deliveries up to a number: the peer deletes them.",
        (_ID, once("upto", Leaf.NUMBER, "The last number that the caller has processed."), _SERIES),
        AcknowledgeDeliveries,
        attributes("owner", "id", "upto", "series"),
    ),
)
