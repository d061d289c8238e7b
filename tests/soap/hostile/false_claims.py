"""Valid messages with false claims about their sender, their receiver or their content."""

from __future__ import annotations

from tests.soap.hostile.case import Answer, Case, local, peer
from tests.soap.hostile.wire import (
    ask_local,
    ask_peer,
    base64,
    change_sub,
    element,
    elements,
    entry,
    event_xml,
    greeting,
    notification,
    notify,
    publish,
    pull,
    standing,
    subscribe,
)

_LARGEST = 2**63 - 1


def carrying(xml: bytes) -> bytes:
    return notify(notification(xml=base64(xml)))


def _skip(**changed: object) -> bytes:
    sound = {"source": "INAIL", "joined": 1, "first": entry(), "last": 5, "reason": "lost"}
    skip = element("skip", elements(**sound | changed))
    return ask_peer("notify", skip)


def _many_names() -> bytes:
    names = "".join(f"<a{n:05}{'b' * 60}/>" for n in range(8_000))
    return f"<event>{names}</event>".encode()


_DOCTYPE = b"<!DOCTYPE event []>"
_LAUGHS = b'<!DOCTYPE e [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><event>&b;</event>'
_UTF_16 = event_xml().decode().replace("UTF-8", "UTF-16").encode("utf-16")
_SPACESHIP = event_xml().replace(b"Enterprise/Holder", b"Spaceship")
_ROTTEN = notification(xml=base64(b"<rotten/>"))
_NO_CHANGE = elements(joined=1, own=1, epoch=1, version=1, digest="0")


def _placed(**changed: object) -> bytes:
    return notify(notification(entry=entry(**changed)))


def _hello(**changed: object) -> bytes:
    return ask_peer("hello", element("hello", greeting()), **changed)


def _fetch(**changed: object) -> bytes:
    return ask_peer("fetchDocument", **changed)


def _row(name: str) -> str:
    return elements(organisation=name, epoch=1, version=1, unreachable="INPS")


def _strangers() -> bytes:
    return ask_peer("gossip", reachability=[_row(f"stranger {n}") for n in range(3_000)])


def _attributes() -> bytes:
    names = " ".join(f"a{n}=''" for n in range(60_000))
    return f"<event {names}/>".encode()


def _changed() -> bytes:
    """Returns a notification of e1, which was delivered already, with other content."""
    xml = event_xml("e1").replace(b"Mecalla", b"Mallory")
    child = element("child", entry(receiver="CoC"))
    return notify(notification(event="e1", xml=base64(xml), entry=entry() + child))


def _pull_gap(upto: int = 1, **changed: object) -> bytes:
    return ask_peer("pullGap", element("standing", standing(**changed)) + elements(upto=upto))


def _acknowledge(**changed: object) -> bytes:
    return ask_peer("acknowledgeStream", element("standing", standing(**changed)))


def _done(**contents: object) -> bytes:
    return ask_local("acknowledge", **contents)


def _tokened(token: str) -> bytes:
    return pull().replace(b"<owner>", element("token", token).encode() + b"<owner>", 1)


