"""Tests of Legality, Validity, Minimality and FIFO: histories that keep and that break each."""

from __future__ import annotations

from tests.history.builder import History

# -- Legality (P1) --------------------------------------------------------------------------------


def subscribed(text: str = "Thing") -> History:
    """Returns a history in which U1 of A has subscribed and B has published e1."""
    return History("A", "B").sub("A", "U1", text).pub("B", "e1")


def test_notification_of_an_active_matching_subscription_is_legal() -> None:
    assert subscribed().ntfy("A", "U1", "B", "e1").broken() == {}


def test_notification_of_an_unknown_subscription_is_illegal() -> None:
    history = subscribed().ntfy("A", "U2", "B", "e1")
    assert history.broken() == {"Legality": 1}
    assert "for subscription U2, but at that moment A has no subscription" in history.explained()


def test_notification_before_the_subscription_begins_is_illegal() -> None:
    history = History("A", "B").pub("B", "e1").ntfy("A", "U1", "B", "e1").sub("A", "U1")
    assert history.broken() == {"Legality": 1}


def test_notification_with_a_wrong_group_is_illegal() -> None:
    assert subscribed().ntfy("A", "U1", "B", "e1", group="night").broken() == {"Legality": 1}


def test_notification_after_the_subscription_ended_is_illegal() -> None:
    history = subscribed().usub("A", "U1", "expired").ntfy("A", "U1", "B", "e1")
    assert history.broken() == {"Legality": 1}
    assert "although it ended (expired) at 3 s (record 6)" in history.explained()


def test_notification_is_legal_until_the_peer_records_that_its_organisation_left() -> None:
    unaware = subscribed().leave("A").ntfy("A", "U1", "B", "e1")
    assert unaware.broken() == {}
    history = subscribed().leave("A").usub("A", "U1", "left").ntfy("A", "U1", "B", "e1")
    assert history.broken() == {"Legality": 1}
    assert "although it ended (left) at 4 s (record 7)" in history.explained()


def test_subscription_stays_ended_when_its_organisation_rejoins() -> None:
    history = subscribed().leave("A").usub("A", "U1", "left").join("A", 2)
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}


def test_notification_is_legal_until_the_peer_records_that_it_rejoined() -> None:
    history = subscribed().leave("A").join("A", 2).ntfy("A", "U1", "B", "e1")
    assert history.usub("A", "U1", "left").broken() == {}


def test_notification_is_illegal_only_while_the_subscription_is_paused() -> None:
    paused = subscribed().pause("A", "U1")
    assert paused.ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}
    assert "paused since 3 s (record 6)" in paused.explained()
    resumed = subscribed().pause("A", "U1").resume("A", "U1")
    assert resumed.ntfy("A", "U1", "B", "e1").broken() == {}


def test_notification_of_an_event_that_does_not_match_is_illegal() -> None:
    history = subscribed("Thing/Part").ntfy("A", "U1", "B", "e1")
    assert history.broken() == {"Legality": 1}
    assert "subscription U1 of A, 'Thing/Part'" in history.explained()
    assert "does not match it: its class is Thing." in history.explained()


def test_notification_of_an_event_from_another_source_is_illegal() -> None:
    assert subscribed("Thing from A").ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}


# -- Validity (P2) --------------------------------------------------------------------------------


def test_notification_of_an_event_that_was_never_published_is_invalid() -> None:
    history = History("A", "B").sub("A", "U1").ntfy("A", "U1", "B", "e1")
    assert history.broken() == {"Validity": 1}
    assert "up to then B had published no event of this id" in history.explained()


def test_notification_before_the_publication_is_invalid() -> None:
    history = History("A", "B").sub("A", "U1").ntfy("A", "U1", "B", "e1").pub("B", "e1")
    assert history.broken() == {"Validity": 1}


def test_notification_with_the_wrong_producer_is_invalid() -> None:
    assert subscribed().ntfy("A", "U1", "A", "e1").broken() == {"Validity": 1}


# -- Minimality -----------------------------------------------------------------------------------


