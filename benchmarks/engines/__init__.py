"""The engines of the matching benchmark, which find the matching subscriptions of JSON lines.

There is one file for each family. A family whose library is not installed is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.workload import SCHEMA
from qns.cbr.subscription import Subscription
from qns.d2q.event_json import EventReader

Subscriptions = dict[int, Subscription]
"""Id -> subscription; the ids are 0, 1, 2, … without a gap."""


class Engine:
    """One way to match. Only `match` is measured."""

    batch = 1  # lines at a time

    def prepare(self, lines: Sequence[bytes]) -> list[Any]:
        """Returns the pieces of work, one for each call of `match`."""
        return in_batches(lines, self.batch)

    def match(self, work: Any) -> Any:
        raise NotImplementedError

    def ids(self, work: Any, answer: Any) -> list[list[int]]:
        """Returns the answer to one piece of work as ids for each of its lines, in any order."""
        raise NotImplementedError


class LineEngine(Engine):
    """An engine that takes one line at a time."""

    def __init__(self) -> None:
        self.read = EventReader(SCHEMA).read

    def prepare(self, lines: Sequence[bytes]) -> list[Any]:
        return list(lines)

    def ids(self, work: Any, answer: Any) -> list[list[int]]:  # noqa: ARG002
        return [answer]


@dataclass(frozen=True, slots=True)
class Family:
    """Engines that share what they build from the subscriptions."""

    module: str
    library: str
    names: tuple[str, ...]

    @property
    def installed(self) -> bool:
        return find_spec(self.library) is not None

    def build(self, subscriptions: Subscriptions) -> dict[str, Engine]:
        built: dict[str, Engine] = import_module(f"{__name__}.{self.module}").build(subscriptions)
        assert tuple(built) == self.names
        return built


NUMPY = "numpy scan"
COMPILED_ONE = "compiled, one at a time"
COMPILED_BATCH = "compiled, batches of 256"
COMPILED_HANDLES = "compiled, handles only"
COMPILED_ENCODED = "compiled, encoded events"
DICTIONARY = "dictionary"

FAMILIES = (
    Family("numpy_columns", "numpy", (NUMPY,)),
    Family(
        "compiled_index",
        "numba",
        (COMPILED_ONE, COMPILED_BATCH, COMPILED_HANDLES, COMPILED_ENCODED),
    ),
    Family("dictionary_index", "qns", (DICTIONARY,)),
    Family("brute_force", "qns", ("oracle",)),
    Family("rtree_hulls", "rtree", ("rtree + post-filter",)),
    Family("rule_lists", "rule_engine", ("rule-engine",)),
    Family("duckdb_join", "duckdb", ("DuckDB join",)),
    Family("polars_join", "polars", ("polars join",)),
)


def installed() -> list[Family]:
    return [family for family in FAMILIES if family.installed]


def in_batches(lines: Sequence[bytes], size: int) -> list[Any]:
    return [lines[start : start + size] for start in range(0, len(lines), size)]