CASES: list[Case] = [
    peer("an unknown sender", lambda: notify(organisation="SPECTRE"), Answer.REFUSED),
    peer("a sender without a name", lambda: notify(organisation=""), Answer.REFUSED),
    peer(
        "a sender of 500,000 characters", lambda: notify(organisation="x" * 500_000), Answer.REFUSED
    ),
    peer("an unknown sender sends hello", lambda: _hello(organisation="SPECTRE"), Answer.REFUSED),
    peer("an unknown sender fetches", lambda: _fetch(organisation="SPECTRE"), Answer.REFUSED),
    peer("an unknown document", lambda: notify(document=999), Answer.BUSY),
    peer("a document of 2^63 - 1", lambda: notify(document=_LARGEST), Answer.REFUSED),
    peer("a document of 2^63", lambda: notify(document=2**63)),
    peer(
        "reachability of strangers",
        lambda: ask_peer("gossip", reachability=_row("SPECTRE")),
        Answer.SERVED,
    ),
    peer("reachability of 5,000 strangers", lambda: _strangers(), Answer.SERVED),
    peer("for its own sender", lambda: _placed(receiver="INAIL"), Answer.NOT_TAKEN),
    peer(
        "for another incarnation of another organisation",
        lambda: _placed(receiver="CoC", joined=7),
        Answer.NOT_TAKEN,
    ),
    peer(
        "an acknowledgement that has not come this way",
        lambda: ask_peer(
            "relayAcknowledgement",
            elements(producer="INPS", consumer="CoC", standing=standing(last=1), path="CoC"),
        ),
        Answer.REFUSED,
    ),
    peer(
        "for a receiver of 500,000 characters",
        lambda: _placed(receiver="x" * 500_000),
        Answer.NOT_TAKEN,
    ),
    peer("for no receiver", lambda: _placed(receiver=""), Answer.NOT_TAKEN),
    peer("for a later incarnation", lambda: _placed(joined=7), Answer.NOT_TAKEN),
    peer("of another organisation", lambda: notify(notification(source="CoC")), Answer.NOT_TAKEN),
    peer("of a stranger", lambda: notify(notification(source="SPECTRE")), Answer.NOT_TAKEN),
    peer(
        "of the receiver itself",
        lambda: notify(notification(source="INPS", path="INPS")),
        Answer.NOT_TAKEN,
    ),
    peer("a number of 2^63 - 1", lambda: _placed(number=_LARGEST), Answer.REFUSED),
    peer("a number of 2^63", lambda: _placed(number=2**63)),
    peer("an epoch of 2^63 - 1", lambda: _placed(epoch=_LARGEST), Answer.REFUSED),
    peer(
        "a future epoch with unknown fences",
        lambda: _placed(epoch=9, confirmed=8),
        Answer.NOT_TAKEN,
    ),
    peer("an event that is no XML", lambda: carrying(b"hello"), Answer.NOT_TAKEN),
    peer("an event of zeros", lambda: carrying(bytes(1_000)), Answer.NOT_TAKEN),
    peer("an event with a DOCTYPE", lambda: carrying(_DOCTYPE + event_xml()), Answer.NOT_TAKEN),
    peer("an event of billion laughs", lambda: carrying(_LAUGHS), Answer.NOT_TAKEN),
    peer("an event in UTF-16", lambda: carrying(_UTF_16), Answer.NOT_TAKEN),
    peer("an event of another id", lambda: carrying(event_xml("e3")), Answer.NOT_TAKEN),
    peer("an event of another source", lambda: carrying(event_xml("e2", "CoC")), Answer.NOT_TAKEN),
    peer("an event of an unknown class", lambda: carrying(_SPACESHIP), Answer.NOT_TAKEN),
    peer("an event that is an envelope", lambda: carrying(notify()), Answer.NOT_TAKEN),
    peer("an event of 8,000 names", lambda: carrying(_many_names()), Answer.NOT_TAKEN),
    peer("an event of 60,000 attributes", lambda: carrying(_attributes()), Answer.NOT_TAKEN),
    peer("an event 10,000 deep", lambda: carrying(b"<a>" * 10_000), Answer.NOT_TAKEN),
    peer("another event with a known id", _changed, Answer.NOT_TAKEN),
    peer("100 events without a valid one", lambda: notify(*[_ROTTEN] * 100), Answer.NOT_TAKEN),
    peer("a skip of another producer", lambda: _skip(source="CoC"), Answer.NOT_TAKEN),
    peer(
        "a skip for its own producer",
        lambda: _skip(first=entry(receiver="INAIL")),
        Answer.NOT_TAKEN,
    ),
    peer("a skip to 2^63", lambda: _skip(last=2**63)),
    peer("changeSub for another incarnation", lambda: change_sub(joined=9), Answer.BUSY),
    peer("changeSub with no D2Q XML", lambda: change_sub(added="Enterprise"), Answer.REFUSED),
    peer(
        "changeSub with a DOCTYPE",
        lambda: change_sub(added="&lt;!DOCTYPE a>&lt;a/>"),
        Answer.REFUSED,
    ),
    peer("changeSub with a wrong base", lambda: change_sub(base=77, version=78), Answer.SERVED),
    peer("changeSub with a wrong digest", lambda: change_sub(digest="f" * 64), Answer.SERVED),
    peer(
        "changeSub of a stranger",
        lambda: ask_peer("changeSub", _NO_CHANGE, organisation="X"),
        Answer.REFUSED,
    ),
    peer(
        "changeSub with an element of 900 KB",
        lambda: change_sub(added="x" * 900_000),
        Answer.REFUSED,
    ),
    peer("pulling 2^53 - 1 numbers", lambda: _pull_gap(upto=2**53 - 1), Answer.SERVED),
    peer("pulling 2^63 - 1 numbers", lambda: _pull_gap(upto=_LARGEST), Answer.REFUSED),
    peer("pulling as another incarnation", lambda: _pull_gap(own=9), Answer.BUSY),
    peer(
        "acknowledging as another incarnation", lambda: _acknowledge(own=9, last=5), Answer.SERVED
    ),
    peer("acknowledging a former epoch", lambda: _acknowledge(consumerEpoch=0), Answer.SERVED),
    local("an unknown subscription", lambda: pull(id="nobody's")),
    local("another user's subscription", lambda: pull(id="s2")),
    local("ending another user's", lambda: ask_local("unsubscribe", id="s2")),
    local("pausing another user's", lambda: ask_local("pause", id="s2")),
    local("resuming another user's", lambda: ask_local("resume", id="s2")),
    local("renewing another user's", lambda: ask_local("renew", id="s2")),
    local("acknowledging another user's", lambda: _done(id="s2", upto=1)),
    local("taking another user's id", lambda: subscribe("Enterprise", id="s2"), Answer.REFUSED),
    local(
        "one's own id for something else", lambda: subscribe("Enterprise", id="s1"), Answer.REFUSED
    ),
    local("an id of path steps", lambda: pull(id="../../etc/passwd")),
    local("an id of SQL", lambda: pull(id="' OR 1=1 --")),
    local("a token of 500,000 characters", lambda: _tokened("x" * 500_000), Answer.SERVED),
    local("acknowledging what was never delivered", lambda: _done(id="nobody's", upto=2**53)),
    local("reading after 2^63 - 1", lambda: pull(after=_LARGEST), Answer.SERVED),
    local("reading 2^63 - 1 deliveries", lambda: pull(after=5, limit=_LARGEST), Answer.SERVED),
    local("publishing for another organisation", lambda: publish(source="INAIL"), Answer.REFUSED),
    local("publishing for a stranger", lambda: publish(source="SPECTRE"), Answer.REFUSED),
    local(
        "publishing a known id with other content",
        lambda: publish(id="p1", quality=None),
        Answer.REFUSED,
    ),
    local(
        "the subscriptions of a stranger",
        lambda: ask_local("listSubscriptions", owner="x"),
        Answer.SERVED,
    ),
]
