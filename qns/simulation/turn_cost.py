"""Turn cost: how many lines of Python a turn executes, the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


def counted(do: Callable[[], Result]) -> tuple[Result, int]:
    """Calls the function; returns its result and the number of lines that it executed."""
    lines = 0

    def trace(_: FrameType, event: str, __: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = do()
    finally:
        sys.settrace(before)
    return result, lines
