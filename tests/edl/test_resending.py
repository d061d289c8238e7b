"""A producer sends again what is not acknowledged, and heeds only present acknowledgements."""

from __future__ import annotations

import pytest

from qns.edl.messages import (
    Acknowledge,
    Done,
    Fault,
    Fence,
    Gossip,
    Hello,
    Notification,
    Notified,
    Notify,
    Standing,
    entry_of,
)
from tests.edl.lone_peer import TAKEN, LonePeer
from tests.edl.peers import federation
from tests.edl.test_adoption import NEVER, NOT_NOW, producer_of, publish


def numbers(lone: LonePeer, to: str) -> list[int]:
    """Returns the numbers of the receiver's own stream in the notify under way."""
    request = lone.request(to)
    if not isinstance(request, Notify):
        return []
    return [
        item.entry.number
        for item in request.items
        if isinstance(item, Notification) and item.entry.receiver == to
    ]


def acknowledged(lone: LonePeer, consumer: str = "C") -> int:
    return lone.peer.edl.producer.streams[consumer].acknowledged


def test_notify_without_an_answer_is_repeated_after_the_pause_of_the_link() -> None:
    lone = producer_of("C")
    publish(lone)
    lone.answer("C", None)
    lone.wait(2.5)  # the link pauses for two seconds at most, and events are overdue after four
    assert numbers(lone, "C") == [1]


def test_notify_that_is_refused_as_a_whole_is_repeated_after_the_pause_of_the_link() -> None:
    lone = producer_of("C")
    publish(lone)
    lone.answer("C", Fault("too much to do"))
    lone.wait(2.5)
    assert 1 in numbers(lone, "C")


def test_event_that_its_consumer_cannot_take_now_is_sent_again() -> None:
    lone = producer_of("C")
    publish(lone)
    lone.answer("C", Notified((NOT_NOW,), lone.standing_of("C", 0)))
    lone.wait(5.0)
    assert numbers(lone, "C") == [1]


def test_event_that_a_forwarder_does_not_pass_on_is_sent_directly_when_it_is_overdue() -> None:
    lone = producer_of("C", "D")
    publish(lone)
    lone.answer("C", Notified((TAKEN,), lone.standing_of("C", 1)))
    assert numbers(lone, "D") == []
    lone.wait(4.5)
    assert numbers(lone, "D") == [1]
    assert numbers(lone, "C") == []


def test_event_that_is_owed_at_a_restart_goes_through_another_peer_if_the_link_is_broken() -> None:
    lone = producer_of("C", "D")
    publish(lone)
    lone.start()
    lone.answer("C", None)
    lone.settle()
    lone.acknowledge("D", 1)
    lone.wait(4.5)
    request = lone.request("D")
    assert isinstance(request, Notify)
    assert [entry_of(item).receiver for item in request.items] == ["C"]


def test_event_in_the_reply_standing_is_acknowledged() -> None:
    lone = producer_of("C")
    publish(lone)
    lone.answer("C", Notified((TAKEN,), lone.standing_of("C", 1)))
    assert acknowledged(lone) == 1
    assert ("P", "e1") not in lone.peer.log
    lone.wait(20.0)
    assert numbers(lone, "C") == []


def test_resending_goes_on_until_everything_was_sent() -> None:
    lone = producer_of("C", notifications_per_call=2)
    for number in range(1, 6):
        publish(lone, f"e{number}", available="INF")
    lone.settle()
    lone.acknowledge("C", 5)
    restored = lone.standing_of("C", 0, consumer_epoch=2)
    lone.receive("C", lone.hello_of("C", epoch=2, standing=restored))
    sent = []
    while numbers(lone, "C"):
        sent.append(numbers(lone, "C"))
        lone.answer("C", Notified((TAKEN,) * len(sent[-1]), None))
    assert sent == [[1, 2], [3, 4], [5]]


def test_event_that_its_consumer_rejects_becomes_a_dead_letter_and_a_skip() -> None:
    lone = producer_of("C")
    publish(lone, "e1")
    publish(lone, "e2")
    lone.answer("C", Notified((NEVER,), lone.standing_of("C", 0)))
    request = lone.request("C")
    assert isinstance(request, Notify)
    kinds = [type(item).__name__ for item in request.items]
    assert kinds == ["Skip", "Notification"]
    letters = lone.peer.edl.forwarder.custody.dead_letters.values()
    assert [(each.receiver, each.event) for each in letters] == [("C", "e1")]
    assert ("P", "e1") in lone.peer.log


# --- acknowledgements -----------------------------------------------------------------------------


def test_restored_consumer_gets_again_what_it_acknowledged_and_is_still_available() -> None:
    lone = producer_of("C")
    publish(lone, available="INF")
    lone.answer("C", Notified((TAKEN,), lone.standing_of("C", 1)))
    hello = lone.hello_of("C", epoch=2, standing=lone.standing_of("C", 0, consumer_epoch=2))
    lone.receive("C", hello)
    assert numbers(lone, "C") == [1]


