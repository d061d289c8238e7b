"""Tests of `Input`: lines are read in bounded pieces."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cli.inputs import Input, Unreadable, decoded
from qns.errors import QnsError


class Trickle(io.BytesIO):
    """A pipe that returns its data in pieces of the given sizes."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        super().__init__(data)
        self.sizes = sizes

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read(self.sizes.pop() if self.sizes else 3)


def lines_of(
    data: bytes, sizes: list[int], limit: int, head: bool
) -> list[tuple[int, bytes | None]]:
    source = Input("pipe", Trickle(data, sizes))
    if head:
        source.head()
    return [
        (number, line)
        for first, lines in source.batches(limit)
        for number, line in enumerate(lines, start=first)
    ]


@given(
    st.lists(
        st.sampled_from([b"\xef\xbb\xbf", b"\xef\xbb", b"\r"])
        | st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"-"))
    ),
    st.booleans(),
    st.lists(st.integers(1, 9)),
    st.integers(0, 6),
    st.booleans(),
)
def test_lines_are_the_same_for_every_size_of_reads(
    lines: list[bytes], ended: bool, sizes: list[int], limit: int, head: bool
) -> None:
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    kept = [line if len(line) <= limit else None for line in expected]
    assert lines_of(data, sizes, limit, head) == list(enumerate(kept, start=1))


@pytest.mark.parametrize("sizes", [[], [1] * 9, [100]])
def test_byte_order_mark_is_removed_from_first_line(sizes: list[int]) -> None:
    assert lines_of(b"\xef\xbb\xbfa\nb\n", sizes, 9, False) == [(1, b"a"), (2, b"b")]


def test_only_line_feed_ends_a_line() -> None:
    text = "a\u2028b\x0bc\x85d\re\r\n".encode()
    assert lines_of(text, [], 99, False) == [(1, text[:-1])]
    assert decoded(text[:-1]) == "a\u2028b\x0bc\x85d\re"


def test_head_does_not_consume_input(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 200_000)
    with Input(str(path)) as source:
        assert source.size_bytes == 200_000
        assert len(source.head()) >= 65_536
        assert len(source.read(1_000_000)) == 200_000
    with Input(str(path)) as source:
        assert len(source.read(1_000)) == 1_001


@pytest.mark.parametrize("name", ["nowhere/at/all", "", "nul\0in it"])
def test_unreadable_file_is_named_in_error(name: str) -> None:
    with pytest.raises(Unreadable, match="cannot be read"):
        Input(name)


def test_invalid_utf8_byte_is_reported_with_column() -> None:
    with pytest.raises(QnsError, match="byte 0xE8 is not UTF-8") as caught:
        decoded("perché ".encode() + b"\xe8")
    assert caught.value.column == 8
