"""Tests of what a restore undoes at the restored organisation and at others, and of nested ones."""

from __future__ import annotations

from math import inf

import pytest

from tests.history.builder import History

# Each record is one second later than the one before; the first one after the joins is at 1 s.


def test_undone_notification_is_owed_again_and_may_be_repeated() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1").restore("A", 3.0)
    owing = history.copy()
    assert owing.calm().broken() == {"Liveness": 1}
    assert history.ntfy("A", "U1", "B", "e1").calm().broken() == {}
    assert history.verdict().counts.void == 1


def test_notification_older_than_the_backup_still_counts() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1").restore("A", 4.0)
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Minimality": 1}


def test_undone_records_break_no_rule() -> None:
    history = History("A", "B").sub("A", "U1", "Thing/Part").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1").ntfy("A", "U1", "B", "e1").take("A", "B", 7, "e1")
    assert history.broken() == {"Legality": 2, "Minimality": 1, "No gap": 1}
    assert history.restore("A", 2.0).broken() == {}
    assert history.verdict().checks["Legality"] == 0


def test_undone_subscription_does_not_exist() -> None:
    history = History("A", "B").pub("B", "e1").sub("A", "U1").restore("A", 1.0)
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}


def test_id_of_an_undone_subscription_may_be_used_again() -> None:
    history = History("A", "B").pub("B", "e1").sub("A", "U1", "Thing/Part").restore("A", 1.0)
    assert history.sub("A", "U1", "Thing").ntfy("A", "U1", "B", "e1").broken() == {}


def test_subscription_whose_end_was_undone_is_active() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").usub("A", "U1").restore("A", 2.0)
    assert history.ntfy("A", "U1", "B", "e1").broken() == {}


def test_restore_undoes_pause_and_resume() -> None:
    paused = History("A", "B").sub("A", "U1").pub("B", "e1").pause("A", "U1").restore("A", 2.0)
    assert paused.ntfy("A", "U1", "B", "e1").broken() == {}
    resumed = History("A", "B").sub("A", "U1").pub("B", "e1").pause("A", "U1").resume("A", "U1")
    assert resumed.restore("A", 3.0).ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}


def test_undone_lapse_allows_nothing() -> None:
    history = History("A", "B").sub("A", "U1", group="g").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1", group="g").lapse("A", "U1", "B", "e1", "g").restore("A", 3.0)
    assert history.ntfy("A", "U1", "B", "e1", group="g").broken() == {"Minimality": 1}


def test_restore_does_not_undo_joining_and_leaving() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").leave("A").join("A", 2)
    history.restore("A", 2.0).pub("B", "e1").calm()
    assert history.broken() == {}
    # The restored peer learns once more that it was removed.
    history.usub("A", "U1", "left")
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}


# -- the producer's side --------------------------------------------------------------------------


def test_lost_event_may_be_delivered_and_is_not_owed() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").sub("B", "V1")
    history.pub("B", "e1", inf).restore("B", 3.0)
    silent = history.copy()
    assert silent.calm().broken() == {}
    assert silent.verdict().counts.lost == 1
    assert history.ntfy("A", "U1", "B", "e1").calm().broken() == {}


def test_event_published_before_the_backup_is_still_owed() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    assert history.restore("B", 3.0).calm().broken() == {"Liveness": 1}


def test_event_published_after_a_restore_is_owed_to_subscriptions_stable_before_it() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").restore("B", 2.0)
    silent = history.copy().pub("B", "e1").calm()
    assert silent.broken() == {"Liveness": 1}
    assert history.pub("B", "e1").ntfy("A", "U1", "B", "e1").calm().broken() == {}


def test_restored_producer_owes_nothing_to_a_member_that_its_document_may_not_name() -> None:
    history = History("A", "B").leave("A").join("A", 2).sub("A", "U1").stable("A", "U1", "B")
    before = history.copy().restore("B", 1.0).pub("B", "e1").calm()
    assert before.broken() == {}
    after = history.restore("B", 4.0).pub("B", "e1").calm()
    assert after.broken() == {"Liveness": 1}


def test_restore_of_the_consumer_ends_its_views_from_the_backup_on() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B")
    history.pub("B", "e1").pub("B", "e2").restore("A", 3.0).calm()
    assert history.broken() == {"Liveness": 1}
    assert "Event e1 of B" in history.explained()


def test_view_that_is_stable_again_after_a_restore_obliges() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1", inf)
    history.restore("A", 2.0).calm()
    assert history.broken() == {}
    assert history.stable("A", "U1", "B").calm().broken() == {"Completeness": 1}


# -- starts, and views that are out of date -------------------------------------------------------


@pytest.mark.parametrize(("epoch", "owed"), [(3, False), (4, False), (5, True), (6, True)])
def test_only_views_of_the_new_epoch_begin_after_a_restored_start(epoch: int, owed: bool) -> None:
    history = History("A", "B").sub("A", "U1").restore("B", 1.0).start("B", 5, restored=True)
    history.stable("A", "U1", "B", epoch=epoch).pub("B", "e1", epoch=5).calm()
    assert history.broken() == ({"Liveness": 1} if owed else {})


