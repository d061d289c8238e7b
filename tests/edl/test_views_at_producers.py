"""A producer puts only those changes of a view in force that fit what it has."""

from __future__ import annotations

import pytest

from qns.cbr.subscription import Subscription
from qns.d2q.event_json import EventReader
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import WEATHER
from qns.d2q.subscription_xml import write_subscription
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import ChangeSub, Fault, SendAll, SubChanged
from qns.iil.requests import Publish
from tests.edl.lone_peer import LonePeer
from tests.edl.peers import federation


def element(text: str) -> str:
    subscription: Subscription = parse_subscription(text, WEATHER)
    return write_subscription(subscription, WEATHER).decode()


ROME = element("Report where Station = 'Rome'")
BARI = element("Report where Station = 'Bari'")
WIND = element("Report/Wind")


def change(
    *added: str,
    removed: tuple[str, ...] = (),
    view: tuple[str, ...] | None = None,
    base: int | None = None,
    version: int = 1,
    epoch: int = 1,
) -> ChangeSub:
    """Returns a change of C's view, after which the view is `view` or, by default, `added`."""
    digest = str(Digest(added if view is None else view))
    return ChangeSub(1, 1, epoch, base, version, added, removed, digest)


@pytest.fixture
def producer() -> LonePeer:
    lone = LonePeer("P", federation("P", "C"))
    lone.settle()
    assert isinstance(lone.receive("C", change(ROME)), SubChanged)
    return lone


def view(producer: LonePeer) -> set[str]:
    return set(producer.peer.edl.producer.table.view("C"))


def publish(producer: LonePeer, id: str, data_class: str = "Report", **fields: object) -> None:
    event = {"id": id, "class": data_class, "source": "P", **fields}
    producer.do(Publish(EventReader(WEATHER).from_fields(event)))


def test_change_that_is_based_on_the_held_version_is_applied(producer: LonePeer) -> None:
    delta = change(BARI, view=(ROME, BARI), base=1, version=2)
    assert isinstance(producer.receive("C", delta), SubChanged)
    assert view(producer) == {ROME, BARI}


def test_change_that_is_based_on_another_version_is_answered_with_send_all(
    producer: LonePeer,
) -> None:
    delta = change(BARI, view=(ROME, BARI), base=5, version=6)
    assert producer.receive("C", delta) == SendAll()
    assert view(producer) == {ROME}


def test_change_that_is_based_on_a_view_of_another_epoch_is_answered_with_send_all(
    producer: LonePeer,
) -> None:
    delta = change(BARI, view=(ROME, BARI), base=1, version=2, epoch=2)
    assert producer.receive("C", delta) == SendAll()
    assert view(producer) == {ROME}


def test_delayed_change_does_not_replace_a_newer_view(producer: LonePeer) -> None:
    producer.receive("C", change(BARI, version=3))
    reply = producer.receive("C", change(ROME, version=2))
    assert isinstance(reply, Fault)
    assert reply.permanent
    assert view(producer) == {BARI}


def test_delayed_change_of_an_earlier_epoch_does_not_replace_a_newer_view(
    producer: LonePeer,
) -> None:
    producer.receive("C", change(BARI, version=1, epoch=2))
    reply = producer.receive("C", change(ROME, version=7, epoch=1))
    assert isinstance(reply, Fault)
    assert view(producer) == {BARI}


def test_repeated_change_is_confirmed_again_and_changes_nothing(producer: LonePeer) -> None:
    first = producer.receive("C", change(BARI, version=2))
    assert producer.receive("C", change(BARI, version=2)) == first
    assert view(producer) == {BARI}


def test_complete_view_of_the_held_version_is_applied_if_its_digest_differs(
    producer: LonePeer,
) -> None:
    assert isinstance(producer.receive("C", change(BARI)), SubChanged)
    assert view(producer) == {BARI}


def test_change_after_which_the_view_has_another_digest_is_answered_with_send_all(
    producer: LonePeer,
) -> None:
    delta = change(BARI, view=(BARI,), base=1, version=2)
    assert producer.receive("C", delta) == SendAll()
    assert view(producer) == {ROME}


def test_change_that_removes_an_unknown_element_is_answered_with_send_all(
    producer: LonePeer,
) -> None:
    delta = change(BARI, removed=(WIND,), view=(ROME, BARI), base=1, version=2)
    assert producer.receive("C", delta) == SendAll()
    assert view(producer) == {ROME}


def test_hello_with_the_held_view_makes_it_a_view_of_the_new_epoch(producer: LonePeer) -> None:
    standing = producer.standing_of("C", 0)
    digest = str(Digest([ROME]))
    hello = producer.hello_of("C", epoch=2, version=1, digest=digest, standing=standing)
    producer.receive("C", hello)
    delta = change(BARI, view=(ROME, BARI), base=1, version=2, epoch=2)
    assert isinstance(producer.receive("C", delta), SubChanged)


@pytest.mark.parametrize(("version", "held"), [(1, BARI), (2, ROME)])
def test_hello_with_another_version_or_digest_leaves_the_view_to_the_old_epoch(
    producer: LonePeer, version: int, held: str
) -> None:
    hello = producer.hello_of("C", epoch=2, version=version, digest=str(Digest([held])))
    producer.receive("C", hello)
    delta = change(BARI, view=(ROME, BARI), base=1, version=2, epoch=2)
    assert producer.receive("C", delta) == SendAll()


def test_backlog_has_only_the_available_events_that_the_new_part_matches(
    producer: LonePeer,
) -> None:
    publish(producer, "e1", available="INF")
    publish(producer, "e2", "Report/Wind", available="INF")
    publish(producer, "e3", "Report/Wind")  # not available to late subscribers
    publish(producer, "e4", "Report/Wind", available="INF")
    reply = producer.receive("C", change(WIND, view=(ROME, WIND), base=1, version=2))
    assert isinstance(reply, SubChanged)
    assert reply.upto == 2
    stream = producer.peer.edl.producer.streams["C"]
    assert [row.event for row in stream.owed.between(1, 9)] == ["e2", "e4"]


def test_event_that_was_sent_before_is_not_in_the_backlog(producer: LonePeer) -> None:
    publish(producer, "e1", data={"Station": "Rome"}, available="INF")
    wide = element("Report")
    delta = change(wide, removed=(ROME,), view=(wide,), base=1, version=2)
    reply = producer.receive("C", delta)
    assert isinstance(reply, SubChanged)
    assert reply.upto == 1


@pytest.mark.parametrize("restarts", [False, True])
def test_events_of_a_class_that_is_not_hosted_any_more_are_in_no_backlog(
    producer: LonePeer, restarts: bool
) -> None:
    publish(producer, "e1", "Report/Wind", available="INF")
    producer.install(producer.document.hosting("P", ["Report"]))
    if restarts:
        producer.start()
    reply = producer.receive("C", change(WIND, version=2))
    assert isinstance(reply, SubChanged)
    assert reply.upto == 0
