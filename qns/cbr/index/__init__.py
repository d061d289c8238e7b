"""The matching index: inserts, deletes and matches online, with the oracle's answers.

`MatchingIndex` is the compiled index if numba is installed (`pip install "qns[fast]"`), and the
plain one otherwise. Both give the same answers.
"""

from __future__ import annotations

from qns.cbr.compilation import HAS_NUMBA
from qns.cbr.index.dictionary import DictionaryIndex

if HAS_NUMBA:
    from qns.cbr.index.compiled import CompiledIndex as MatchingIndex
else:
    MatchingIndex = DictionaryIndex  # type: ignore[assignment,misc]

__all__ = ["DictionaryIndex", "MatchingIndex"]
