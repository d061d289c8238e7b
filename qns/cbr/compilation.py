"""Compilation: compiles functions over plain numbers and arrays, if numba is installed."""

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
    """Compiles the function at its first call and caches it on disk. Does nothing without numba."""
    return _compile(function, inline="never")


def inlined(function: _Function) -> _Function:
    """Variant of `compiled` for a function whose code is copied into its callers."""
    return _compile(function, inline="always")


def _compile(function: _Function, inline: str) -> _Function:
    if njit is None:
        return function
    try:
        result: _Function = njit(cache=True, nogil=True, inline=inline)(function)
    except RuntimeError:  # no cache folder: the code is read-only and there is no home
        result = njit(nogil=True, inline=inline)(function)
    return result
