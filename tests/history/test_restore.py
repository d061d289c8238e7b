"""What a restore undoes, at the restored organisation and at the others; restores that nest."""

from __future__ import annotations

from math import inf

import pytest

from tests.history.builder import History

# Each record is one second after the one before: with two members, the first added is at 1 s.


def test_a_notification_that_was_undone_is_owed_again_and_may_be_repeated() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1").restore("A", 3.0)
    owing = history.copy()
    assert owing.calm().broken() == {"Liveness": 1}
    assert history.ntfy("A", "U1", "B", "e1").calm().broken() == {}
    assert history.verdict().counts.void == 1


def test_a_notification_that_is_older_than_the_backup_still_counts() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1").restore("A", 4.0)
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Minimality": 1}


def test_what_was_undone_is_held_against_nobody() -> None:
    history = History("A", "B").sub("A", "U1", "Thing/Part").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1").ntfy("A", "U1", "B", "e1").take("A", "B", 7, "e1")
    assert history.broken() == {"Legality": 2, "Minimality": 1, "No gap": 1}
    assert history.restore("A", 2.0).broken() == {}
    assert history.verdict().checks["Legality"] == 0


def test_a_subscription_that_was_undone_is_gone() -> None:
    history = History("A", "B").pub("B", "e1").sub("A", "U1").restore("A", 1.0)
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}


def test_its_id_may_be_given_again() -> None:
    history = History("A", "B").pub("B", "e1").sub("A", "U1", "Thing/Part").restore("A", 1.0)
    assert history.sub("A", "U1", "Thing").ntfy("A", "U1", "B", "e1").broken() == {}


def test_an_end_that_was_undone_is_no_end() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").usub("A", "U1").restore("A", 2.0)
    assert history.ntfy("A", "U1", "B", "e1").broken() == {}


def test_a_pause_and_a_resume_are_undone_alike() -> None:
    paused = History("A", "B").sub("A", "U1").pub("B", "e1").pause("A", "U1").restore("A", 2.0)
    assert paused.ntfy("A", "U1", "B", "e1").broken() == {}
    resumed = History("A", "B").sub("A", "U1").pub("B", "e1").pause("A", "U1").resume("A", "U1")
    assert resumed.restore("A", 3.0).ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}


def test_a_lapse_that_was_undone_allows_nothing() -> None:
    history = History("A", "B").sub("A", "U1", group="g").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1", group="g").lapse("A", "U1", "B", "e1", "g").restore("A", 3.0)
    assert history.ntfy("A", "U1", "B", "e1", group="g").broken() == {"Minimality": 1}


def test_joining_and_leaving_are_not_undone() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").leave("A").join("A", 2)
    history.restore("A", 2.0).pub("B", "e1").calm()
    assert history.broken() == {}
    # It learns once more that it was away.
    history.usub("A", "U1", "left")
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Legality": 1}


# -- the producer's side --------------------------------------------------------------------------


def test_a_lost_event_may_be_delivered_and_is_owed_to_nobody() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").sub("B", "V1")
    history.pub("B", "e1", inf).restore("B", 3.0)
    silent = history.copy()
    assert silent.calm().broken() == {}
    assert silent.verdict().counts.lost == 1
    assert history.ntfy("A", "U1", "B", "e1").calm().broken() == {}


def test_what_was_published_before_the_backup_is_still_owed() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    assert history.restore("B", 3.0).calm().broken() == {"Liveness": 1}


def test_views_count_no_longer_after_a_restore_of_the_producer() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").restore("B", 2.0)
    history.pub("B", "e1").calm()
    assert history.broken() == {}
    history.stable("A", "U1", "B").pub("B", "e2").calm()
    assert history.broken() == {"Liveness": 1}


def test_views_count_no_longer_from_the_consumers_backup_on() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B")
    history.pub("B", "e1").pub("B", "e2").restore("A", 3.0).calm()
    assert history.broken() == {"Liveness": 1}
    assert "Event e1 of B" in history.explained()


def test_a_view_after_the_restore_obliges_anew() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1", inf)
    history.restore("A", 2.0).calm()
    assert history.broken() == {}
    assert history.stable("A", "U1", "B").calm().broken() == {"Completeness": 1}


# -- starts, and views that are out of date -------------------------------------------------------


def restored() -> History:
    """B was restored and started as epoch 5; before that, U1 of A was stable at it."""
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B", epoch=3)
    return history.restore("B", 2.0)


