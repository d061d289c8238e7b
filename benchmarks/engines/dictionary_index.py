"""The matching index in plain Python."""

from __future__ import annotations

from benchmarks.engines import DICTIONARY, Engine, LineEngine, Subscriptions
from qns.cbr.index.dictionary import DictionaryIndex


class DictionaryEngine(LineEngine):
    def __init__(self, subscriptions: Subscriptions) -> None:
        super().__init__()
        self._index = DictionaryIndex(subscriptions)

    def match(self, work: bytes) -> list[int]:
        return self._index.match(self.read(work))


def build(subscriptions: Subscriptions) -> dict[str, Engine]:
    return {DICTIONARY: DictionaryEngine(subscriptions)}
