"""Seal texts: a leaf is read back as it was written, and other bytes are refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl.messages import ANY_MEMBER, Entry, Fence, Notification
from qns.edl.seal_texts import Leaf, entry_text, head_text, read_leaf, write_leaf
from qns.errors import DocumentError

_NUMBERS = st.integers(0, 2**64 - 1)
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
LEAVES = st.builds(
    Leaf,
    _TEXTS,
    _NUMBERS,
    _NUMBERS,
    _NUMBERS,
    _TEXTS,
    st.binary(min_size=32, max_size=32),
    st.builds(
        Entry,
        _TEXTS,
        _NUMBERS,
        _NUMBERS,
        _NUMBERS,
        _NUMBERS,
        st.lists(st.builds(Fence, _NUMBERS, _NUMBERS), max_size=3).map(tuple),
        st.just(()),
        st.lists(_TEXTS, max_size=3).map(tuple),
        st.just(b""),
    ),
)


@given(LEAVES)
def test_leaf_is_read_back_as_it_was_written(leaf: Leaf) -> None:
    assert read_leaf(write_leaf(leaf)) == leaf


@given(LEAVES, st.data())
def test_altered_leaf_is_refused_or_another_one(leaf: Leaf, data: st.DataObject) -> None:
    written = bytearray(write_leaf(leaf))
    start = data.draw(st.integers(0, len(written)))
    written[start : start + 1] = data.draw(st.binary(max_size=3))
    with suppress(DocumentError):
        found = read_leaf(bytes(written))
        assert write_leaf(found) == written


def test_leaf_is_what_a_producer_signs_for_an_entry() -> None:
    entry = Entry("A", 1, 2, 3, 4, (Fence(5, 6),), (), ("P", ANY_MEMBER))
    item = Notification("P", 7, 8, 9, "e1", b"<event/>", 0.0, entry, ("P",))
    leaf = read_leaf(head_text(item) + entry_text(entry))
    assert leaf[:5] == ("P", 7, 8, 9, "e1")
    assert leaf.entry == entry


@pytest.mark.parametrize("data", [b"", b"S", b"N", b"N" + b"\xff" * 40])
def test_bytes_that_are_no_leaf_are_refused(data: bytes) -> None:
    with pytest.raises(DocumentError):
        read_leaf(data)
