"""Log: detects damage of the write-ahead log that a crashed process has left.

SQLite ignores everything in the log after the first frame that is wrong, because a power cut leaves
such a frame in the last transaction. Every transaction is forced to the disk before the next one is
written, so damage is recognised by what a power cut cannot leave: a wrong frame with a later
transaction behind it, or a frame in which exactly one bit is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from os import SEEK_CUR
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from qns.store.checksums import PAGE_BYTES
from qns.store.faults import damaged, from_os

_HEADER: Final = Struct(">8I")
_FRAME: Final = Struct(">6I")
_FRAME_BYTES: Final = _FRAME.size + PAGE_BYTES
_LITTLE: Final = 0x377F0682
_BIG: Final = 0x377F0683
"""How a log begins; the byte order is that of the words in its checksums."""
_SECTOR_BYTES: Final = 512
_MASK: Final = 2**32 - 1

Sums = tuple[int, int]
"""A checksum of SQLite's log, which continues that of the frame before."""


class Frame(NamedTuple):
    number: int
    page: int
    pages: int
    """The pages of the store after the transaction that the frame ends; 0 if it ends none."""
    salts: Sums
    sums: Sums
    """The checksum that the frame has."""
    summed: bytes
    """What the checksum is computed from."""
    magic: int

    @property
    def words(self) -> tuple[int, ...]:
        return _words(self.summed, self.magic)

    @property
    def can_be_torn(self) -> bool:
        """True if the end of a transaction can be old and the salts new: sectors divide them."""
        return (_HEADER.size + self.number * _FRAME_BYTES + 8) % _SECTOR_BYTES == 0

    def computed(self, before: Sums) -> Sums:
        return _checksum(self.words, before)


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def check_log(path: Path, verified: int) -> None:
    """Raises StoreFailed if the log of a store is damaged; no other process may use the store.

    The first frames, up to the end of a transaction, have been verified by SQLite.
    """
    try:
        with log_of(path).open("rb") as file:
            _check(file, verified, str(path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise from_os(error, str(path)) from None


def pages_in_log(path: Path, verified: int) -> frozenset[int]:
    """Returns the pages of the file that the verified frames of the log replace."""
    if not verified:
        return frozenset()
    try:
        with log_of(path).open("rb") as file:
            return frozenset(_page_of(file, number) for number in range(verified))
    except OSError as error:
        raise from_os(error, str(path)) from None


def bytes_in_use(path: Path) -> int:
    """Returns how much of the log counts: SQLite writes it again from the beginning and leaves
    what was behind."""
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return 0
        magic, *_, salt_1, salt_2, _, _ = _HEADER.unpack(header)
        frames = takewhile(lambda frame: frame.salts == (salt_1, salt_2), _frames(file, 0, magic))
        return _HEADER.size + _FRAME_BYTES * sum(1 for _ in frames)


def _page_of(file: BinaryIO, number: int) -> int:
    file.seek(_HEADER.size + number * _FRAME_BYTES)
    return int.from_bytes(file.read(4), "big")


def _check(file: BinaryIO, verified: int, place: str) -> None:
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not any(header):
        return  # it has never been forced to the disk
    magic, *_, salt_1, salt_2, sum_1, sum_2 = _HEADER.unpack(header)
    words = _words(header[:24], magic)
    if magic not in {_LITTLE, _BIG} or _checksum(words, (0, 0)) != (sum_1, sum_2):
        raise damaged("the beginning of its log has changed on the disk", place)
    before = (sum_1, sum_2)
    if verified:
        file.seek(_HEADER.size + (verified - 1) * _FRAME_BYTES)
        *_, sum_1, sum_2 = _FRAME.unpack(file.read(_FRAME.size))
        before = (sum_1, sum_2)
        file.seek(PAGE_BYTES, SEEK_CUR)
    frames = _frames(file, verified, magic)
    for frame in frames:
        if frame.salts == (salt_1, salt_2) and frame.computed(before) == frame.sums:
            before = frame.sums  # it belongs to a transaction that was not finished
            continue
        if _is_damage(frame, before, (salt_1, salt_2), frames):
            what = f"frame {frame.number + 1} of its log (page {frame.page})"
            raise damaged(f"{what} has changed on the disk", place)
        return


def _frames(file: BinaryIO, first: int, magic: int) -> Iterator[Frame]:
    number = first
    while len(found := file.read(_FRAME_BYTES)) == _FRAME_BYTES:
        page, pages, *salts, sum_1, sum_2 = _FRAME.unpack_from(found)
        summed = found[:8] + found[_FRAME.size :]
        yield Frame(number, page, pages, (salts[0], salts[1]), (sum_1, sum_2), summed, magic)
        number += 1


def _is_damage(wrong: Frame, before: Sums, salts: Sums, later: Iterator[Frame]) -> bool:
    """True if a power cut cannot have left the wrong frame."""
    if _is_one_bit(wrong, before, salts):
        return True
    # A power cut leaves at most one transaction that has not been forced to the disk. The wrong
    # frame belongs to it or ends it.
    ends = bool(wrong.salts == salts and wrong.pages and not wrong.can_be_torn)
    before = wrong.sums
    for frame in later:
        if frame.salts == salts and frame.pages and frame.computed(before) == frame.sums:
            if ends:
                return True
            ends = True
        before = frame.sums
    return False


def _is_one_bit(frame: Frame, before: Sums, salts: Sums) -> bool:
    """True if one changed bit explains why the frame is wrong."""
    computed = frame.computed(before)
    if computed == frame.sums:
        return _bits(frame.salts, salts) == 1
    if frame.salts != salts:
        return False
    if _bits(computed, frame.sums) == 1:
        return True
    # The checksum is linear: a bit of a word changes it by the bit's value times a factor, which
    # depends on the place of the word alone.
    wanted = ((computed[0] - frame.sums[0]) & _MASK, (computed[1] - frame.sums[1]) & _MASK)
    values = [sign << bit & _MASK for bit in range(32) for sign in (1, -1)]
    return any(
        wanted == (value * factor_0 & _MASK, value * factor_1 & _MASK)
        for factor_0, factor_1 in _factors(len(frame.summed) // 4)
        for value in values
    )


def _factors(words: int) -> Iterator[Sums]:
    """Yields what each word adds to the checksum, from the last pair of words to the first."""
    first, second = (1, 1), (0, 1)
    for _ in range(words // 2):
        yield first
        yield second
        first, second = _checksum((0, 0), first), _checksum((0, 0), second)


def _checksum(words: tuple[int, ...], before: Sums) -> Sums:
    sum_1, sum_2 = before
    for even, odd in zip(words[::2], words[1::2], strict=True):
        sum_1 = sum_1 + even + sum_2 & _MASK
        sum_2 = sum_2 + odd + sum_1 & _MASK
    return sum_1, sum_2


def _words(content: bytes, magic: int) -> tuple[int, ...]:
    order = ">" if magic == _BIG else "<"
    return Struct(f"{order}{len(content) // 4}I").unpack(content)


def _bits(one: Sums, other: Sums) -> int:
    """Returns the number of bits in which the two differ."""
    return (one[0] ^ other[0]).bit_count() + (one[1] ^ other[1]).bit_count()
