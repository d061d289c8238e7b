"""Liveness and Completeness: what is owed is notified when all is calm, or was declared lost."""

from __future__ import annotations

from math import inf

import pytest

from tests.history.builder import History


def stable(text: str = "Thing", group: str = "") -> History:
    """U1 of A is stable at B."""
    return History("A", "B").sub("A", "U1", text, group).stable("A", "U1", "B")


def test_what_is_published_to_a_stable_subscription_is_owed() -> None:
    history = stable().pub("B", "e1")
    assert history.calm().broken() == {"Liveness": 1}
    told = history.explained()
    assert "Event e1 of B, published at 3 s (record 6), was owed to subscription U1 of A" in told
    assert "it was stable at B since 2 s (record 5)" in told
    assert "When all was calm at 4 s (record 7) it had still not been notified" in told
    assert "B never gave it a number in its stream to A" in told


def test_what_is_notified_is_settled() -> None:
    history = stable().pub("B", "e1").ntfy("A", "U1", "B", "e1").calm()
    assert history.broken() == {}
    assert history.verdict().checks["Liveness"] == 1


def test_nothing_is_judged_before_it_is_calm() -> None:
    history = stable().pub("B", "e1")
    assert history.broken() == {}
    assert not history.verdict().was_calm
    assert history.calm().verdict().was_calm


def test_a_notification_after_the_calm_came_too_late_and_is_told_once() -> None:
    history = stable().pub("B", "e1").calm().ntfy("A", "U1", "B", "e1").calm().calm()
    assert history.broken() == {"Liveness": 1}
    assert stable().pub("B", "e1").calm().calm().broken() == {"Liveness": 1}


def test_the_explanation_tells_how_far_the_event_came() -> None:
    history = stable().pub("B", "e1").cross("B", "A", 1, "e1").calm()
    assert "B gave it number 1 in its stream to A at 4 s" in history.explained()
    assert "but A never consumed it" in history.explained()
    taken = stable().pub("B", "e1").cross("B", "A", 1, "e1").take("A", "B", 1, "e1").calm()
    assert "and A consumed it at 5 s (record 8)" in taken.explained()


def test_what_does_not_match_is_not_owed() -> None:
    assert stable("Thing/Part").pub("B", "e1").calm().broken() == {}
    assert stable("Thing from A").pub("B", "e1").calm().broken() == {}


def test_what_is_published_before_it_is_stable_is_not_owed() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").stable("A", "U1", "B").calm()
    assert history.broken() == {}


def test_in_one_instant_the_order_of_the_records_decides() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").stable("A", "U1", "B").calm()
    history.records[-2] = {**history.records[-2], "t": history.records[-3]["t"]}
    assert history.broken() == {}


def test_in_one_instant_a_local_subscription_after_the_publication_is_late() -> None:
    history = History("A").pub("A", "e1").sub("A", "U1").calm()
    history.records[-2] = {**history.records[-2], "t": history.records[-3]["t"]}
    assert history.broken() == {}


def test_a_producer_whose_clock_is_behind_owes_as_much() -> None:
    history = stable().pub("B", "e1").calm()
    history.records[-2] = {**history.records[-2], "t": 0.5}
    assert history.broken() == {"Liveness": 1}


def test_a_view_counts_for_its_classes_producer_and_incarnation_only() -> None:
    part = History("A", "B").sub("A", "U1").stable("A", "U1", "B", classes=["Thing/Part"])
    assert part.pub("B", "e1").calm().broken() == {}
    assert part.pub("B", "e2", **{"class": "Thing/Part"}).calm().broken() == {"Liveness": 1}
    other = History("A", "B", "C").sub("A", "U1").stable("A", "U1", "C").pub("B", "e1")
    assert other.calm().broken() == {}
    again = stable().leave("B").join("B", 2).pub("B", "e1", joined=2)
    assert again.calm().broken() == {}


def test_what_a_former_member_publishes_is_owed_to_nobody() -> None:
    history = stable().leave("B").pub("B", "e1").calm()
    assert history.broken() == {}


@pytest.mark.parametrize("end", ["usub", "leave", "pause"])
def test_nothing_is_owed_to_what_has_ended_or_is_paused_when_it_is_calm(end: str) -> None:
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


def test_what_was_queued_in_a_pause_is_owed_after_it() -> None:
    history = stable().pause("A", "U1").pub("B", "e1").calm().resume("A", "U1")
    assert history.ntfy("A", "U1", "B", "e1").calm().broken() == {}


# -- local subscriptions --------------------------------------------------------------------------


def test_a_producers_own_users_need_no_view() -> None:
    history = History("A").sub("A", "U1").pub("A", "e1").calm()
    assert history.broken() == {"Liveness": 1}
    assert "the subscription began at 1 s (record 3), before the publication" in history.explained()
    assert "the same organisation" in history.explained()