@pytest.mark.parametrize(("epoch", "owed"), [(3, False), (4, False), (5, True), (6, True)])
def test_after_a_restored_start_only_views_of_the_new_epoch_count(epoch: int, owed: bool) -> None:
    history = restored().start("B", 5, restored=True).stable("A", "U1", "B", epoch=epoch)
    history.pub("B", "e1", epoch=5).calm()
    assert history.broken() == ({"Liveness": 1} if owed else {})


def test_a_view_that_became_stable_before_the_start_counts_no_longer_after_it() -> None:
    history = restored().stable("A", "U1", "B", epoch=3).start("B", 5, restored=True)
    assert history.pub("B", "e1", epoch=5).calm().broken() == {}


def test_a_view_that_knows_the_new_epoch_outlasts_the_start() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B", epoch=5)
    history.start("B", 5, restored=True).pub("B", "e1", epoch=5).calm()
    assert history.broken() == {"Liveness": 1}


def test_a_start_without_a_restore_changes_nothing() -> None:
    history = History("A", "B").start("B", 3).sub("A", "U1").stable("A", "U1", "B", epoch=3)
    history.start("B", 4).pub("B", "e1", epoch=4).calm()
    assert history.broken() == {"Liveness": 1}


def test_a_stale_view_does_not_oblige_to_a_backlog() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1", inf).restore("B", 2.0)
    history.start("B", 5, restored=True)
    stale = history.copy().stable("A", "U1", "B", epoch=4)
    assert stale.calm().broken() == {}
    assert history.stable("A", "U1", "B", epoch=5).calm().broken() == {"Completeness": 1}


def test_views_of_another_producer_are_not_stale() -> None:
    history = History("A", "B", "C").sub("A", "U1").restore("B", 0.5).start("B", 5, restored=True)
    history.stable("A", "U1", "C", epoch=1).pub("C", "e1", epoch=1).calm()
    assert history.broken() == {"Liveness": 1}


def test_a_producer_that_came_back_may_count_its_epochs_anew() -> None:
    history = restored().start("B", 5, restored=True).leave("B").join("B", 2)
    history.stable("A", "U1", "B", 1, epoch=1).stable("A", "U1", "B", 2, epoch=1)
    history.pub("B", "e1", joined=2, epoch=1).calm()
    assert history.broken() == {"Liveness": 1}


def test_a_view_that_was_undone_never_obliged() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e0", inf).stable("A", "U1", "B")
    assert history.restore("A", 2.0).calm().broken() == {}


# -- restores that nest ---------------------------------------------------------------------------


def test_a_second_restore_may_go_back_further() -> None:
    history = History("A", "B").pub("B", "e1").sub("A", "U1").pub("B", "e2")
    history.ntfy("A", "U1", "B", "e1").restore("A", 3.0).ntfy("A", "U1", "B", "e1")
    assert history.broken() == {}
    history.restore("A", 1.0)
    assert history.ntfy("A", "U1", "B", "e2").broken() == {"Legality": 1}
    assert history.verdict().counts.void == 3


def test_a_second_restore_after_the_first_keeps_what_came_between() -> None:
    history = History("A", "B").sub("A", "U1").pub("B", "e1").ntfy("A", "U1", "B", "e1")
    history.restore("A", 2.0).ntfy("A", "U1", "B", "e1").usub("A", "U1").restore("A", 5.0)
    assert history.broken() == {}
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Minimality": 1}


def test_a_restore_may_return_to_what_an_earlier_one_had_undone() -> None:
    """The state at 3 s knows the notification at 3 s, though the first restore had undone it."""
    history = History("A", "B").sub("A", "U1").pub("B", "e1").ntfy("A", "U1", "B", "e1")
    history.restore("A", 2.0).ntfy("A", "U1", "B", "e1").restore("A", 3.0)
    assert history.broken() == {}
    assert history.ntfy("A", "U1", "B", "e1").broken() == {"Minimality": 1}


def test_each_calm_judges_what_counted_then() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.ntfy("A", "U1", "B", "e1").restore("A", 3.0).calm()
    assert history.broken() == {"Liveness": 1}
    assert history.restore("A", 4.0).calm().broken() == {"Liveness": 1}


def test_an_event_that_any_restore_lost_stays_lost() -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1").pub("B", "e2")
    history.restore("B", 2.0).restore("B", 3.0).calm()
    assert history.broken() == {}
    assert history.verdict().counts.lost == 2


def test_numbers_go_on_where_the_last_restore_left_them() -> None:
    history = History("A", "B").take("A", "B", 1, "e1").take("A", "B", 2, "e2")
    history.take("A", "B", 3, "e3").restore("A", 2.0).take("A", "B", 3, "e3").restore("A", 1.0)
    assert history.take("A", "B", 2, "e2").take("A", "B", 3, "e3").broken() == {}
