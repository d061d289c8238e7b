"""Meaning: which events the text of a subscription accepts (semantics §3, §4).

This is the judge's own evaluator. It evaluates each condition of the statement as written, on plain
values. It uses no normal forms, value sets or keys; tests compare it with the routing core.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final, NamedTuple

from qns.d2q.language import parse_statement
from qns.d2q.schema import Attribute, Schema
from qns.d2q.terms import SIGNS, Operator, Term, Written
from qns.errors import DocumentError, ValueRefused, shorten, show

Plain = str | int | bool | Decimal | date | datetime

_QUALITY_STEP: Final = Decimal("1e-15")

_TESTS: Final[dict[Operator, Callable[..., bool]]] = {
    Operator.EQUALS: operator.eq,
    Operator.DIFFERS: operator.ne,
    Operator.BELOW: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.ABOVE: operator.gt,
    Operator.AT_LEAST: operator.ge,
    Operator.BETWEEN: lambda value, low, high: low <= value <= high,
    Operator.STARTS_WITH: str.startswith,
    Operator.ENDS_WITH: str.endswith,
    Operator.CONTAINS: operator.contains,
    Operator.EXISTS: lambda _: True,
}
"""Operator -> test, called with the event's value and the operands of the subscription."""

_TRANSITIONS: Final[dict[Operator, Callable[..., bool]]] = {
    Operator.FALLS_BELOW: lambda previous, new, limit: previous >= limit and new < limit,
    Operator.RISES_ABOVE: lambda previous, new, limit: previous <= limit and new > limit,
    Operator.CHANGES_BY: lambda previous, new, least: abs(new - previous) >= least,
}

_ANY_TYPE = {Operator.EQUALS, Operator.DIFFERS, Operator.EXISTS}
_TEXT = {Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS}
_ORDERED = _TESTS.keys() - _TEXT | {Operator.IN}
_OPERATORS: Final = {
    "string": _ANY_TYPE | _TEXT | {Operator.IN},
    "boolean": _ANY_TYPE,
    "quality": _ORDERED | _TRANSITIONS.keys(),
}
"""Type -> the operators that apply to it; every other type has those of `_ORDERED`."""


class PlainEvent(NamedTuple):
    """An event with plain values."""

    data_class: str
    source: str
    values: Mapping[str, Plain]
    """Data and quality values, by qualified name."""
    previous: Mapping[str, Plain]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a subscription: a test of one attribute."""

    attribute: str
    test: Callable[..., bool]
    operands: tuple[Plain, ...] = ()
    """The arguments of the test after the event's value or values."""
    of_previous: bool = False
    """True if the test is about the previous value."""
    of_both: bool = False
    """True for a transition: the test gets the previous value and the new one."""

    def holds(self, event: PlainEvent) -> bool:
        """True if the event fulfils the condition."""
        new = event.values.get(self.attribute)
        if new is None:
            return False
        if not self.of_previous and not self.of_both:
            return self.test(new, *self.operands)
        previous = event.previous.get(self.attribute)
        if previous is None:
            return False
        if self.of_previous:
            return self.test(previous, *self.operands)
        return self.test(previous, new, *self.operands)

    def mismatch(self, event: PlainEvent) -> str:
        """Returns the reason why the condition does not hold, in words."""
        new, previous = event.values.get(self.attribute), event.previous.get(self.attribute)
        if new is None:
            return f"it carries no {self.attribute}"
        if not self.of_previous and not self.of_both:
            return f"its {self.attribute} is {_shown(new)}"
        was = "its previous value is missing" if previous is None else f"was {_shown(previous)}"
        return f"its {self.attribute} is {_shown(new)} and {was}"


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """A subscription ⟨δ[:S], exprD, exprQ⟩ as a scope, sources and conditions."""

    data_class: str
    only: bool
    sources: frozenset[str] | None
    conditions: tuple[Condition, ...]

    def matches(self, event: PlainEvent) -> bool:
        """True if the event is in scope and fulfils all conditions."""
        if not self._in_scope(event.data_class):
            return False
        if self.sources is not None and event.source not in self.sources:
            return False
        for condition in self.conditions:  # noqa: SIM110 (a hot loop: faster than all())
            if not condition.holds(event):
                return False
        return True

    def mismatch(self, event: PlainEvent) -> str:
        """Returns the reason why the event does not match, in words; empty if it matches."""
        if not self._in_scope(event.data_class):
            return f"its class is {event.data_class}"
        if self.sources is not None and event.source not in self.sources:
            return f"{event.source} is not one of the subscription's sources"
        for condition in self.conditions:
            if not condition.holds(event):
                return condition.mismatch(event)
        return ""

    def _in_scope(self, path: str) -> bool:
        if path == self.data_class:
            return True
        return not self.only and path.startswith(f"{self.data_class}/")


