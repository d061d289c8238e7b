"""Tests of Liveness and Completeness: at a calm, owed events are notified or declared lost."""

from __future__ import annotations

from math import inf

import pytest

from qns.errors import DocumentError
from tests.history.builder import History


def stable(text: str = "Thing", group: str = "") -> History:
    """Returns a history in which U1 of A is stable at B."""
    return History("A", "B").sub("A", "U1", text, group).stable("A", "U1", "B")


def test_event_is_owed_to_a_subscription_that_was_stable_at_its_publication() -> None:
    history = stable().pub("B", "e1")
    assert history.calm().broken() == {"Liveness": 1}
    text = history.explained()
    assert "Event e1 of B, published at 3 s (record 6), was owed to subscription U1 of A" in text
    assert "it was stable at B since 2 s (record 5)" in text
    assert "When all was calm at 4 s (record 7) it had still not been notified" in text
    assert "B never gave it a number in its stream to A" in text


def test_notified_event_is_not_owed_any_more() -> None:
    history = stable().pub("B", "e1").ntfy("A", "U1", "B", "e1").calm()
    assert history.broken() == {}
    assert history.verdict().checks["Liveness"] == 1


def test_debts_are_not_judged_before_a_calm() -> None:
    history = stable().pub("B", "e1")
    assert history.broken() == {}
    assert not history.verdict().was_calm
    assert history.calm().verdict().was_calm


def test_notification_after_the_calm_is_too_late_and_is_reported_once() -> None:
    history = stable().pub("B", "e1").calm().ntfy("A", "U1", "B", "e1").calm().calm()
    assert history.broken() == {"Liveness": 1}
    assert stable().pub("B", "e1").calm().calm().broken() == {"Liveness": 1}


def test_explanation_shows_how_far_the_event_came() -> None:
    history = stable().pub("B", "e1").cross("B", "A", 1, "e1").calm()
    assert "B gave it number 1 in its stream to A at 4 s" in history.explained()
    assert "but A never consumed it" in history.explained()
    taken = stable().pub("B", "e1").cross("B", "A", 1, "e1").take("A", "B", 1, "e1").calm()
    assert "and A consumed it at 5 s (record 8)" in taken.explained()


def test_event_that_does_not_match_is_not_owed() -> None:
    assert stable("Thing/Part").pub("B", "e1").calm().broken() == {}
    assert stable("Thing from A").pub("B", "e1").calm().broken() == {}


def test_event_published_before_the_subscription_is_stable_is_not_owed() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").stable("A", "U1", "B").calm()
    assert history.broken() == {}


def test_order_of_records_decides_between_publication_and_stable_at_one_time() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").stable("A", "U1", "B").calm()
    history.records[-2] = {**history.records[-2], "t": history.records[-3]["t"]}
    assert history.broken() == {}


def test_order_of_records_decides_between_publication_and_local_subscription_at_one_time() -> None:
    history = History("A").pub("A", "e1").sub("A", "U1").calm()
    history.records[-2] = {**history.records[-2], "t": history.records[-3]["t"]}
    assert history.broken() == {}


def test_event_is_owed_when_the_producers_clock_is_behind() -> None:
    history = stable().pub("B", "e1").calm()
    history.records[-2] = {**history.records[-2], "t": 0.5}
    assert history.broken() == {"Liveness": 1}


def test_stable_view_counts_only_for_its_classes_producer_and_incarnation() -> None:
    part = History("A", "B").sub("A", "U1").stable("A", "U1", "B", classes=["Thing/Part"])
    assert part.pub("B", "e1").calm().broken() == {}
    assert part.pub("B", "e2", **{"class": "Thing/Part"}).calm().broken() == {"Liveness": 1}
    other = History("A", "B", "C").sub("A", "U1").stable("A", "U1", "C").pub("B", "e1")
    assert other.calm().broken() == {}
    again = stable().leave("B").join("B", 2).pub("B", "e1", joined=2)
    assert again.calm().broken() == {}


def test_event_of_a_former_member_is_not_owed() -> None:
    history = stable().leave("B").pub("B", "e1").calm()
    assert history.broken() == {}


