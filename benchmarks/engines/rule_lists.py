"""rule-engine: every subscription is a rule; an event is checked against the rules of its class.

The rules read the parsed JSON as it is; nothing is validated.
"""

from __future__ import annotations

from typing import Any

import orjson
from rule_engine import Context, Rule, resolve_item

from benchmarks.engines import Engine, LineEngine, Subscriptions
from qns.cbr.domains import DECIMAL, QUALITY, Domain
from qns.cbr.intervals import Intervals
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet


class RuleEngine(LineEngine):
    def __init__(self, subscriptions: Subscriptions) -> None:
        super().__init__()
        context = Context(resolver=resolve_item, default_value=None)
        self._rules: dict[str, list[tuple[int, Rule]]] = {}
        for id, subscription in subscriptions.items():
            rule = Rule(rule_text(subscription), context=context)
            self._rules.setdefault(subscription.data_class, []).append((id, rule))

    def match(self, work: bytes) -> list[int]:
        fields = orjson.loads(work)
        facts: dict[str, Any] = {**fields["data"], "source": fields["source"]}
        for name, value in fields["quality"].items():
            facts[name.replace(".", "_")] = value
        return [id for id, rule in self._rules.get(fields["class"], ()) if rule.matches(facts)]


def rule_text(subscription: Subscription) -> str:
    parts: list[str] = []
    for attribute, values in subscription.constraints.items():
        name = attribute.removeprefix(f"{subscription.data_class}.").replace(".", "_")
        parts += _conditions(name, values)
    if subscription.sources is not None:
        listed = ", ".join(f'"{source}"' for source in sorted(subscription.sources))
        parts.append(f"source in [{listed}]")
    return " and ".join(parts)


def _conditions(name: str, values: ValueSet) -> list[str]:
    if isinstance(values, Strings):
        assert values.listed is not None
        (text,) = values.listed
        return [f'{name} == "{text}"']
    if isinstance(values, Intervals):
        return _bounds(name, values, DECIMAL)
    # Only quality values can be absent, and rule-engine does not compare null with a number.
    return [f"{name} != null", *_bounds(name, values.new, QUALITY)]


def _bounds(name: str, values: Intervals, domain: Domain) -> list[str]:
    lo, hi = values.lowest, values.highest
    return [
        *([f"{name} >= {domain.value(lo)}"] if lo > domain.lo else []),
        *([f"{name} <= {domain.value(hi)}"] if hi < domain.hi else []),
    ]


def build(subscriptions: Subscriptions) -> dict[str, Engine]:
    return {"rule-engine": RuleEngine(subscriptions)}
