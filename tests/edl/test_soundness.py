"""Soundness: what is wrong with a message is found, and the short way finds nothing else."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl import soundness
from qns.edl.messages import Entry, Envelope, Fence, Notification, Notify
from qns.edl.soundness import LARGEST, objection

PLAIN = Notification("P", 1, 1, 1, "e1", b"<event/>", 0.0, Entry("C", 1, 1, 1, 1), ("P",))
NUMBERS = st.sampled_from([0, 1, LARGEST - 1, LARGEST, -1, 2**70, True, None, 1.0, "1"])
TEXTS = st.sampled_from(["P", "", "città", "\ud800", None, 3, b"P"])
ENTRIES = st.builds(
    Entry,
    *(TEXTS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    st.lists(st.builds(Fence, NUMBERS, NUMBERS), max_size=1).map(tuple),
    st.sampled_from([(), (PLAIN.entry,)]),
)
NOTIFICATIONS = st.builds(
    Notification,
    *(TEXTS, NUMBERS, NUMBERS, NUMBERS, TEXTS),
    st.sampled_from([b"", b"<event/>", "<event/>"]),
    st.sampled_from([0.0, 1.5, float("inf"), -1.0, float("nan"), 3]),
    st.just(PLAIN.entry) | ENTRIES,
    st.lists(TEXTS, max_size=2).map(tuple),
)


def told(item: Any) -> str | None:
    return objection(Envelope("P", 1, (), Notify((item,))))


@given(NOTIFICATIONS)
def test_the_short_way_agrees_with_the_long_one(item: Notification) -> None:
    found = told(item)
    with patch.object(soundness, "_is_ordinary", lambda _: False):
        assert told(item) == found


@pytest.mark.parametrize(
    "change",
    [
        {"joined": -1},
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
def test_one_wrong_part_is_enough(change: dict[str, Any]) -> None:
    assert told(PLAIN) is None
    assert told(PLAIN._replace(**change)) is not None
