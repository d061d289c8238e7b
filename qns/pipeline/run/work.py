"""Work: everything that one run computes, whether it was generated or replayed from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qns.pipeline.spark.queries import Query


@dataclass(frozen=True, slots=True)
class Work:
    asked: Mapping[str, object]
    """The request in plain values. Equal requests are the same run."""
    scenarios: Sequence[Mapping[str, object]]
    """`Scenario.described()` of each scenario, with its `id`."""
    groups: Mapping[str, Sequence[Query]]
    """Scenario id -> its queries."""
