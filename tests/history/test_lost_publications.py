"""Events that a restored or lost store has forgotten, although others were notified of them."""

from __future__ import annotations

import pytest

from tests.history.builder import History


def restored_producer() -> History:
    """Returns a history in which B has published e1, was backed up, and the rest is forgotten."""
    history = History("A", "B").start("A", 1).start("B", 1).sub("A", "U1")
    history.pub("B", "e1", epoch=1).cross("B", "A", 1, "e1", epoch=1)
    return history.take("A", "B", 1, "e1", epoch=1).ntfy("A", "U1", "B", "e1")


def test_event_that_a_restored_producer_has_forgotten_may_have_been_notified() -> None:
    history = restored_producer().take("A", "B", 2, "e2", epoch=1).ntfy("A", "U1", "B", "e2")
    assert history.broken() == {"Validity": 1}
    history.start("B", 2, restored=True)
    assert history.broken() == {}
    assert history.verdict().counts.lost == 1


def test_consumer_may_take_a_forgotten_event_after_the_restore() -> None:
    history = restored_producer().start("B", 2, restored=True)
    history.take("A", "B", 2, "e2", epoch=1).ntfy("A", "U1", "B", "e2")
    assert history.broken() == {}


def test_event_of_a_lost_store_may_have_been_notified() -> None:
    history = History("A", "B").sub("A", "U1").take("A", "B", 1, "e1", epoch=4)
    history.ntfy("A", "U1", "B", "e1").start("B", 1).start("B", 5, restored=True)
    assert history.broken() == {}


@pytest.mark.parametrize(
    ("number", "epoch"), [(1, 1), (2, 2), (2, 3), (2, 0)], ids=["number", "epoch", "later", "older"]
)
def test_event_outside_the_forgotten_part_of_a_stream_is_invalid(number: int, epoch: int) -> None:
    history = restored_producer().start("B", 2, restored=True).rewind("A", "B", 1, epoch=2)
    history.take("A", "B", number, "x", epoch=epoch).ntfy("A", "U1", "B", "x")
    assert history.broken().get("Validity") == 1


def test_event_that_was_never_taken_is_invalid() -> None:
    history = restored_producer().ntfy("A", "U1", "B", "e2").start("B", 2, restored=True)
    assert history.broken() == {"Validity": 1}


def test_restore_of_another_producer_explains_nothing() -> None:
    history = restored_producer().take("A", "B", 2, "e2", epoch=1).ntfy("A", "U1", "B", "e2")
    assert history.start("A", 2, restored=True).broken() == {"Validity": 1}
    assert history.start("B", 2).broken() == {"Validity": 1}


def test_forgotten_event_may_be_published_and_notified_once_more() -> None:
    history = restored_producer().take("A", "B", 2, "e2", epoch=1).ntfy("A", "U1", "B", "e2")
    history.start("B", 2, restored=True).rewind("A", "B", 2, epoch=2).pub("B", "e2", epoch=2)
    history.cross("B", "A", 2, "e2", epoch=2).take("A", "B", 2, "e2", epoch=2)
    assert history.ntfy("A", "U1", "B", "e2").broken() == {}
    assert history.ntfy("A", "U1", "B", "e2").broken() == {"Minimality": 1}