def test_second_notification_of_one_event_breaks_minimality() -> None:
    history = subscribed().ntfy("A", "U1", "B", "e1").ntfy("A", "U1", "B", "e1")
    assert history.broken() == {"Minimality": 1}
    assert "notified of it before, at 3 s (record 6)" in history.explained()


def test_notifications_of_other_subscriptions_or_producers_are_no_duplicates() -> None:
    history = subscribed().sub("A", "U2").pub("A", "e1")
    for sub in ("U1", "U2"):
        history.ntfy("A", sub, "B", "e1").ntfy("A", sub, "A", "e1")
    assert history.broken() == {}


def in_a_group() -> History:
    return (
        History("A", "B")
        .sub("A", "U1", group="g")
        .sub("A", "U2", group="g")
        .pub("B", "e1")
        .ntfy("A", "U1", "B", "e1", group="g")
    )


def test_group_counts_as_one_subscriber() -> None:
    history = in_a_group().ntfy("A", "U2", "B", "e1", group="g")
    assert history.broken() == {"Minimality": 1}
    assert "0 leases had lapsed" in history.explained()


def test_each_lapsed_lease_allows_one_more_notification() -> None:
    history = in_a_group().lapse("A", "U1", "B", "e1", group="g")
    assert history.ntfy("A", "U2", "B", "e1", group="g").broken() == {}
    assert history.ntfy("A", "U1", "B", "e1", group="g").broken() == {"Minimality": 1}


def test_lapsed_lease_allows_no_earlier_notification_and_none_of_another_event() -> None:
    late = in_a_group().ntfy("A", "U2", "B", "e1", group="g").lapse("A", "U1", "B", "e1", "g")
    assert late.broken() == {"Minimality": 1}
    other = in_a_group().pub("B", "e2").lapse("A", "U1", "B", "e2", "g")
    assert other.ntfy("A", "U2", "B", "e1", group="g").broken() == {"Minimality": 1}


def test_group_counts_as_one_subscriber_after_its_organisation_left() -> None:
    history = in_a_group().leave("A").ntfy("A", "U2", "B", "e1", group="g")
    assert history.broken() == {"Minimality": 1}


def test_group_of_a_new_incarnation_may_be_notified_again() -> None:
    history = in_a_group().leave("A").usub("A", "U1", "left").usub("A", "U2", "left")
    history.join("A", 2).sub("A", "U3", group="g").sub("A", "U4", group="g")
    assert history.ntfy("A", "U3", "B", "e1", group="g").broken() == {}
    assert history.ntfy("A", "U4", "B", "e1", group="g").broken() == {"Minimality": 1}


def test_notification_of_an_old_group_after_the_rejoin_does_not_count_for_the_new_group() -> None:
    """The peer has not learned yet that it is a new incarnation."""
    history = in_a_group().pub("B", "e2").leave("A").join("A", 2)
    history.ntfy("A", "U1", "B", "e2", group="g").usub("A", "U1", "left").usub("A", "U2", "left")
    history.sub("A", "U3", group="g").ntfy("A", "U3", "B", "e2", group="g")
    assert history.broken() == {}


def test_lapsed_lease_of_an_old_group_allows_nothing_to_the_new_group() -> None:
    history = in_a_group().lapse("A", "U1", "B", "e1", group="g").leave("A")
    history.usub("A", "U1", "left").usub("A", "U2", "left").join("A", 2).sub("A", "U3", group="g")
    history.ntfy("A", "U3", "B", "e1", group="g").ntfy("A", "U3", "B", "e1", group="g")
    assert history.broken() == {"Minimality": 1}


# -- FIFO -----------------------------------------------------------------------------------------


def test_notification_after_a_later_event_breaks_fifo() -> None:
    history = subscribed().pub("B", "e2").pub("B", "e3")
    history.ntfy("A", "U1", "B", "e1").ntfy("A", "U1", "B", "e3")
    assert history.broken() == {}
    assert history.ntfy("A", "U1", "B", "e2").broken() == {"FIFO": 1}
    text = history.explained()
    assert "after it had been notified of event e3 at 6 s (record 9)" in text
    assert "B published e2 at 3 s (record 6), before e3 at 4 s (record 7)" in text


