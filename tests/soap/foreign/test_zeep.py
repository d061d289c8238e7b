"""zeep, which knows nothing of QNS but the WSDL that the peer serves."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from zeep import Client
from zeep.exceptions import Fault

OWNER = "anna"
CLASS = "Enterprise/Holder"
ORIGIN = {"organisation": "CoC", "document": 1}
HELLO = {
    "joined": 1,
    "epoch": 1,
    "number": 0,
    "heldEpoch": 0,
    "heldVersion": 0,
    "heldDigest": "",
    "standing": {"joined": 1, "own": 1, "consumerEpoch": 1, "epoch": 0, "last": 0},
    "version": 0,
    "digest": "",
}
EVENT = {
    "id": "e1",
    "class": CLASS,
    "source": "INPS",
    "data": [{"property": "Name", "value": "Niccolò Rossi"}],
    "quality": [{"property": "Name", "dimension": "accuracy", "value": "low"}],
}


def bound(wsdl: str, port: str) -> Any:
    client = Client(wsdl)
    (service,) = (s.name for s in client.wsdl.services.values() if port in s.ports)
    return client.bind(service, port)


@pytest.fixture
def local(peer: str) -> Any:
    return bound(f"{peer}local?wsdl", "Local")


@pytest.fixture
def other(peer: str) -> Any:
    """The Peer port, as another organisation sees it."""
    return bound(f"{peer}peer?wsdl", "Peer")


def told(fault: Fault) -> dict[str, str]:
    """The typed fault: its name, and its texts."""
    (typed,) = fault.detail
    texts = {child.tag.rpartition("}")[2]: child.text for child in typed}
    return {"kind": typed.tag.rpartition("}")[2], **texts}


def test_a_user_subscribes_gets_what_is_published_and_acknowledges_it(local: Any) -> None:
    subscribed = local.subscribe(
        owner=OWNER, subscription=f"{CLASS} where Name.accuracy <= medium", id="low", lifetime=3600
    )
    assert (subscribed.id, sorted(subscribed.pending)) == ("low", ["CoC", "INAIL"])
    assert subscribed.expires > 0

    published = local.publish(owner=OWNER, event=EVENT)
    assert (published.id, published.sentTo, published.again) == ("e1", [], False)
    assert local.publish(owner=OWNER, event=EVENT).again is True

    (delivery,) = local.pull(owner=OWNER, id="low", after=0, wait=10)
    assert (delivery.number, delivery.source, delivery.event) == (1, "INPS", "e1")
    assert "Niccolò Rossi" in delivery.xml.decode()

    local.acknowledge(owner=OWNER, id="low", upto=1)
    assert not local.pull(owner=OWNER, id="low", after=0)


def test_a_subscription_lives_until_it_is_ended(local: Any) -> None:
    local.subscribe(owner=OWNER, subscription=CLASS, id="all")
    local.pause(owner=OWNER, id="all")
    (listed,) = local.listSubscriptions(owner=OWNER)
    assert (listed.id, listed.text, listed.paused, listed.expires) == ("all", CLASS, True, None)
    local.resume(owner=OWNER, id="all")
    assert local.renew(owner=OWNER, id="all", lifetime=60).expires > 0
    assert local.unsubscribe(owner=OWNER, id="all") == 0
    assert not local.listSubscriptions(owner=OWNER)


@pytest.mark.parametrize(
    ("request_", "kind", "problem", "remedy"),
    [
        (
            {"owner": OWNER, "subscription": "Enterprise/Holdr"},
            "InvalidFault",
            "unknown class 'Enterprise/Holdr'",
            "did you mean Enterprise/Holder or Enterprise?",
        ),
        (
            {"owner": OWNER, "subscription": CLASS, "id": "taken"},
            "RefusedFault",
            "subscription taken exists already",
            "choose another id",
        ),
    ],
)
def test_a_mistake_is_told_as_a_typed_fault(
    local: Any, request_: dict[str, str], kind: str, problem: str, remedy: str
) -> None:
    local.subscribe(owner=OWNER, subscription="Enterprise", id="taken")
    with pytest.raises(Fault) as caught:
        local.subscribe(**request_)
    assert caught.value.code.rpartition(":")[2] == "Client"
    assert told(caught.value).items() >= {
        ("kind", kind),
        ("problem", problem),
        ("remedy", remedy),
    }


def test_an_organisation_tells_its_view_and_gets_what_it_asked_for(local: Any, other: Any) -> None:
    wanted = f'<subscription xmlns="urn:qns:d2q:1" class="{CLASS}"/>'
    change = {
        "origin": ORIGIN,
        "joined": 1,
        "own": 1,
        "epoch": 1,
        "version": 1,
        "added": [wanted],
    }
    refused = other.changeSub(**change, digest="0" * 64)
    assert (refused.changed, refused.sendAll) == (None, True)
    answer = other.changeSub(**change, digest=sha256(wanted.encode()).hexdigest())
    assert (answer.origin.organisation, answer.sendAll) == ("INPS", False)
    assert (answer.changed.version, answer.changed.joined, answer.changed.upto) == (1, 1, 0)

    assert local.publish(owner=OWNER, event=EVENT).sentTo == ["CoC"]
    pulled = other.pullGap(origin=ORIGIN, standing=HELLO["standing"], upto=1)
    (notification,) = pulled.notification
    assert (notification.event, notification.entry.receiver, notification.entry.number) == (
        *("e1", "CoC", 1),
    )
    assert notification.path == ["INPS"]
    assert "Niccolò Rossi" in notification.xml.decode()


def test_an_organisation_notifies_and_a_user_gets_it(local: Any, other: Any) -> None:
    local.subscribe(owner=OWNER, subscription=CLASS, id="all")
    theirs = other.hello(origin=ORIGIN, hello=HELLO).hello
    held = {
        "heldEpoch": theirs.epoch,
        "heldVersion": theirs.version,
        "heldDigest": theirs.digest,
    }
    other.hello(origin=ORIGIN, hello={**HELLO, **held})
    (listed,) = local.listSubscriptions(owner=OWNER)
    assert listed.pending == ["INAIL"]

    xml = f'<event xmlns="urn:qns:d2q:1" id="c1" class="{CLASS}" source="CoC"><data/></event>'
    notification = {
        "source": "CoC",
        "joined": 1,
        "epoch": 1,
        "sequence": 1,
        "event": "c1",
        "xml": xml.encode(),
        "remaining": 60,
        "entry": {"receiver": "INPS", "joined": 1, "epoch": 1, "number": 1, "confirmed": 0},
        "path": ["CoC"],
    }
    wrong = {**notification, "event": "c2"}
    notified = other.notify(origin=ORIGIN, notification=[wrong, notification])
    assert [(each.taken, each.permanent) for each in notified.outcome] == [
        (False, True),
        (True, False),
    ]
    assert notified.outcome[0].reason == "the notification of c2 carries event c1"
    assert notified.standing.last == 1

    (delivery,) = local.pull(owner=OWNER, id="all", after=0, wait=10)
    assert (delivery.number, delivery.source, delivery.event) == (1, "CoC", "c1")
    assert delivery.xml == xml.encode()


def test_whoever_is_not_in_the_federation_gets_a_typed_fault(other: Any) -> None:
    with pytest.raises(Fault) as caught:
        other.gossip(origin={"organisation": "Nobody", "document": 1})
    fault = told(caught.value)
    assert fault["kind"] == "RefusedFault"
    assert fault["problem"] == "Nobody is not a member of the federation"