@pytest.mark.parametrize("end", ["usub", "leave", "pause"])
def test_event_is_not_owed_to_a_subscription_that_is_ended_or_paused_at_the_calm(end: str) -> None:
    history = stable().pub("B", "e1")
    if end == "leave":
        history.leave("A").join("A", 2)
    elif end == "usub":
        history.usub("A", "U1")
    else:
        history.pause("A", "U1")
    assert history.calm().broken() == {}
    if end == "pause":
        assert history.resume("A", "U1").calm().broken() == {"Liveness": 1}


def test_event_queued_during_a_pause_is_owed_after_it() -> None:
    history = stable().pause("A", "U1").pub("B", "e1").calm().resume("A", "U1")
    assert history.ntfy("A", "U1", "B", "e1").calm().broken() == {}


# -- local subscriptions --------------------------------------------------------------------------


def test_event_is_owed_to_the_producers_own_users_without_a_view() -> None:
    history = History("A").sub("A", "U1").pub("A", "e1").calm()
    assert history.broken() == {"Liveness": 1}
    assert "the subscription began at 1 s (record 3), before the publication" in history.explained()
    assert "the same organisation" in history.explained()


@pytest.mark.parametrize(
    ("available", "owed"), [(0, False), (0.5, False), (1.001, True), (5, True), (inf, True)]
)
def test_available_event_is_owed_to_a_late_local_subscription(available: float, owed: bool) -> None:
    history = History("A").pub("A", "e1", available).sub("A", "U1").calm()
    assert history.broken() == ({"Completeness": 1} if owed else {})


def test_event_of_an_earlier_incarnation_is_not_owed_to_own_users() -> None:
    history = History("A").pub("A", "e1", inf).leave("A").join("A", 2).sub("A", "U1").calm()
    assert history.broken() == {}


# -- availability (semantics §8) ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("available", "owed"), [(0, False), (1, False), (2.001, True), (60, True), (inf, True)]
)
def test_event_is_owed_to_a_late_subscriber_that_becomes_stable_while_it_is_available(
    available: float, owed: bool
) -> None:
    history = History("A", "B").pub("B", "e1", available).sub("A", "U1").stable("A", "U1", "B")
    assert history.calm().broken() == ({"Completeness": 1} if owed else {})
    if owed:
        text = history.explained()
        assert "the subscription became stable at B at 3 s (record 6)" in text
        length = "for ever" if available == inf else f"for {available} s"
        assert f"the event is available {length}" in text


def test_late_subscriber_is_owed_nothing_more_once_notified() -> None:
    history = History("A", "B").pub("B", "e1", inf).sub("A", "U1").ntfy("A", "U1", "B", "e1")
    assert history.stable("A", "U1", "B").calm().broken() == {}


def test_available_event_is_owed_when_the_subscription_becomes_stable_after_a_calm() -> None:
    history = History("A", "B").pub("B", "e1", inf).sub("A", "U1").calm()
    assert history.broken() == {}
    assert history.stable("A", "U1", "B").calm().broken() == {"Completeness": 1}


def test_late_subscriber_may_be_notified_of_an_event_without_availability() -> None:
    history = History("A", "B").pub("B", "e1").sub("A", "U1").ntfy("A", "U1", "B", "e1")
    assert history.calm().broken() == {}


# -- delivery groups ------------------------------------------------------------------------------


def test_group_is_served_when_any_member_was_notified() -> None:
    history = stable(group="g").sub("A", "U2", group="g").stable("A", "U2", "B")
    history.pub("B", "e1").ntfy("A", "U2", "B", "e1", group="g").calm()
    assert history.broken() == {}
    assert history.verdict().checks["Liveness"] == 1


def test_unserved_group_is_reported_once() -> None:
    history = stable(group="g").sub("A", "U2", group="g").stable("A", "U2", "B")
    assert history.pub("B", "e1").calm().broken() == {"Liveness": 1}
    assert "in the delivery group g" in history.explained()


def test_event_is_not_owed_to_a_group_whose_matching_member_is_paused() -> None:
    history = stable(group="g").sub("A", "U2", "Thing/Part", group="g").stable("A", "U2", "B")
    assert history.pause("A", "U1").pub("B", "e1").calm().broken() == {}


