"""zeep uses both ports of a peer with nothing but the WSDL that the peer serves."""

from __future__ import annotations

from datetime import timedelta
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


@pytest.fixture
def local(peer: str) -> Any:
    """Returns the port Local, which is the first of its WSDL, so that nothing selects it."""
    return Client(f"{peer}local?wsdl").service


@pytest.fixture
def other(peer: str) -> Any:
    """Returns the port Peer, for calls in the name of another organisation."""
    return Client(f"{peer}peer?wsdl").service


def fault_fields(fault: Fault) -> dict[str, str]:
    """Returns the name and the texts of a typed fault."""
    (typed,) = fault.detail
    texts = {child.tag.rpartition("}")[2]: child.text for child in typed}
    return {"kind": typed.tag.rpartition("}")[2], **texts}


def test_user_subscribes_publishes_pulls_and_acknowledges(local: Any) -> None:
    subscribed = local.subscribe(
        owner=OWNER, subscription=f"{CLASS} where Name.accuracy <= medium", id="low", lifetime=3600
    )
    assert (subscribed.id, sorted(subscribed.pending)) == ("low", ["CoC", "INAIL"])
    assert subscribed.expires > 0
    assert subscribed.ends is None  # the request does not say that the program reads it
    again = local.renew(contract=2, owner=OWNER, id="low", lifetime=3600)
    assert again.ends.utcoffset() == timedelta(0)
    assert again.ends.timestamp() == pytest.approx(again.expires, abs=0.001)
    (listed,) = local.listSubscriptions(contract=2, owner=OWNER)
    assert listed.ends == again.ends

    published = local.publish(owner=OWNER, event=EVENT)
    assert (published.id, published.sentTo, published.again) == ("e1", [], False)
    assert local.publish(owner=OWNER, event=EVENT).again is True

    (delivery,) = local.pull(owner=OWNER, id="low", after=0, wait=10)
    assert (delivery.number, delivery.source, delivery.event) == (1, "INPS", "e1")
    assert "Niccolò Rossi" in delivery.xml.decode()

    local.acknowledge(owner=OWNER, id="low", upto=1)
    assert not local.pull(owner=OWNER, id="low", after=0)


def test_user_pauses_resumes_renews_and_ends_a_subscription(local: Any) -> None:
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
def test_wrong_request_gives_a_typed_fault(
    local: Any, request_: dict[str, str], kind: str, problem: str, remedy: str
) -> None:
    local.subscribe(owner=OWNER, subscription="Enterprise", id="taken")
    with pytest.raises(Fault) as caught:
        local.subscribe(**request_)
    assert caught.value.code.rpartition(":")[2] == "Client"
    assert fault_fields(caught.value).items() >= {
        ("kind", kind),
        ("problem", problem),
        ("remedy", remedy),
    }


def test_organisation_sends_its_view_and_pulls_a_matching_event(local: Any, other: Any) -> None:
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
    assert (notification.event, notification.entry.receiver) == ("e1", "CoC")
    assert notification.entry.number == 1
    assert notification.path == ["INPS"]
    assert "Niccolò Rossi" in notification.xml.decode()


def test_organisation_notifies_and_a_user_pulls_the_event(local: Any, other: Any) -> None:
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


def test_organisation_outside_the_federation_gets_a_typed_fault(other: Any) -> None:
    with pytest.raises(Fault) as caught:
        other.gossip(origin={"organisation": "Nobody", "document": 1})
    fault = fault_fields(caught.value)
    assert fault["kind"] == "RefusedFault"
    assert fault["problem"] == "Nobody is not a member of the federation"
