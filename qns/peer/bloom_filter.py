"""Bloom filter: a small set of keys that may seem to contain a few others too.

It answers most questions for absent keys without a look at the disk. A million keys take about
three megabytes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

_BITS_PER_KEY: Final = 12
_PROBES: Final = 6
"""With twelve bits for each key, one of 300 absent keys seems to be present."""
_FIRST_KEYS: Final = 2**14


class BloomFilter:
    """Grows with the number of keys. A key cannot be removed, but all can."""

    def __init__(self) -> None:
        self._layers: list[_Layer] = []

    def add(self, key: Hashable) -> None:
        if not self._layers or not self._layers[-1].room:
            self._layers.append(_Layer(_FIRST_KEYS << 2 * len(self._layers)))
        self._layers[-1].add(hash(key))

    def __contains__(self, key: Hashable) -> bool:
        """False if the key was never added; usually also if it was not."""
        number = hash(key)
        return any(number in layer for layer in self._layers)

    def clear(self) -> None:
        self._layers.clear()


class _Layer:
    def __init__(self, keys: int) -> None:
        self.room = keys
        self._size = keys * _BITS_PER_KEY
        self._bits = bytearray(self._size // 8)

    def add(self, number: int) -> None:
        self.room -= 1
        for place in self._places(number):
            self._bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, number: int) -> bool:
        bits = self._bits
        return all(bits[place >> 3] & 1 << (place & 7) for place in self._places(number))

    def _places(self, number: int) -> list[int]:
        first, step = number & 0xFFFFFFFF, number >> 32 & 0xFFFFFFFF | 1
        return [(first + probe * step) % self._size for probe in range(_PROBES)]