def test_event_is_not_owed_again_to_a_group_of_a_new_incarnation() -> None:
    history = stable(group="g").pub("B", "e1", inf).ntfy("A", "U1", "B", "e1", group="g")
    history.leave("A").usub("A", "U1", "left").join("A", 2).sub("A", "U2", group="g")
    assert history.stable("A", "U2", "B").calm().broken() == {}


# -- declared losses ------------------------------------------------------------------------------


def numbered() -> History:
    return stable().pub("B", "e1").cross("B", "A", 1, "e1")


def test_consumed_skip_excuses_a_debt() -> None:
    history = numbered().skip("A", "B", 1, 1).calm()
    assert history.broken() == {}
    counts = history.verdict().counts
    assert (counts.skipped, counts.excused, counts.dropped) == (1, 1, 0)


def test_skip_of_another_number_or_stream_excuses_nothing() -> None:
    other = stable().pub("B", "e0").ntfy("A", "U1", "B", "e0").pub("B", "e1")
    other.cross("B", "A", 1, "e0").cross("B", "A", 2, "e1").skip("A", "B", 1, 1).calm()
    assert other.broken() == {"Liveness": 1}
    assert numbered().skip("A", "B", 1, 1, joined=2).calm().broken() == {"Liveness": 1}


def test_skip_excuses_the_event_that_had_the_number_in_its_epoch() -> None:
    """After a restore B uses number 1 again, and e1, published before, gets number 2."""
    history = stable().pub("B", "e1").cross("B", "A", 1, "e1").restore("B", 3.0)
    history.pub("B", "e2", epoch=1).cross("B", "A", 1, "e2", epoch=1)
    history.cross("B", "A", 2, "e1", epoch=1)
    assert history.skip("A", "B", 1, 1, epoch=1).calm().broken() == {"Liveness": 1}
    history.records.pop()
    assert history.skip("A", "B", 2, 2, epoch=1).calm().broken() == {}


def test_declared_drop_excuses_a_debt() -> None:
    history = numbered().drop("B", "A", 1, "e1").calm()
    assert history.broken() == {}
    assert history.verdict().counts.dropped == 1
    assert numbered().join("C").drop("B", "C", 1, "e1").calm().broken() == {"Liveness": 1}


def test_drop_that_a_restore_undid_excuses_nothing() -> None:
    history = numbered().drop("B", "A", 1, "e1").restore("B", 4.0).calm()
    assert history.broken() == {"Liveness": 1}


def test_skip_of_an_event_that_crossed_after_the_producer_left_excuses_a_debt() -> None:
    history = stable().pub("B", "e1").leave("B").cross("B", "A", 1, "e1").skip("A", "B", 1, 1)
    assert history.calm().broken() == {}


def forgotten() -> History:
    """Returns a history in which A took e1 and a restore undid that."""
    return stable().pub("B", "e1").take("A", "B", 1, "e1").restore("A", 3.0)


def test_event_forgotten_by_a_restored_consumer_is_excused_if_the_producer_left() -> None:
    history = forgotten().leave("B").calm()
    assert history.broken() == {}
    assert history.verdict().counts.excused == 1
    assert forgotten().leave("B").join("B", 2).calm().broken() == {}
    assert forgotten().calm().broken() == {"Liveness": 1}


def test_event_that_a_restored_consumer_still_has_is_owed() -> None:
    history = stable().pub("B", "e1").take("A", "B", 1, "e1").restore("A", 4.0)
    assert history.leave("B").calm().broken() == {"Liveness": 1}


def test_restore_before_the_publication_excuses_nothing() -> None:
    history = stable().restore("A", 2.0).stable("A", "U1", "B").pub("B", "e1").leave("B")
    assert history.calm().broken() == {"Liveness": 1}


def test_event_is_owed_after_its_producer_left() -> None:
    history = stable().pub("B", "e1").leave("B")
    assert history.copy().calm().broken() == {"Liveness": 1}
    assert history.ntfy("A", "U1", "B", "e1").calm().broken() == {}


# -- who hosts what -------------------------------------------------------------------------------


def test_event_of_a_class_that_is_no_longer_hosted_is_not_owed_to_late_subscribers() -> None:
    history = History("A", "B").pub("B", "e1", inf).sub("A", "U1").sub("B", "V1")
    in_time = history.copy().stable("A", "U1", "B").host("B", "Thing/Part")
    assert in_time.calm().broken() == {"Completeness": 2}
    too_late = History("A", "B").pub("B", "e1", inf).host("B", "Thing/Part")
    too_late.sub("B", "V1").sub("A", "U1").stable("A", "U1", "B").calm()
    assert too_late.broken() == {}


