"""Tree: draws a tree of styled text with lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from qns.cli.screen import Part


@dataclass(slots=True)
class Branch:
    """One line of the tree and its branches."""

    label: list[Part]
    below: list[Branch] = field(default_factory=list)


def tree_lines(top: Branch) -> Iterator[list[Part]]:
    """Yields the lines of a tree of any depth."""
    yield top.label
    waiting = _hung(top, "")
    while waiting:
        stem, branch, is_last = waiting.pop()
        yield [(stem + ("└── " if is_last else "├── "), "dim"), *branch.label]
        waiting += _hung(branch, stem + ("    " if is_last else "│   "))


def _hung(branch: Branch, stem: str) -> list[tuple[str, Branch, bool]]:
    """Returns the branches below as a stack, with the first on top."""
    return [(stem, each, each is branch.below[-1]) for each in reversed(branch.below)]
