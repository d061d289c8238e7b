"""Tests of what the judge makes of rights: what is owed, and in which order it comes."""

from __future__ import annotations

from math import inf

from tests.history.builder import History

PART = {"class": "Thing/Part"}


def stable() -> History:
    """Returns a history in which U1 of A is stable at B."""
    return History("A", "B").sub("A", "U1").stable("A", "U1", "B")


def test_event_that_may_not_be_read_is_not_owed() -> None:
    history = stable().rights("B", "A", "Thing").pub("B", "e1", **PART)
    assert history.calm().broken() == {}
    assert history.pub("B", "e2").calm().broken() == {"Liveness": 1}


def test_rights_of_one_consumer_do_not_concern_another() -> None:
    history = History("A", "B", "C").sub("A", "U1").stable("A", "U1", "B")
    history.rights("B", "C").pub("B", "e1").calm()
    assert history.broken() == {"Liveness": 1}


def test_class_that_may_be_read_again_is_owed_once_the_view_is_stable_again() -> None:
    history = stable().rights("B", "A", "Thing").pub("B", "e1", inf, **PART)
    history.rights("B", "A", "Thing", "Thing/Part").pub("B", "e2", **PART).calm()
    assert history.broken() == {}
    assert history.copy().stable("A", "U1", "B").calm().broken() == {"Completeness": 1}
    history.stable("A", "U1", "B").pub("B", "e3", **PART).calm()
    assert history.broken() == {"Completeness": 1, "Liveness": 1}


def test_view_of_a_consumer_that_does_not_know_its_rights_yet_does_not_oblige() -> None:
    history = History("A", "B").sub("A", "U1").rights("B", "A", "Thing").stable("A", "U1", "B")
    assert history.pub("B", "e1", **PART).calm().broken() == {}
    assert history.pub("B", "e2").calm().broken() == {"Liveness": 1}


def test_same_rights_after_a_start_change_nothing() -> None:
    history = stable().rights("B", "A", "Thing").start("B", 1).rights("B", "A", "Thing")
    assert history.pub("B", "e1").calm().broken() == {"Liveness": 1}


def test_restore_discards_the_rights_that_the_producer_gave() -> None:
    history = stable().rights("B", "A", "Thing").restore("B", 2.0).start("B", 1, restored=True)
    history.stable("A", "U1", "B", epoch=1).pub("B", "e1", epoch=1, **PART).calm()
    assert history.broken() == {"Liveness": 1}


def test_event_that_might_not_be_read_at_its_publication_may_come_late() -> None:
    history = stable().rights("B", "A", "Thing").pub("B", "e1", inf, **PART).pub("B", "e2")
    history.rights("B", "A", "Thing", "Thing/Part").ntfy("A", "U1", "B", "e2")
    assert history.ntfy("A", "U1", "B", "e1").broken() == {}
    once = stable().pub("B", "e1", inf, **PART).pub("B", "e2").rights("B", "A", "Thing")
    once.rights("B", "A", "Thing", "Thing/Part").ntfy("A", "U1", "B", "e2")
    assert once.ntfy("A", "U1", "B", "e1").broken() == {}
    readable = stable().pub("B", "e1", inf, **PART).pub("B", "e2").ntfy("A", "U1", "B", "e2")
    assert readable.ntfy("A", "U1", "B", "e1").broken() == {"FIFO": 1}


def test_withheld_event_is_excused_counted_apart_and_may_cross_again() -> None:
    history = stable().pub("B", "e1", inf).cross("B", "A", 1, "e1").withhold("B", "A", 1, "e1")
    verdict = history.copy().calm().verdict()
    assert verdict.holds
    assert (verdict.counts.withheld, verdict.counts.dropped, verdict.counts.excused) == (1, 0, 1)
    assert history.cross("B", "A", 2, "e1").broken() == {}


def test_ways_are_not_judged_after_a_change_of_rights_until_the_next_calm() -> None:
    history = stable().pub("B", "e1").rights("B", "A", "Thing").ways("B>A")
    assert history.broken() == {}
    assert history.calm().pub("B", "e2").copy().broken() == {"Liveness": 1}
