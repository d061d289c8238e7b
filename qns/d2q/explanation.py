"""Explanation: why an event matches a subscription, or which conditions it does not satisfy.

The conditions are those of the normal form, as `printing.py` writes them. An event matches if all
of them hold (semantics §4). Of the event's content, each condition shows only the value that it is
about.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from qns.cbr.domains import QUALITY, STRING, Key
from qns.cbr.event import Event
from qns.cbr.region import Region
from qns.cbr.subscription import Subscription
from qns.d2q.description import spelled, terms_of
from qns.d2q.lexical import write_value
from qns.d2q.normal_form import value_set
from qns.d2q.printing import condition_parts
from qns.d2q.schema import Attribute, Schema
from qns.d2q.terms import Term
from qns.errors import shorten

CLASS: Final = "class"
SOURCE: Final = "source"
_MOST_CHARACTERS: Final = 60


class Condition(NamedTuple):
    """One condition of a subscription, and the value of an event to which it applies."""

    what: str
    """`class`, `source`, or an attribute as the language writes it."""
    operator: str
    expected: str
    """The value or values after the operator; empty for `exists`."""
    actual: str | None
    """The event's value; None if the event does not carry one."""
    holds: bool

    @property
    def text(self) -> str:
        """The condition as the language writes it."""
        return " ".join(part for part in (self.what, self.operator, self.expected) if part)


class Explanation(NamedTuple):
    conditions: tuple[Condition, ...]

    @property
    def matches(self) -> bool:
        return all(each.holds for each in self.conditions)

    @property
    def failing(self) -> tuple[Condition, ...]:
        return tuple(each for each in self.conditions if not each.holds)


def explain(subscription: Subscription, event: Event, schema: Schema) -> Explanation:
    """Explains whether the event matches.

    If the class is outside the scope, the attributes of the subscription do not apply to the event
    and are left out.
    """
    conditions = [_of_class(subscription, event)]
    if subscription.sources is not None:
        conditions.append(_of_source(subscription.sources, event))
    if conditions[0].holds:
        path = subscription.data_class
        for name, values in subscription.constraints.items():
            attribute = schema.attribute(path, name)
            terms = terms_of(attribute, values, spelled(schema, path, name))
            conditions += (_of_term(term, attribute, event, schema) for term in terms)
    return Explanation(tuple(conditions))


def _of_class(subscription: Subscription, event: Event) -> Condition:
    is_wide = len(subscription.scope) > 1
    return Condition(
        CLASS,
        "is or is below" if is_wide else "is",
        subscription.data_class,
        event.data_class,
        event.data_class in subscription.scope,
    )


def _of_source(sources: frozenset[str], event: Event) -> Condition:
    expected = f"{{{', '.join(sorted(sources))}}}"
    return Condition(SOURCE, "in", expected, event.source, event.source in sources)


def _of_term(term: Term, attribute: Attribute, event: Event, schema: Schema) -> Condition:
    wanted = value_set(term, attribute, schema)
    new, previous = event.values.get(attribute.name), event.previous.get(attribute.name)
    if new is None:
        holds = False
    else:
        holds = wanted.holds(new, previous) if isinstance(wanted, Region) else wanted.holds(new)
    actual = None if new is None else _shown(attribute, new)
    if isinstance(wanted, Region) and wanted.previous is not None and actual is not None:
        before = "nothing" if previous is None else write_value(QUALITY, previous)
        actual = f"{before} → {actual}"
    return Condition(*condition_parts(term), actual, holds)


def _shown(attribute: Attribute, key: Key) -> str:
    text = write_value(attribute.domain, key)
    return shorten(text, _MOST_CHARACTERS) if attribute.domain is STRING else text