@lru_cache(maxsize=8_192)
def meaning_of(schema: Schema, text: str) -> Meaning:
    """Returns the meaning of a subscription's text; raises QnsError if the text is invalid."""
    statement = parse_statement(text)
    path = schema.data_class(statement.data_class)
    conditions, has_quality = [], False
    for term in statement.terms:
        attribute = schema.attribute(path, term.attribute)
        if attribute.dimension is not None:
            attribute = schema.quality_attribute(path, term.attribute)
            has_quality = True
        conditions.append(_condition(term, attribute, schema))
    return Meaning(
        path,
        statement.only or has_quality,
        None if statement.sources is None else frozenset(statement.sources),
        tuple(conditions),
    )


def plain_event(schema: Schema, fields: Mapping[str, Any]) -> PlainEvent:
    """Returns the event of a JSON object (qns.d2q.event_json); raises QnsError if it is invalid."""
    data_class, source = fields.get("class"), fields.get("source")
    if type(data_class) is not str or type(source) is not str:
        raise DocumentError("an event without class or source", remedy="give both, as strings")
    path = schema.data_class(data_class)
    values = {}
    for name, value in _part(fields, "data"):
        attribute = schema.attribute(path, name)
        values[attribute.name] = _from_json(attribute, value, schema)
    for name, value in _part(fields, "quality"):
        attribute = schema.quality_attribute(path, name)
        values[attribute.name] = _from_json(attribute, value, schema)
    previous = {}
    for name, value in _part(fields, "previous"):
        attribute = schema.quality_attribute(path, name)
        previous[attribute.name] = _from_json(attribute, value, schema)
    return PlainEvent(path, source, values, previous)


def _condition(term: Term, attribute: Attribute, schema: Schema) -> Condition:
    allowed = _OPERATORS.get(_type(attribute), _ORDERED)
    if term.operator not in allowed or (term.previous and attribute.dimension is None):
        raise ValueRefused(
            f"{attribute.name} is of type {_type(attribute)}: {SIGNS[term.operator]} "
            f"{'of a previous value ' if term.previous else ''}does not apply"
        )

    def read(written: tuple[Written, ...]) -> tuple[Plain, ...]:
        return tuple(_from_text(attribute, each.text, schema) for each in written)

    if term.operator in _TRANSITIONS:
        test = _TRANSITIONS[term.operator]
        return Condition(attribute.name, test, read(term.values), of_both=True)
    if term.operator is not Operator.IN:
        return Condition(
            attribute.name, _TESTS[term.operator], read(term.values), of_previous=term.previous
        )
    members = [(_TESTS[member.operator], read(member.values)) for member in term.members]

    def is_member(value: Plain) -> bool:
        return any(test(value, *given) for test, given in members)

    return Condition(attribute.name, is_member, of_previous=term.previous)


def _type(attribute: Attribute) -> str:
    return "quality" if attribute.dimension else attribute.prop.domain.name


def _from_text(attribute: Attribute, text: str, schema: Schema) -> Plain:
    """Reads a value as subscriptions write it."""
    kind = _type(attribute)
    try:
        match kind:
            case "string":
                return text
            case "integer":
                return int(text)
            case "boolean":
                return {"true": True, "false": False}[text]
            case "decimal":
                return _finite(Decimal(text))
            case "quality":
                if text.casefold() in schema.labels:
                    return _quality(schema.label(text))
                return _quality(Decimal(text))
            case "date":
                return date.fromisoformat(text)
        return _instant(text)
    except (ValueError, KeyError, InvalidOperation):
        raise ValueRefused(f"{shorten(text)} is not of type {kind}") from None


def _from_json(attribute: Attribute, value: object, schema: Schema) -> Plain:
    """Reads a value as events carry it."""
    kind = _type(attribute)
    if type(value) is str:
        if kind in ("integer", "decimal", "boolean"):
            raise ValueRefused(f"{attribute.name} is {show(value)}, not of type {kind}")
        return _from_text(attribute, value, schema)
    if kind == "boolean" and type(value) is bool:
        return value
    if kind == "integer" and type(value) is int:
        return value
    if type(value) is int or type(value) is float:
        if kind == "decimal":
            return _finite(Decimal(repr(value)))
        if kind == "quality":
            return _quality(value)
    raise ValueRefused(f"{attribute.name} is {show(value)}, not of type {kind}")


def _quality(number: float | Decimal) -> Decimal:
    exact = _finite(number if isinstance(number, Decimal) else Decimal(repr(number)))
    if not 0 <= exact <= 1:
        raise ValueRefused(f"quality value {exact:.15g} is outside [0, 1]")
    return exact.quantize(_QUALITY_STEP, ROUND_HALF_UP)


def _finite(number: Decimal) -> Decimal:
    if not number.is_finite():
        raise ValueRefused(f"{number} is not finite", remedy="give a number")
    return number


def _shown(value: Plain) -> str:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else show(value)


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError("no zone")
    return instant


def _part(fields: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    part = fields.get(name, {})
    if type(part) is not dict:
        raise DocumentError(f"'{name}' of an event is not an object", remedy='such as {"Name": …}')
    return list(part.items())
