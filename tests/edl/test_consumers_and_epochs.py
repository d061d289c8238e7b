"""A consumer heeds only answers of the producer's present epoch, and repeats failed changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.edl.link import LinkState
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Document,
    Done,
    Envelope,
    Fault,
    Fence,
    FetchDocument,
    Gossip,
    Hello,
    Notify,
    PullGap,
    RelayAcknowledgement,
    SendAll,
    SubChanged,
)
from qns.federation.document_xml import write_federation
from qns.iil.requests import ListSubscriptions, PullDeliveries, Subscribe, Unsubscribe
from qns.peer.inputs import Answered, Received
from tests.edl.lone_peer import LonePeer
from tests.edl.peers import federation, notification
from tests.edl.test_skips_and_gaps import entry
from tests.edl.test_views_at_producers import element

ROME = "Report where Station = 'Rome'"
BARI = "Report where Station = 'Bari'"


@pytest.fixture
def consumer() -> LonePeer:
    lone = LonePeer("C", federation("P", "C"))
    lone.settle()
    return lone


def pending(consumer: LonePeer) -> tuple[str, ...]:
    (found,) = consumer.do(ListSubscriptions("user"))
    (subscription,) = found.subscriptions
    producers: tuple[str, ...] = subscription.pending
    return producers


def change_under_way(consumer: LonePeer) -> ChangeSub:
    request = consumer.request("P")
    assert isinstance(request, ChangeSub)
    return request


def in_force(change: ChangeSub, *, epoch: int = 1, upto: int = 0) -> SubChanged:
    return SubChanged(change.version, epoch, upto, 1, ())


def test_subscription_is_stable_when_its_view_is_in_force(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    assert pending(consumer) == ("P",)
    consumer.answer("P", in_force(change_under_way(consumer)))
    assert [each["do"] for each in consumer.last.records] == ["stable"]
    assert consumer.last.outcomes.stable == ["s"]
    assert pending(consumer) == ()


def test_subscription_is_pending_until_the_last_event_of_its_backlog(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    consumer.answer("P", in_force(change_under_way(consumer), upto=2))
    for number, expected in ((1, ("P",)), (2, ())):
        consumer.receive("P", Notify((notification("P", f"e{number}", entry(number)),)))
        assert pending(consumer) == expected
    (found,) = consumer.do(PullDeliveries("user", "s"))
    assert [each.event for each in found.deliveries] == ["e1", "e2"]


def test_reply_of_an_earlier_epoch_of_the_producer_confirms_nothing(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    change = change_under_way(consumer)
    consumer.receive("P", consumer.hello_of("P", epoch=2))
    consumer.answer("P", in_force(change, epoch=1))
    assert pending(consumer) == ("P",)
    assert isinstance(consumer.request("P"), Hello)


def test_reply_of_another_incarnation_of_the_producer_confirms_nothing(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    change = change_under_way(consumer)
    consumer.answer("P", SubChanged(change.version, 1, 0, 7, ()))
    assert pending(consumer) == ("P",)


def test_delayed_hello_of_an_earlier_epoch_confirms_nothing(consumer: LonePeer) -> None:
    consumer.receive("P", consumer.hello_of("P", epoch=2))
    consumer.do(Subscribe("user", "Report", id="s"))
    change = change_under_way(consumer)
    hello = consumer.hello_of("P", epoch=1, held=(change.version, change.digest))
    consumer.receive("P", hello)
    assert pending(consumer) == ("P",)


@pytest.mark.parametrize("wrong", ["version", "digest"])
def test_hello_of_a_producer_with_another_view_confirms_nothing(
    consumer: LonePeer, wrong: str
) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    change = change_under_way(consumer)
    held = (change.version + 1, change.digest)
    if wrong == "digest":
        held = (change.version, str(Digest([element(ROME)])))
    consumer.receive("P", consumer.hello_of("P", held=held))
    assert pending(consumer) == ("P",)


def test_hello_of_a_producer_with_the_view_makes_the_subscription_stable(
    consumer: LonePeer,
) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    change = change_under_way(consumer)
    consumer.receive("P", consumer.hello_of("P", held=(change.version, change.digest)))
    assert pending(consumer) == ()


def test_view_that_an_earlier_epoch_sent_is_confirmed_by_a_second_hello_only() -> None:
    lone = LonePeer("C", federation("P", "C"))
    lone.settle()
    lone.do(Subscribe("user", "Report", id="s"))
    change = change_under_way(lone)
    lone.start()  # the answer to the change is lost
    held = (change.version, change.digest)
    lone.answer("P", lone.hello_of("P", held=held, held_epoch=1))
    assert pending(lone) == ("P",)
    assert isinstance(lone.request("P"), Hello)
    lone.answer("P", lone.hello_of("P", held=held))
    assert pending(lone) == ()


def test_fence_of_a_restored_producer_makes_subscriptions_pending_again(
    consumer: LonePeer,
) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    consumer.settle()
    assert pending(consumer) == ()
    consumer.receive("P", Notify((notification("P", "e1", entry(1)),)))
    fenced = entry(1, epoch=2, fences=(Fence(2, 1),))
    consumer.receive("P", Notify((notification("P", "e2", fenced),)))
    assert pending(consumer) == ("P",)
    assert isinstance(consumer.request("P"), Hello)


# --- changes that fail ----------------------------------------------------------------------------


def test_failed_change_is_repeated_together_with_later_ones(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", ROME, id="rome"))
    consumer.do(Subscribe("user", BARI, id="bari"))
    assert change_under_way(consumer).added == (element(ROME),)
    consumer.answer("P", None)
    consumer.wait(3.0)
    change = change_under_way(consumer)
    assert change.base == 0
    assert sorted(change.added) == sorted((element(ROME), element(BARI)))
    assert change.digest == str(Digest(change.added))


def test_failed_change_does_not_undo_a_later_one(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", ROME, id="rome"))
    consumer.do(Subscribe("user", BARI, id="bari"))
    consumer.do(Unsubscribe("user", "rome"))
    consumer.answer("P", None)
    consumer.wait(3.0)
    change = change_under_way(consumer)
    assert change.added == (element(BARI),)
    assert change.removed == ()
    assert change.digest == str(Digest([element(BARI)]))


def test_change_that_does_not_fit_is_followed_by_the_complete_view(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", ROME, id="rome"))
    consumer.settle()
    consumer.do(Subscribe("user", BARI, id="bari"))
    assert change_under_way(consumer).base == 1
    consumer.answer("P", SendAll())
    change = change_under_way(consumer)
    assert change.base is None
    assert sorted(change.added) == sorted((element(ROME), element(BARI)))


def test_producer_with_another_view_gets_the_complete_view(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", ROME, id="rome"))
    consumer.settle()
    consumer.receive("P", consumer.hello_of("P", held=(1, str(Digest()))))
    change = change_under_way(consumer)
    assert change.base is None
    assert change.added == (element(ROME),)


def test_new_subscription_is_pending_although_the_view_before_it_is_in_force(
    consumer: LonePeer,
) -> None:
    consumer.do(Subscribe("other", ROME, id="rome"))
    consumer.settle()
    consumer.do(Subscribe("user", BARI, id="bari"))
    assert pending(consumer) == ("P",)


# --- lost epochs and organisations that return ----------------------------------------------------


def test_peer_whose_epochs_were_lost_begins_one_after_the_newest_that_others_know(
    consumer: LonePeer,
) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    consumer.settle()
    consumer.receive("P", consumer.hello_of("P", held_epoch=9))
    assert consumer.peer.identity.epoch == 10
    assert consumer.peer.edl.consumer.standing("P").consumer_epoch == 10
    hello = consumer.request("P")
    assert isinstance(hello, Hello)
    assert hello.epoch == 10


def test_implausible_claim_about_the_epoch_is_ignored(consumer: LonePeer) -> None:
    consumer.receive("P", consumer.hello_of("P", held_epoch=2**45))
    assert consumer.peer.identity.epoch == 1


def test_producer_that_has_joined_again_is_asked_for_its_view(consumer: LonePeer) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    consumer.settle()
    document = consumer.document
    consumer.install(document.without("P").with_organisation(document["P"]))
    assert pending(consumer) == ("P",)
    hello = consumer.request("P")
    assert isinstance(hello, Hello)
    assert hello.standing.producer_incarnation == consumer.document["P"].incarnation


def test_subscription_is_pending_at_a_returned_producer_whose_view_has_the_old_version() -> None:
    start = federation("C", "P")
    lone = LonePeer("C", start.without("P"))
    lone.do(Subscribe("user", "Report", id="s"))
    joined = lone.document.with_organisation(start["P"])
    lone.install(joined)
    lone.settle()
    assert pending(lone) == ()
    lone.install(joined.without("P").with_organisation(start["P"]))
    assert pending(lone) == ("P",)


def test_event_that_a_producer_owes_is_accepted_after_it_left_and_the_consumer_restarted(
    consumer: LonePeer,
) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    consumer.settle()
    consumer.install(consumer.document.without("P"))
    consumer.start()
    reply = consumer.receive("P", Notify((notification("P", "e1", entry(1)),)))
    assert [each.taken for each in reply.outcomes] == [True]
    (found,) = consumer.do(PullDeliveries("user", "s"))
    assert [each.event for each in found.deliveries] == ["e1"]


def test_event_is_delivered_before_a_later_message_of_the_same_turn_makes_it_wait(
    consumer: LonePeer,
) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    consumer.settle()
    item = notification("P", "e1", entry(1))
    hello = replace(consumer.hello_of("P", epoch=2), fences=(Fence(2, 1),))
    envelopes = [Envelope("P", 1, (), body) for body in (Notify((item,)), hello)]
    consumer.do(*map(Received, envelopes))
    assert pending(consumer) == ("P",)
    (found,) = consumer.do(PullDeliveries("user", "s"))
    assert [each.event for each in found.deliveries] == ["e1"]


# --- gaps and acknowledgements --------------------------------------------------------------------


def test_gap_is_pulled_after_a_while_and_again_if_the_pull_fails(consumer: LonePeer) -> None:
    consumer.receive("P", Notify((notification("P", "e3", entry(3)),)))
    consumer.wait(0.5)
    assert consumer.request("P") is None
    consumer.wait(1.0)
    for _ in range(2):
        pull = consumer.request("P")
        assert isinstance(pull, PullGap)
        assert (pull.standing.last, pull.upto) == (0, 2)
        consumer.answer("P", None)
        consumer.wait(3.0)


def test_gap_that_was_open_at_a_restart_is_pulled(consumer: LonePeer) -> None:
    consumer.receive("P", Notify((notification("P", "e3", entry(3)),)))
    consumer.start()
    consumer.settle()
    consumer.wait(1.5)
    assert isinstance(consumer.request("P"), PullGap)


def test_event_that_came_through_another_peer_is_acknowledged_to_its_producer() -> None:
    lone = LonePeer("C", federation("P", "F", "C"))
    lone.settle()
    item = notification("P", "e1", entry(1), path=("P", "F"))
    lone.receive("F", Notify((item,)))
    assert lone.request("P") is None
    lone.wait(1.0)
    for _ in range(2):
        request = lone.request("P")
        assert isinstance(request, Acknowledge)
        assert request.standing.last == 1
        lone.answer("P", Fault("too much to do"))  # it is sent again after a pause
        lone.wait(3.0)


def test_relay_that_reports_no_way_to_the_producer_gets_no_pause() -> None:
    """The relay itself works, so that nothing else may wait for it."""
    lone = LonePeer("C", federation("P", "F", "C"))
    lone.settle()
    lone.receive("F", Notify((notification("P", "e1", entry(1), path=("P", "F")),)))
    lone.wait(1.0)
    assert isinstance(lone.request("P"), Acknowledge)
    lone.answer("P", None)
    lone.wait(1.0)
    assert isinstance(lone.request("F"), RelayAcknowledgement)
    lone.answer("F", Fault("F knows no way to P"), unreachable=("P",))
    link = lone.peer.edl.forwarder.links["F"]
    assert link.state is LinkState.IDLE
    assert link.problem == ""
    lone.wait(1.0)
    assert not isinstance(lone.request("F"), RelayAcknowledgement)


def test_relay_that_refuses_an_acknowledgement_without_a_report_gets_a_pause() -> None:
    lone = LonePeer("C", federation("P", "F", "C"))
    lone.settle()
    lone.receive("F", Notify((notification("P", "e1", entry(1), path=("P", "F")),)))
    lone.wait(1.0)
    lone.answer("P", None)
    lone.wait(1.0)
    lone.answer("F", Fault("too much to do"))
    assert lone.peer.edl.forwarder.links["F"].state is LinkState.RESTING
    lone.wait(3.0)
    assert isinstance(lone.request("F"), RelayAcknowledgement)


def test_acknowledgement_that_no_relay_could_carry_is_in_the_hello_after_the_break() -> None:
    lone = LonePeer("C", federation("P", "F", "C"))
    lone.settle()
    lone.receive("F", Notify((notification("P", "e1", entry(1), path=("P", "F")),)))
    lone.wait(1.0)
    lone.answer("P", None)
    lone.wait(1.0)
    lone.answer("F", Fault("F knows no way to P"), unreachable=("P",))
    lone.wait(10.0)
    lone.answer("P", Done())  # the first request after the break
    hello = lone.request("P")
    assert isinstance(hello, Hello)
    assert hello.standing.last == 1


# --- answers that do not count --------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["sender", "number"])
def test_answer_that_the_producer_cannot_have_given_confirms_nothing(
    consumer: LonePeer, wrong: str
) -> None:
    consumer.do(Subscribe("user", "Report", id="s"))
    change = change_under_way(consumer)
    reply = in_force(change, upto=-1 if wrong == "number" else 0)
    sender = "C" if wrong == "sender" else "P"
    send = consumer.under_way.pop("P")
    consumer.do(Answered(send.number, Envelope(sender, 1, (), reply)))
    assert pending(consumer) == ("P",)


def test_newer_document_is_fetched_again_if_the_first_attempt_fails(consumer: LonePeer) -> None:
    newer = consumer.document.hosting("P", ["Report"])
    consumer.do(Received(Envelope("P", newer.version, (), Gossip())))
    assert isinstance(consumer.request("P"), FetchDocument)
    consumer.answer("P", None)
    consumer.wait(3.0)
    assert isinstance(consumer.request("P"), FetchDocument)
    consumer.answer("P", Document(write_federation(newer)))
    assert consumer.peer.federation.version == newer.version
