"""Actions: what users, Quality Factories, operators and faults do in a simulation, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

CHAOS_S: Final = 40.0
"""How long faults are injected before everything is healed."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is done at one time: a request, a fault or a change of the federation."""

    at: float
    kind: str
    org: str = ""
    fields: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        fields = " ".join(f"{key}={value}" for key, value in self.fields.items())
        return f"{self.at:7.3f} s  {self.org:6} {self.kind:12} {fields}".rstrip()
