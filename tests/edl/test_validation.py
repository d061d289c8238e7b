"""Validation rejects wrong messages; its fast path gives the same results as the full one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl import validation
from qns.edl.messages import Acknowledge, Entry, Envelope, Fence, Notification, Notify, Standing
from qns.edl.validation import LARGEST, MOST_FENCES, validate_envelope

PLAIN = Notification("P", 1, 1, 1, "e1", b"<event/>", 0.0, Entry("C", 1, 1, 1, 1), ("P",))
NUMBERS = st.sampled_from([0, 1, LARGEST - 1, LARGEST, -1, 2**70, True, None, 1.0, "1"])
TEXTS = st.sampled_from(["P", "", "città", "\ud800", None, 3, b"P"])
ENTRIES = st.builds(
    Entry,
    TEXTS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.lists(st.builds(Fence, NUMBERS, NUMBERS), max_size=1).map(tuple),
    st.sampled_from([(), (PLAIN.entry,)]),
)
NOTIFICATIONS = st.builds(
    Notification,
    TEXTS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    TEXTS,
    st.sampled_from([b"", b"<event/>", "<event/>"]),
    st.sampled_from([0.0, 1.5, float("inf"), -1.0, float("nan"), 3]),
    st.just(PLAIN.entry) | ENTRIES,
    st.lists(TEXTS, max_size=2).map(tuple),
)


def problem_of(item: Any) -> str | None:
    """Returns what validation finds wrong with a Notify of this item."""
    return validate_envelope(Envelope("P", 1, (), Notify((item,))))


@given(NOTIFICATIONS)
def test_fast_check_of_notifications_agrees_with_the_full_validation(item: Notification) -> None:
    found = problem_of(item)
    with patch.object(validation, "_is_ordinary", lambda _: False):
        assert problem_of(item) == found


@pytest.mark.parametrize(
    "change",
    [
        {"producer_incarnation": -1},
        {"epoch": LARGEST},
        {"sequence": 2**70},
        {"remaining_s": float("nan")},
        {"remaining_s": -0.5},
        {"source": "\ud800"},
        {"path": ("P", "\ud800")},
        {"entry": PLAIN.entry._replace(number=-1)},
        {"entry": PLAIN.entry._replace(fences=(Fence(1, -1),))},
        {"entry": PLAIN.entry._replace(children=(PLAIN.entry._replace(epoch=LARGEST),))},
    ],
    ids=str,
)
def test_validation_rejects_a_notification_with_one_wrong_field(change: dict[str, Any]) -> None:
    assert problem_of(PLAIN) is None
    assert problem_of(PLAIN._replace(**change)) is not None


def test_message_with_more_fences_than_a_stream_can_have_is_rejected() -> None:
    fences = tuple(Fence(epoch, epoch) for epoch in range(1, MOST_FENCES + 2))
    standing = Standing(1, 1, 1, 1, 1, fences)
    assert (
        validate_envelope(Envelope("C", 1, (), Acknowledge(standing))) == "more than 1,000 fences"
    )
    entry = PLAIN.entry._replace(fences=fences)
    assert problem_of(PLAIN._replace(entry=entry)) == "more than 1,000 fences"
    fewer = Acknowledge(standing._replace(fences=fences[1:]))
    assert validate_envelope(Envelope("C", 1, (), fewer)) is None