def test_each_late_event_is_counted() -> None:
    history = subscribed().pub("B", "e2").pub("B", "e3")
    for event in ("e3", "e1", "e2"):
        history.ntfy("A", "U1", "B", event)
    assert history.broken() == {"FIFO": 2}


def test_order_is_judged_for_each_subscriber_and_producer() -> None:
    history = subscribed().sub("A", "U2").pub("A", "a1").pub("B", "e2")
    history.ntfy("A", "U1", "B", "e2").ntfy("A", "U1", "A", "a1")
    history.ntfy("A", "U2", "B", "e1").ntfy("A", "U2", "B", "e2")
    assert history.broken() == {}


def test_events_of_different_incarnations_have_no_order() -> None:
    history = subscribed().leave("B").join("B", 2).pub("B", "e2", joined=2)
    history.ntfy("A", "U1", "B", "e2").ntfy("A", "U1", "B", "e1")
    assert history.broken() == {}


def test_order_is_not_judged_after_the_producer_left() -> None:
    history = subscribed().pub("B", "e2").ntfy("A", "U1", "B", "e2")
    staying = history.copy().ntfy("A", "U1", "B", "e1")
    assert staying.broken() == {"FIFO": 1}
    gone = history.leave("B").ntfy("A", "U1", "B", "e1")
    assert gone.broken() == {}
    assert gone.verdict().checks["FIFO"] == 1


def test_order_is_judged_for_the_next_incarnation_of_a_producer() -> None:
    history = subscribed().leave("B").join("B", 2).pub("B", "e2", joined=2)
    history.pub("B", "e3", joined=2).ntfy("A", "U1", "B", "e3").ntfy("A", "U1", "B", "e1")
    assert history.broken() == {}
    assert history.ntfy("A", "U1", "B", "e2").broken() == {"FIFO": 1}


def test_dropped_event_that_arrives_late_keeps_fifo() -> None:
    history = subscribed().pub("B", "e2").cross("B", "A", 1, "e1").cross("B", "A", 2, "e2")
    history.drop("B", "A", 1, "e1").skip("A", "B", 1, 1).ntfy("A", "U1", "B", "e2")
    served = history.copy().cross("B", "A", 3, "e1").ntfy("A", "U1", "B", "e1")
    assert served.broken() == {}
    # After a restore the producer does not remember that it dropped the event.
    restored = history.restore("B", 5.0).cross("B", "A", 1, "e1", epoch=1)
    assert restored.ntfy("A", "U1", "B", "e1").broken() == {}


def test_late_event_that_was_dropped_for_another_consumer_breaks_fifo() -> None:
    history = subscribed().join("C").pub("B", "e2").cross("B", "C", 1, "e1")
    history.drop("B", "C", 1, "e1").ntfy("A", "U1", "B", "e2").ntfy("A", "U1", "B", "e1")
    assert history.broken() == {"FIFO": 1}


def test_order_is_not_judged_in_a_group() -> None:
    history = in_a_group().pub("B", "e2").pub("B", "e3")
    history.ntfy("A", "U2", "B", "e3", group="g").ntfy("A", "U1", "B", "e2", group="g")
    assert history.broken() == {}


def test_duplicate_notification_keeps_fifo() -> None:
    history = subscribed().pub("B", "e2").ntfy("A", "U1", "B", "e1").ntfy("A", "U1", "B", "e2")
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Minimality": 1}


def test_id_that_was_published_again_after_a_restore_may_come_in_either_order() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "x").pub("B", "y").restore("B", 1.0)
    history.pub("B", "y", epoch=1).pub("B", "x", epoch=1)
    first, second = history.copy(), history.copy()
    first.ntfy("A", "U1", "B", "x").ntfy("A", "U1", "B", "y")
    second.ntfy("A", "U1", "B", "y").ntfy("A", "U1", "B", "x")
    assert first.broken() == second.broken() == {}