def test_order_of_records_decides_between_hosting_and_subscribing_at_one_time() -> None:
    history = History("A").pub("A", "e1", inf).host("A", "Other").sub("A", "U1").calm()
    history.records[-2] = {**history.records[-2], "t": history.records[-3]["t"]}
    assert history.broken() == {}


def test_withdrawn_event_stays_withdrawn_when_its_class_is_hosted_again() -> None:
    history = History("A").pub("A", "e1", inf).host("A", "Other").host("A", "Thing")
    assert history.sub("A", "U1").calm().broken() == {}


def test_event_of_a_class_that_is_still_hosted_is_owed() -> None:
    history = stable().host("B", "Thing").pub("B", "e1")
    assert history.calm().broken() == {"Liveness": 1}


def test_event_of_a_class_hosted_again_is_owed_once_the_view_is_stable_again() -> None:
    history = stable().host("B", "Thing").host("B", "Thing", "Thing/Part")
    history.pub("B", "e1", **{"class": "Thing/Part"}).calm()
    assert history.broken() == {}
    history.stable("A", "U1", "B").pub("B", "e2", **{"class": "Thing/Part"}).calm()
    assert history.broken() == {"Liveness": 1}


def test_stale_view_does_not_oblige_for_a_class_that_is_hosted_again() -> None:
    """B ceases to host Thing/Part and hosts it again, while A becomes stable with the old view."""
    history = History("A", "B").sub("A", "U1").host("B", "Thing").stable("A", "U1", "B")
    history.host("B", "Thing", "Thing/Part").pub("B", "e1", **{"class": "Thing/Part"})
    assert history.copy().calm().broken() == {}
    assert history.pub("B", "e2").calm().broken() == {"Liveness": 1}


def test_restore_discards_what_the_producer_hosted() -> None:
    history = stable().host("B", "Thing").restore("B", 2.0).start("B", 1, restored=True)
    history.stable("A", "U1", "B", epoch=1).host("B", "Thing", "Thing/Part")
    history.pub("B", "e1", epoch=1, **{"class": "Thing/Part"}).calm()
    assert history.broken() == {"Liveness": 1}


# --- ways -----------------------------------------------------------------------------------------


def test_event_is_owed_over_a_way_without_a_calm() -> None:
    history = stable().pub("B", "e1")
    assert history.copy().ways("A>B").broken() == {}
    assert history.ways("A>B", "B>A").broken() == {"Liveness": 1}
    assert "Though a way over working links led there, at 4 s (record 7)" in history.explained()
    assert history.calm().broken() == {"Liveness": 1}  # it is reported once


def test_notified_event_is_not_owed_over_a_way_any_more() -> None:
    history = stable().pub("B", "e1").ntfy("A", "U1", "B", "e1").ways("B>A")
    assert history.broken() == {}
    assert history.verdict().checks["Liveness"] == 1


@pytest.mark.parametrize("org", ["A", "B"])
def test_debt_over_a_way_is_not_judged_after_a_restore(org: str) -> None:
    history = stable().pub("B", "e1").restore(org, 3.5).ways("B>A")
    assert history.broken() == {}


def test_debt_over_a_way_is_not_judged_after_a_change_of_hosting() -> None:
    history = stable().pub("B", "e1").host("B", "Thing", "Thing/Part")
    assert history.ways("B>A").broken() == {}


@pytest.mark.parametrize("way", ["A", "A>X", "A>B>A", ""])
def test_way_that_is_not_one_between_two_members_is_rejected(way: str) -> None:
    with pytest.raises(DocumentError, match="way"):
        stable().ways(way).verdict()


def test_overflowed_delivery_is_not_owed_over_a_way() -> None:
    history = stable().pub("B", "e1").overflow("A", "U1", "B", "e1", 1).ways("B>A")
    assert history.broken() == {}


def test_debt_over_a_way_is_not_judged_after_an_end_came_back() -> None:
    history = stable().pub("B", "e1").leave("B").join("B", 1).ways("B>A")
    assert history.broken() == {}