@pytest.mark.parametrize(
    ("available", "owed"), [(0, False), (0.5, False), (1, True), (5, True), (inf, True)]
)
def test_a_late_local_subscription_gets_what_is_still_available(
    available: float, owed: bool
) -> None:
    history = History("A").pub("A", "e1", available).sub("A", "U1").calm()
    assert history.broken() == ({"Completeness": 1} if owed else {})


def test_what_a_former_self_published_is_not_owed() -> None:
    history = History("A").pub("A", "e1", inf).leave("A").join("A", 2).sub("A", "U1").calm()
    assert history.broken() == {}


# -- availability (semantics §8) ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("available", "owed"), [(0, False), (1, False), (2, True), (60, True), (inf, True)]
)
def test_a_late_subscriber_is_owed_what_is_available_when_it_becomes_stable(
    available: float, owed: bool
) -> None:
    history = History("A", "B").pub("B", "e1", available).sub("A", "U1").stable("A", "U1", "B")
    assert history.calm().broken() == ({"Completeness": 1} if owed else {})
    if owed:
        told = history.explained()
        assert "the subscription became stable at B at 3 s (record 6)" in told
        length = "for ever" if available == inf else f"for {available} s"
        assert f"the event is available {length}" in told


def test_a_late_subscriber_that_was_notified_is_content() -> None:
    history = History("A", "B").pub("B", "e1", inf).sub("A", "U1").ntfy("A", "U1", "B", "e1")
    assert history.stable("A", "U1", "B").calm().broken() == {}


def test_it_may_become_stable_after_a_first_calm() -> None:
    history = History("A", "B").pub("B", "e1", inf).sub("A", "U1").calm()
    assert history.broken() == {}
    assert history.stable("A", "U1", "B").calm().broken() == {"Completeness": 1}


def test_availability_obliges_and_does_not_forbid() -> None:
    history = History("A", "B").pub("B", "e1").sub("A", "U1").ntfy("A", "U1", "B", "e1")
    assert history.calm().broken() == {}


# -- delivery groups ------------------------------------------------------------------------------


def test_a_group_is_content_if_any_member_was_notified() -> None:
    history = stable(group="g").sub("A", "U2", group="g").stable("A", "U2", "B")
    history.pub("B", "e1").ntfy("A", "U2", "B", "e1", group="g").calm()
    assert history.broken() == {}
    assert history.verdict().checks["Liveness"] == 1


def test_a_group_that_nobody_notified_is_owed_once() -> None:
    history = stable(group="g").sub("A", "U2", group="g").stable("A", "U2", "B")
    assert history.pub("B", "e1").calm().broken() == {"Liveness": 1}
    assert "in the delivery group g" in history.explained()


def test_a_paused_member_does_not_oblige_the_group() -> None:
    history = stable(group="g").sub("A", "U2", "Thing/Part", group="g").stable("A", "U2", "B")
    assert history.pause("A", "U1").pub("B", "e1").calm().broken() == {}


def test_a_group_that_came_back_need_not_be_told_again() -> None:
    history = stable(group="g").pub("B", "e1", inf).ntfy("A", "U1", "B", "e1", group="g")
    history.leave("A").usub("A", "U1", "left").join("A", 2).sub("A", "U2", group="g")
    assert history.stable("A", "U2", "B").calm().broken() == {}


# -- declared losses ------------------------------------------------------------------------------


def numbered() -> History:
    return stable().pub("B", "e1").cross("B", "A", 1, "e1")


def test_a_skip_that_was_consumed_excuses() -> None:
    history = numbered().skip("A", "B", 1, 1).calm()
    assert history.broken() == {}
    counts = history.verdict().counts
    assert (counts.skipped, counts.excused, counts.dropped) == (1, 1, 0)


def test_a_skip_of_another_number_or_another_stream_excuses_nothing() -> None:
    other = stable().pub("B", "e0").ntfy("A", "U1", "B", "e0").pub("B", "e1")
    other.cross("B", "A", 1, "e0").cross("B", "A", 2, "e1").skip("A", "B", 1, 1).calm()
    assert other.broken() == {"Liveness": 1}
    assert numbered().skip("A", "B", 1, 1, joined=2).calm().broken() == {"Liveness": 1}


def test_a_skip_means_the_number_of_the_epoch_that_it_names() -> None:
    """After a restore of B number 1 is given anew; e1, published before, has number 2 now."""
    history = stable().pub("B", "e1").cross("B", "A", 1, "e1").restore("B", 3.0)
    history.pub("B", "e2", epoch=1).cross("B", "A", 1, "e2", epoch=1)
    history.cross("B", "A", 2, "e1", epoch=1)
    assert history.skip("A", "B", 1, 1, epoch=1).calm().broken() == {"Liveness": 1}
    history.records.pop()
    assert history.skip("A", "B", 2, 2, epoch=1).calm().broken() == {}


