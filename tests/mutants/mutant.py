"""Mutant: one deliberate bug, as a replacement of a text that occurs once in a source file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    file: str
    """The source file, relative to the root of the project."""
    kind: str
    """What sort of bug it is; the kinds are the chapters of docs/mutants.md."""
    breaks: str
    """What it breaks, in one sentence."""
    old: str
    """The text that it replaces; it occurs exactly once in the file."""
    new: str
    survives: str = ""
    """Why no test can catch it; empty if a test must."""

    def mutated(self, source: str) -> str:
        """Returns the source with the bug. Raises ValueError unless the text occurs once."""
        found = source.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: the text occurs {found} times in {self.file}")
        return source.replace(self.old, self.new)

    def applied_to(self, root: Path) -> str:
        """Returns the mutated source of the file in this copy of the project."""
        return self.mutated((root / self.file).read_text(encoding="utf-8"))
