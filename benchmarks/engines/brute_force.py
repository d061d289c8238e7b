"""The oracle: it compares the event with every subscription."""

from __future__ import annotations

from typing import Any

from benchmarks.engines import Engine, LineEngine, Subscriptions
from qns.cbr import oracle


class OracleEngine(LineEngine):
    def __init__(self, subscriptions: Subscriptions) -> None:
        super().__init__()
        self._subscriptions: Any = subscriptions  # any ids that can be sorted will do

    def match(self, work: bytes) -> Any:
        return oracle.match(self._subscriptions, self.read(work))


def build(subscriptions: Subscriptions) -> dict[str, Engine]:
    return {"oracle": OracleEngine(subscriptions)}
