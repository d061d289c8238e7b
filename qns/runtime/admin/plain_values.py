"""Plain values: the values of a peer as what JSON can carry."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """Returns named tuples as objects, by the names of their fields, and tuples as lists."""
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value
