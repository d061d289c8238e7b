"""The port Local: what users and programs of one organisation ask of their peer."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final, NamedTuple

from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    Delivery,
    ListSubscriptions,
    Ok,
    Pause,
    Published,
    Read,
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
    """A request with what the wire adds to it."""

    token: str
    request: Request | TypedPublish
    wait_s: float = 0.0


DATA = record(
    "Data",
    "The value of one property.",
    TypedValue,
    once("property", Leaf.TEXT, "Its name, in any spelling that the schema allows."),
    once("value", Leaf.TEXT, "Its value as text: 42, 12.5, true, 2024-01-31, any string."),
)

QUALITY = record(
    "Quality",
    "The quality of one property in one dimension.",
    TypedQuality,
    once("property", Leaf.TEXT, "The property, in any spelling that the schema allows."),
    once("dimension", Leaf.TEXT, "accuracy, completeness, currency or consistency."),
    perhaps("value", Leaf.TEXT, "The new quality: a number from 0 to 1, or a label."),
    perhaps("previous", Leaf.TEXT, "The quality before, if known."),
)

EVENT = record(
    "Event",
    "One quality change.",
    TypedEvent,
    once("id", Leaf.TEXT, "Chosen by the publisher: publishing it twice changes nothing."),
    once("class", Leaf.TEXT, "The path of its class in the schema."),
    once("source", Leaf.TEXT, "The organisation that publishes it: that of the peer."),
    perhaps("published", Leaf.TEXT, "A dateTime; absent: the moment of publishing.", ""),
    perhaps("available", Leaf.SECONDS, "Seconds owed to late subscribers; INF: for ever.", 0.0),
    many("data", DATA, "The value of a property."),
    many("quality", QUALITY, "The quality of a property."),
)

SUBSCRIPTION = record(
    "SubscriptionInfo",
    "A subscription and how it is doing.",
    SubscriptionInfo,
    once("id", Leaf.TEXT, "Its id."),
    once("text", Leaf.TEXT, "What it asks for, in the subscription language."),
    perhaps("group", Leaf.TEXT, "Its delivery group.", ""),
    once("paused", Leaf.FLAG, "Whether it is paused."),
    perhaps("expires", Leaf.SECONDS, "When it ends, in seconds since 1970; absent: never.", inf),
    many("pending", Leaf.TEXT, "A producer at which it is not stable yet."),
    once("delivered", Leaf.NUMBER, "Deliveries so far."),
    once("dropped", Leaf.NUMBER, "Deliveries lost because nobody read them in time."),
    once("waiting", Leaf.NUMBER, "Deliveries not acknowledged, and events that wait for it."),
)

DELIVERY = record(
    "Delivery",
    "One event delivered to a subscription.",
    Delivery,
    once("number", Leaf.NUMBER, "Its place among the deliveries of the subscription."),
    once("source", Leaf.TEXT, "The organisation that published the event."),
    once("event", Leaf.TEXT, "The event's id, unique for its source."),
    once("xml", Leaf.BYTES, "The event as D2Q XML, exactly as its producer wrote it."),
)

_HEAD = (
    perhaps("token", Leaf.TEXT, "Reserved: the API token. Not looked at yet.", ""),
    once("owner", Leaf.TEXT, "On whose behalf: only the owner sees and changes a subscription."),
)
_ID = once("id", Leaf.TEXT, "The subscription.")
_LIFETIME = perhaps("lifetime", Leaf.SECONDS, "Seconds until it ends; absent: never.", inf)
_SUBSCRIBED = (
    once("id", Leaf.TEXT, "The subscription."),
    many("pending", Leaf.TEXT, "A producer at which it is not stable yet."),
    perhaps("expires", Leaf.SECONDS, "When it ends, in seconds since 1970; absent: never.", inf),
)
_LIMIT = Read("", "").limit
_nothing = attributes()
_take_subscribed = attributes("id", "pending", "expires_at")


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
    """`make` and `take` are about everything but the token; the owner comes first."""

    def made(token: str, *values: Any) -> LocalCall:
        return LocalCall(token, make(*values))

    def taken(call: LocalCall) -> tuple[Any, ...]:
        return (call.token, *take(call.request))

    return Operation(
        Port.LOCAL,
        name,
        documentation,
        Shape(name, f"Request of {name}.", (*_HEAD, *request), made, taken),
        Shape(f"{name}Response", f"Reply of {name}.", reply, make_reply, take_reply),
    )


def _pull() -> Operation:
    """Only this one knows a time to wait, which is the wire's business, not the request's."""
    fields = (
        _ID,
        once("after", Leaf.NUMBER, "The last number that was read; 0: none was."),
        perhaps("limit", Leaf.NUMBER, "At most so many deliveries; absent: 100.", _LIMIT),
        perhaps("wait", Leaf.WAIT, "Seconds to wait for a first delivery, at most 60.", 0.0),
    )

    def made(
        token: str, owner: str, subscription: str, after: int, limit: int, wait_s: float
    ) -> LocalCall:
        return LocalCall(token, Read(owner, subscription, after, limit), wait_s)

    def taken(call: LocalCall) -> tuple[Any, ...]:
        read = call.request
        assert isinstance(read, Read)
        return call.token, read.owner, read.id, read.after, read.limit, call.wait_s

    return Operation(
        Port.LOCAL,
        "pull",
        "Deliveries of a subscription beyond a number, without changing anything. Read them, keep "
        "the last number together with what you did, then acknowledge it: nothing is lost or "
        "delivered twice, whatever fails.",
        Shape("pull", "Request of pull.", (*_HEAD, *fields), made, taken),
        Shape(
            "pullResponse",
            "Reply of pull.",
            (many("delivery", DELIVERY, "One event."),),
            lambda deliveries: Deliveries(deliveries),
            attributes("deliveries"),
        ),
    )


OPERATIONS: Final = (
    _local(
        "subscribe",
        "Subscribes to quality changes. It returns at once; the producers at which the "
        "subscription is not stable yet are told as pending.",
        (
            once("subscription", Leaf.TEXT, "In the subscription language, or as D2Q XML."),
            perhaps("id", Leaf.TEXT, "Chosen by the caller, so that a repeated call is safe.", ""),
            perhaps("group", Leaf.TEXT, "Delivery group: each event goes to one member.", ""),
            _LIFETIME,
        ),
        Subscribe,
        attributes("owner", "text", "id", "group", "lifetime_s"),
        _SUBSCRIBED,
        Subscribed,
        _take_subscribed,
    ),
    _local(
        "unsubscribe",
        "Ends a subscription.",
        (_ID,),
        Unsubscribe,
        attributes("owner", "id"),
        (once("dropped", Leaf.NUMBER, "Deliveries that nobody read."),),
        lambda dropped: Unsubscribed("", dropped),
        attributes("dropped"),
    ),
    _local(
        "renew",
        "Gives a subscription a new lifetime, which begins now.",
        (_ID, _LIFETIME),
        Renew,
        attributes("owner", "id", "lifetime_s"),
        _SUBSCRIBED,
        Subscribed,
        _take_subscribed,
    ),
    _local(
        "pause",
        "Lets a subscription rest: what concerns it waits for it.",
        (_ID,),
        Pause,
        attributes("owner", "id"),
    ),
    _local(
        "resume",
        "Wakes a paused subscription: what waited for it is delivered.",
        (_ID,),
        Resume,
        attributes("owner", "id"),
    ),
    _local(
        "listSubscriptions",
        "All subscriptions of one owner.",
        (),
        ListSubscriptions,
        attributes("owner"),
        (many("subscription", SUBSCRIPTION, "One of them."),),
        lambda subscriptions: Subscriptions(subscriptions),
        attributes("subscriptions"),
    ),
    _local(
        "publish",
        "Publishes a quality change. Once it answers, every subscriber will get it.",
        (once("event", EVENT, "The quality change."),),
        TypedPublish,
        lambda request: (request.owner, request.event),
        (
            once("id", Leaf.TEXT, "The event's id."),
            many("sentTo", Leaf.TEXT, "An organisation that will get it."),
            once("again", Leaf.FLAG, "It had been published before; nothing was done."),
        ),
        Published,
        attributes("id", "sent_to", "again"),
    ),
    _pull(),
    _local(
        "acknowledge",
        "Says that deliveries up to a number are dealt with: the peer forgets them.",
        (_ID, once("upto", Leaf.NUMBER, "The last number that is dealt with.")),
        AcknowledgeDeliveries,
        attributes("owner", "id", "upto"),
    ),
)
