"""Tests that users can read every delivery, or that it is declared as dropped."""

from __future__ import annotations

from tests.history.builder import History


def notified(*numbers: int, group: str = "") -> History:
    """Returns a history in which a user of A was notified of events e1, e2, …"""
    history = History("A").sub("A", "s", group=group)
    for number in numbers:
        history.pub("A", f"e{number}").ntfy("A", "s", "A", f"e{number}", group, number=number)
    return history


def test_acknowledgement_of_every_delivery_keeps_no_gap() -> None:
    history = notified(1, 2, 3).ack("A", "s", 2, 2).ack("A", "s", 2, 0).ack("A", "s", 9, 1)
    assert history.broken() == {}
    assert history.verdict().checks["No gap"] == 3


def test_delivery_that_is_dropped_without_a_record_breaks_no_gap() -> None:
    history = notified(1, 2, 3).ack("A", "s", 3, 2)
    assert history.broken() == {"No gap": 1}
    assert (
        "A removed 2 deliveries of subscription s when its reader acknowledged number 3 at 8 s "
        "(record 10), but 3 deliveries with numbers from 1 to 3 had been notified"
    ) in history.explained()


def test_queue_that_is_dropped_as_a_whole_breaks_no_gap() -> None:
    assert notified(1, 2).ack("A", "s", 2, 0).broken() == {"No gap": 1}


def test_delivery_that_comes_back_breaks_no_gap() -> None:
    assert notified(1).ack("A", "s", 1, 1).ack("A", "s", 1, 1).broken() == {"No gap": 1}


def test_declared_overflow_is_counted_apart() -> None:
    history = notified(1, 2, 3).overflow("A", "s", "A", "e1", 1).ack("A", "s", 3, 2).calm()
    assert history.broken() == {}
    counts = history.verdict().counts
    assert (counts.notifications, counts.overflowed, counts.excused) == (3, 1, 0)


def test_event_that_overflowed_before_its_notification_is_excused() -> None:
    paused = History("A").sub("A", "s").pause("A", "s").pub("A", "e1").pub("A", "e2")
    lost = paused.copy().resume("A", "s").ntfy("A", "s", "A", "e2", number=2).calm()
    assert lost.broken() == {"Liveness": 1}
    declared = paused.overflow("A", "s", "A", "e1", 1).resume("A", "s")
    declared.ntfy("A", "s", "A", "e2", number=2).ack("A", "s", 2, 1).calm()
    assert declared.broken() == {}
    counts = declared.verdict().counts
    assert (counts.overflowed, counts.excused) == (1, 1)


def test_overflow_of_another_subscription_excuses_nothing() -> None:
    history = History("A").sub("A", "s").sub("A", "t").pub("A", "e1")
    history.overflow("A", "t", "A", "e1", 1).calm()
    assert history.broken() == {"Liveness": 1}


def test_restore_takes_an_overflow_and_an_acknowledgement_back() -> None:
    history = notified(1, 2, 3).overflow("A", "s", "A", "e1", 1).ack("A", "s", 2, 1)
    history.restore("A", 7.0)
    assert history.copy().ack("A", "s", 3, 3).broken() == {}
    assert history.ack("A", "s", 3, 1).broken() == {"No gap": 1}
    assert history.verdict().counts.overflowed == 0


def test_delivery_that_passed_to_another_member_is_not_missing() -> None:
    history = notified(1, 2, group="g").lapse("A", "s", "A", "e1", "g")
    assert history.copy().ack("A", "s", 2, 1).broken() == {}
    assert history.ack("A", "s", 2, 2).broken() == {"No gap": 1}


def test_end_of_a_subscription_ends_its_queue() -> None:
    assert notified(1, 2).usub("A", "s").ack("A", "s", 2, 0).broken() == {}


def test_acknowledgements_of_a_subscription_of_an_older_version_are_not_judged() -> None:
    history = History("A").sub("A", "s").pub("A", "e1").ntfy("A", "s", "A", "e1")
    history.pub("A", "e2").ntfy("A", "s", "A", "e2", number=2).ack("A", "s", 2, 1)
    assert history.broken() == {}
    assert history.verdict().checks["No gap"] == 0