def test_a_drop_that_was_declared_excuses() -> None:
    history = numbered().drop("B", "A", 1, "e1").calm()
    assert history.broken() == {}
    assert history.verdict().counts.dropped == 1
    assert numbered().join("C").drop("B", "C", 1, "e1").calm().broken() == {"Liveness": 1}


def test_a_drop_that_a_restore_has_undone_excuses_no_longer() -> None:
    history = numbered().drop("B", "A", 1, "e1").restore("B", 4.0).calm()
    assert history.broken() == {"Liveness": 1}


def test_a_skip_of_what_crossed_after_the_producer_left_excuses() -> None:
    history = stable().pub("B", "e1").leave("B").cross("B", "A", 1, "e1").skip("A", "B", 1, 1)
    assert history.calm().broken() == {}


def forgotten() -> History:
    """A had taken e1 and does not remember it."""
    return stable().pub("B", "e1").take("A", "B", 1, "e1").restore("A", 3.0)


def test_what_a_restored_consumer_forgot_of_a_producer_that_left_is_excused() -> None:
    history = forgotten().leave("B").calm()
    assert history.broken() == {}
    assert history.verdict().counts.excused == 1
    assert forgotten().leave("B").join("B", 2).calm().broken() == {}
    assert forgotten().calm().broken() == {"Liveness": 1}


def test_what_a_restored_consumer_still_has_is_owed_whoever_left() -> None:
    history = stable().pub("B", "e1").take("A", "B", 1, "e1").restore("A", 4.0)
    assert history.leave("B").calm().broken() == {"Liveness": 1}


def test_a_consumer_that_was_restored_before_the_publication_has_forgotten_nothing() -> None:
    history = stable().restore("A", 2.0).stable("A", "U1", "B").pub("B", "e1").leave("B")
    assert history.calm().broken() == {"Liveness": 1}


def test_what_a_producer_owed_when_it_left_is_owed() -> None:
    history = stable().pub("B", "e1").leave("B")
    assert history.copy().calm().broken() == {"Liveness": 1}
    assert history.ntfy("A", "U1", "B", "e1").calm().broken() == {}


# -- who hosts what -------------------------------------------------------------------------------


def test_what_is_not_hosted_any_more_is_not_available_to_late_subscribers() -> None:
    history = History("A", "B").pub("B", "e1", inf).sub("A", "U1").sub("B", "V1")
    in_time = history.copy().stable("A", "U1", "B").host("B", "Thing/Part")
    assert in_time.calm().broken() == {"Completeness": 2}
    too_late = History("A", "B").pub("B", "e1", inf).host("B", "Thing/Part")
    too_late.sub("B", "V1").sub("A", "U1").stable("A", "U1", "B").calm()
    assert too_late.broken() == {}


def test_in_one_instant_the_order_of_hosting_and_subscribing_decides() -> None:
    history = History("A").pub("A", "e1", inf).host("A", "Other").sub("A", "U1").calm()
    history.records[-2] = {**history.records[-2], "t": history.records[-3]["t"]}
    assert history.broken() == {}


def test_hosting_it_again_does_not_bring_old_events_back() -> None:
    history = History("A").pub("A", "e1", inf).host("A", "Other").host("A", "Thing")
    assert history.sub("A", "U1").calm().broken() == {}


def test_a_class_that_is_still_hosted_is_owed_as_before() -> None:
    history = stable().host("B", "Thing").pub("B", "e1")
    assert history.calm().broken() == {"Liveness": 1}


def test_a_class_that_comes_back_is_owed_when_the_view_covers_it_again() -> None:
    history = stable().host("B", "Thing").host("B", "Thing", "Thing/Part")
    history.pub("B", "e1", **{"class": "Thing/Part"}).calm()
    assert history.broken() == {}
    history.stable("A", "U1", "B").pub("B", "e2", **{"class": "Thing/Part"}).calm()
    assert history.broken() == {"Liveness": 1}


def test_a_view_that_has_not_heard_of_the_change_does_not_outlast_the_return() -> None:
    """B hosts Thing/Part no longer and then again, while A becomes stable as if nothing were."""
    history = History("A", "B").sub("A", "U1").host("B", "Thing").stable("A", "U1", "B")
    history.host("B", "Thing", "Thing/Part").pub("B", "e1", **{"class": "Thing/Part"})
    assert history.copy().calm().broken() == {}
    assert history.pub("B", "e2").calm().broken() == {"Liveness": 1}


def test_after_a_restore_nobody_knows_what_a_producer_hosts() -> None:
    history = stable().host("B", "Thing").restore("B", 2.0).start("B", 1, restored=True)
    history.stable("A", "U1", "B", epoch=1).host("B", "Thing", "Thing/Part")
    history.pub("B", "e1", epoch=1, **{"class": "Thing/Part"}).calm()
    assert history.broken() == {"Liveness": 1}
