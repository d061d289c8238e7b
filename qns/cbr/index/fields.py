"""Fields: the numbers that stand for attributes, strings and sources in the compiled index."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from qns.cbr.index.layout import WEIGHT_DATA, WEIGHT_QUALITY
from qns.cbr.strings import Strings

Named = TypeVar("Named", bound=Hashable)

UNKNOWN_CODE: Final = 1 << 40
"""The code of every string that no subscription names."""
_BITS = 64
_BITS_PER_LEVEL = 16


class Codes(Generic[Named]):
    """Small numbers for things in use. The number of a thing that is not used any more is free."""

    __slots__ = ("_first", "_free", "_uses", "of")

    def __init__(self, first: int = 0) -> None:
        self.of: dict[Named, int] = {}
        self._first = first
        self._uses: list[int] = []
        self._free: list[int] = []

    def use(self, thing: Named) -> int:
        """Returns the number of a thing and counts one more use of it."""
        code = self.of.get(thing)
        if code is not None:
            self._uses[code - self._first] += 1
            return code
        if self._free:
            code = self._free.pop()
            self._uses[code - self._first] = 1
        else:
            code = self._first + len(self._uses)
            self._uses.append(1)
        self.of[thing] = code
        return code

    def unuse(self, thing: Named) -> bool:
        """Counts one use less. True if this was the last use."""
        code = self.of[thing]
        self._uses[code - self._first] -= 1
        if self._uses[code - self._first]:
            return False
        del self.of[thing]
        self._free.append(code)
        return True


class Field(Codes[str]):
    """The number of one attribute, and the codes of the strings that subscriptions name."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def code(self, text: str) -> int:
        return self.of.get(text, UNKNOWN_CODE)


class Fields:
    """All attributes that subscriptions have named so far."""

    def __init__(self) -> None:
        self.entries: dict[str, Field] = {}
        self.previous: dict[str, int] = {}  # attribute -> the field of its previous value
        self.bits: list[int] = [0]  # field -> one of 64 bits, by which rows say what they need
        self.weights: list[int] = [0]  # field -> how likely an event carries it
        self._bits_taken: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.bits)

    def of(self, attribute: str) -> Field:
        """Returns the field of an attribute, a new one if it has none yet."""
        entry = self.entries.get(attribute)
        if entry is None:
            weight = WEIGHT_QUALITY if attribute.count(".") > 1 else WEIGHT_DATA
            entry = self.entries[attribute] = Field(self._new_number(attribute, weight))
        return entry

    def of_previous(self, attribute: str) -> int:
        """Returns the field of an attribute's previous value, a new one if it has none yet."""
        number = self.previous.get(attribute)
        if number is None:
            number = self.previous[attribute] = self._new_number(attribute, WEIGHT_QUALITY)
        return number

    def forget(self, attribute: str, values: Strings) -> None:
        """Frees the codes that a subscription's strings used."""
        for text in values.listed or values.excluded:
            self.entries[attribute].unuse(text)

    def _new_number(self, attribute: str, weight: int) -> int:
        # Attributes of one class get different bits; those of enclosing classes start elsewhere.
        owner = attribute.partition(".")[0]
        taken = self._bits_taken.get(owner, _BITS_PER_LEVEL * owner.count("/"))
        self._bits_taken[owner] = taken + 1
        self.bits.append(taken % _BITS)
        self.weights.append(weight)
        return len(self.bits) - 1
