"""Compilation: functions over plain numbers and arrays, compiled by numba where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

try:
    from numba import njit as _njit

    njit: Any = _njit
except ImportError:
    njit = None

HAS_NUMBA: Final = njit is not None

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The function, compiled at its first call and kept on disk; as it is without numba."""
    return _compile(function, inline="never")


def inlined(function: _Function) -> _Function:
    """The same, for a function that becomes part of its callers."""
    return _compile(function, inline="always")


def _compile(function: _Function, inline: str) -> _Function:
    if njit is None:
        return function
    try:
        result: _Function = njit(cache=True, nogil=True, inline=inline)(function)
    except RuntimeError:  # nowhere to keep it: the code is read-only and there is no home
        result = njit(nogil=True, inline=inline)(function)
    return result
