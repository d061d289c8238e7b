"""The matching index: insert, delete and match online, with the oracle's answers.

`MatchingIndex` is the compiled one where numba is installed (`pip install "qns[fast]"`), and the
plain one otherwise; both answer the same.
"""

from __future__ import annotations

from qns.cbr.compilation import HAS_NUMBA
from qns.cbr.index.dictionary import DictionaryIndex

if HAS_NUMBA:
    from qns.cbr.index.compiled import CompiledIndex as MatchingIndex
else:
    MatchingIndex = DictionaryIndex  # type: ignore[assignment,misc]

__all__ = ["DictionaryIndex", "MatchingIndex"]