def test_first_acknowledgement_of_a_new_epoch_may_step_back_like_a_hello() -> None:
    lone = producer_of("C")
    publish(lone, available="INF")
    lone.answer("C", Notified((TAKEN,), lone.standing_of("C", 1)))
    lone.acknowledge("C", 0, consumer_epoch=2)
    assert acknowledged(lone) == 0


def test_first_acknowledgement_in_a_new_epoch_of_the_producer_may_step_back_like_a_hello() -> None:
    lone = producer_of("C")
    publish(lone, available="INF")
    lone.answer("C", Notified((TAKEN,), lone.standing_of("C", 1)))
    forgotten = lone.standing_of("C", 0, epoch=7)._replace(fences=(Fence(7, 1),))
    lone.receive("C", Acknowledge(forgotten))  # another process began it with the same numbers
    assert [tuple(each) for each in lone.peer.edl.producer.streams["C"].fences] == [(8, 1)]
    lone.settle()
    lone.acknowledge("C", 0)  # the fence has set the stream back
    assert acknowledged(lone) == 0
    lone.wait(5.0)
    assert numbers(lone, "C") == [1]


def test_later_acknowledgement_of_the_same_epoch_does_not_step_back() -> None:
    lone = producer_of("C")
    publish(lone)
    lone.acknowledge("C", 1)
    lone.acknowledge("C", 0)
    assert acknowledged(lone) == 1


def test_delayed_hello_of_the_same_epoch_does_not_step_back() -> None:
    """The event may be gone by then, and would be declared as skipped."""
    lone = producer_of("C")
    publish(lone)
    delayed = lone.hello_of("C", standing=lone.standing_of("C", 0))
    lone.acknowledge("C", 1)
    lone.receive("C", delayed)
    assert acknowledged(lone) == 1
    earlier = lone.hello_of("C", standing=lone.standing_of("C", 0, epoch=0))
    lone.receive("C", earlier)
    lone.receive("C", delayed)
    assert acknowledged(lone) == 1


@pytest.mark.parametrize("restarts", [False, True])
def test_acknowledgement_of_an_earlier_epoch_of_the_consumer_is_ignored(restarts: bool) -> None:
    lone = producer_of("C")
    publish(lone)
    lone.acknowledge("C", 0, consumer_epoch=5)
    if restarts:
        lone.start()
    lone.acknowledge("C", 1, consumer_epoch=4)
    assert acknowledged(lone) == 0


@pytest.mark.parametrize(("mine", "theirs"), [(2, 1), (1, 2)])
def test_acknowledgement_for_another_incarnation_is_ignored(mine: int, theirs: int) -> None:
    lone = producer_of("C")
    publish(lone)
    lone.receive("C", Acknowledge(Standing(mine, theirs, 1, 1, 1)))
    assert acknowledged(lone) == 0


def test_stream_to_a_new_member_begins_with_a_fence_after_the_first_epoch() -> None:
    lone = LonePeer("P", federation("P", "C"))
    lone.start()
    epoch = lone.peer.identity.epoch
    joined = federation("P", "C", "D")["D"]
    lone.install(lone.document.with_organisation(joined))
    assert lone.peer.edl.dialogue.hello("D").fences == (Fence(epoch, 1),)
    assert lone.peer.edl.dialogue.hello("C").fences == (Fence(1, 1), Fence(epoch, 1))


# --- links ----------------------------------------------------------------------------------------


def test_peer_that_answers_again_gets_a_hello() -> None:
    lone = LonePeer("P", federation("P", "C"))
    lone.settle()
    lone.wait(10.0)  # gossip is due
    assert isinstance(lone.request("C"), Gossip)
    lone.answer("C", None)
    lone.wait(3.0)
    assert isinstance(lone.request("C"), Gossip)
    lone.answer("C", Done())
    assert isinstance(lone.request("C"), Hello)


def test_hello_without_an_answer_is_repeated() -> None:
    lone = LonePeer("P", federation("P", "C"))
    assert isinstance(lone.request("C"), Hello)
    lone.answer("C", None)
    lone.wait(3.0)
    assert isinstance(lone.request("C"), Hello)


def test_silent_peer_is_called_again_although_nothing_waits_for_it() -> None:
    lone = LonePeer("P", federation("P", "C"))
    lone.settle()
    lone.wait(10.0)
    lone.answer("C", None)
    lone.wait(3.0)  # the next regular gossip would be due in seven seconds
    assert isinstance(lone.request("C"), Gossip)


def test_event_that_a_restored_consumer_needs_again_is_kept_beyond_its_availability() -> None:
    lone = producer_of("C")
    publish(lone, available=60)
    lone.answer("C", Notified((TAKEN,), lone.standing_of("C", 1)))
    restored = lone.standing_of("C", 0, consumer_epoch=2)
    lone.receive("C", lone.hello_of("C", epoch=2, standing=restored))
    lone.answer("C", None)
    lone.wait(100.0)
    assert ("P", "e1") in lone.peer.log
    lone.receive("C", Gossip())
    lone.settle()
    lone.wait(30.0)
    assert numbers(lone, "C") == [1]