def test_restored_start_keeps_views_of_earlier_epochs() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B", epoch=3)
    history.restore("B", 2.0).start("B", 5, restored=True)
    assert history.pub("B", "e1", epoch=5).calm().broken() == {"Liveness": 1}


def test_restored_start_keeps_views_of_its_epoch() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B", epoch=5)
    history.start("B", 5, restored=True).pub("B", "e1", epoch=5).calm()
    assert history.broken() == {"Liveness": 1}


def test_start_without_a_restore_keeps_all_views() -> None:
    history = History("A", "B").start("B", 3).sub("A", "U1").stable("A", "U1", "B", epoch=3)
    history.start("B", 4).pub("B", "e1", epoch=4).calm()
    assert history.broken() == {"Liveness": 1}


def test_stale_view_does_not_oblige_to_send_a_backlog() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1", inf).restore("B", 2.0)
    history.start("B", 5, restored=True)
    stale = history.copy().stable("A", "U1", "B", epoch=4)
    assert stale.calm().broken() == {}
    assert history.stable("A", "U1", "B", epoch=5).calm().broken() == {"Completeness": 1}


def test_restored_start_keeps_views_of_other_producers() -> None:
    history = History("A", "B", "C").sub("A", "U1").restore("B", 0.5).start("B", 5, restored=True)
    history.stable("A", "U1", "C", epoch=1).pub("C", "e1", epoch=1).calm()
    assert history.broken() == {"Liveness": 1}


def test_producer_that_rejoined_may_restart_its_epochs() -> None:
    history = History("A", "B").sub("A", "U1").restore("B", 1.0).start("B", 5, restored=True)
    history.leave("B").join("B", 2)
    history.stable("A", "U1", "B", 1, epoch=1).stable("A", "U1", "B", 2, epoch=1)
    history.pub("B", "e1", joined=2, epoch=1).calm()
    assert history.broken() == {"Liveness": 1}


def test_undone_view_does_not_oblige() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e0", inf).stable("A", "U1", "B")
    assert history.restore("A", 2.0).calm().broken() == {}


# -- restores that nest ---------------------------------------------------------------------------


def test_second_restore_may_go_back_beyond_the_first() -> None:
    history = History("A", "B").pub("B", "e1").sub("A", "U1").pub("B", "e2")
    history.ntfy("A", "U1", "B", "e1").restore("A", 3.0).ntfy("A", "U1", "B", "e1")
    assert history.broken() == {}
    history.restore("A", 1.0)
    assert history.ntfy("A", "U1", "B", "e2").broken() == {"Legality": 1}
    assert history.verdict().counts.void == 3


def test_second_restore_keeps_records_between_the_first_and_its_backup() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").ntfy("A", "U1", "B", "e1")
    history.restore("A", 2.0).ntfy("A", "U1", "B", "e1").usub("A", "U1").restore("A", 5.0)
    assert history.broken() == {}
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Minimality": 1}


def test_restore_may_return_to_a_state_that_an_earlier_one_undid() -> None:
    """The state at 3 s has the notification of 3 s, although the first restore had undone it."""
    history = History("A", "B").sub("A", "U1").pub("B", "e1").ntfy("A", "U1", "B", "e1")
    history.restore("A", 2.0).ntfy("A", "U1", "B", "e1").restore("A", 3.0)
    assert history.broken() == {}
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Minimality": 1}


def test_each_calm_judges_the_state_of_its_time() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1").restore("A", 3.0).calm()
    assert history.broken() == {"Liveness": 1}
    assert history.restore("A", 4.0).calm().broken() == {"Liveness": 1}


def test_event_lost_by_one_restore_stays_lost() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1").pub("B", "e2")
    history.restore("B", 2.0).restore("B", 3.0).calm()
    assert history.broken() == {}
    assert history.verdict().counts.lost == 2


def test_numbers_continue_from_the_last_restore() -> None:
    history = History("A", "B").take("A", "B", 1, "e1").take("A", "B", 2, "e2")
    history.take("A", "B", 3, "e3").restore("A", 2.0).take("A", "B", 3, "e3").restore("A", 1.0)
    assert history.take("A", "B", 2, "e2").take("A", "B", 3, "e3").broken() == {}


def test_event_that_a_second_restore_brings_back_may_come_after_one_published_in_between() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.restore("B", 2.0).pub("B", "e2").ntfy("A", "U1", "B", "e2")
    out_of_order = history.copy().ntfy("A", "U1", "B", "e1")
    assert history.restore("B", 3.0).ntfy("A", "U1", "B", "e1").broken() == {}
    assert out_of_order.broken() == {"FIFO": 1}, "without it, e1 is a late message"


def test_event_that_the_producer_remembers_must_come_before_a_later_one() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.restore("B", 2.0).restore("B", 3.0).pub("B", "e2").ntfy("A", "U1", "B", "e2")
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"FIFO": 1}
