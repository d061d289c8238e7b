"""Subscriptions in XML: the third spelling (semantics §3, `schemas/subscription.xsd`).

Reading makes a `Statement`, whose normal form is the subscription; writing describes a subscription
as a statement. So this spelling accepts and rejects the same subscriptions as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from lxml import etree

from qns.cbr.domains import STRING
from qns.cbr.subscription import Subscription
from qns.d2q.description import describe
from qns.d2q.lexical import WHITE_SPACE, checked_name, key_text
from qns.d2q.normal_form import normal_form
from qns.d2q.schema import Schema
from qns.d2q.terms import Member, Operator, Position, Statement, Term, Written
from qns.d2q.xml import (
    MAX_BYTES,
    Element,
    child,
    is_true,
    line_of,
    new_root,
    qualified,
    read_root,
    to_bytes,
)
from qns.errors import DocumentError, DuplicateId, QnsError, shorten

MAX_SUBSCRIPTION_BYTES: Final = 8 * MAX_BYTES
"""Enough for every subscription that the textual spellings accept, with all escapes."""

_VALUE, _RANGE = qualified("value"), qualified("range")
_SOURCES, _CONSTRAINT = qualified("sources"), qualified("constraint")
_TRANSITIONS = {Operator.FALLS_BELOW, Operator.RISES_ABOVE, Operator.CHANGES_BY}
_VALUES_DUE = {Operator.BETWEEN: 2, Operator.EXISTS: 0}
"""The number of values of an operator. An operator that is not listed has one; IN has any."""


def write_subscription(subscription: Subscription, schema: Schema) -> bytes:
    """Returns the subscription as XML. Equal subscriptions of one class give equal bytes."""
    root = new_root("subscription")
    _write(root, describe(subscription, schema))
    return to_bytes(root)


def write_subscriptions(subscriptions: Iterable[tuple[str, Subscription]], schema: Schema) -> bytes:
    """Returns a list of subscriptions with their ids, as XML.

    Programs write with it the lists that `qns match` and `qns check` read.
    """
    root = new_root("subscriptions")
    for identifier, subscription in subscriptions:
        element = child(root, qualified("subscription"))
        element.set("id", checked_name("a subscription's id", identifier))
        _write(element, describe(subscription, schema))
    return to_bytes(root)


def read_subscription(
    data: bytes | str, schema: Schema, *, max_bytes: int = MAX_SUBSCRIPTION_BYTES
) -> Subscription:
    """Returns the subscription in normal form. Raises QnsError with the line."""
    root = read_root(data, "subscription", "subscription", max_bytes=max_bytes)
    return _read(root, schema)


def read_subscriptions(
    data: bytes | str,
    schema: Schema,
    *,
    max_bytes: int = MAX_SUBSCRIPTION_BYTES,
    refuse: Callable[[QnsError], None] | None = None,
) -> list[tuple[str, Subscription]]:
    """Returns the subscriptions of a list, in order, each with its id.

    The first error is raised. If `refuse` is given, it is called with each error instead.
    """
    root = read_root(data, "subscriptions", "subscription", max_bytes=max_bytes)
    found: dict[str, Subscription] = {}
    for element in root:
        try:
            identifier = checked_name("a subscription's id", element.get("id", ""))
            if identifier in found:
                raise DuplicateId(f"the id {shorten(identifier)} is given twice")
            found[identifier] = _read(element, schema)
        except QnsError as problem:
            problem.at_mark(line_of(element), None)
            if refuse is None:
                raise
            refuse(problem)
    return list(found.items())


def _write(root: Element, statement: Statement) -> None:
    root.set("class", statement.data_class)
    if statement.only:
        root.set("only", "true")
    if statement.sources is not None:
        sources = child(root, _SOURCES)
        for source in statement.sources:
            child(sources, qualified("source"), key_text(STRING, source))
    for term in statement.terms:
        element = child(root, _CONSTRAINT, attribute=term.attribute, operator=term.operator.value)
        if term.previous:
            element.set("previous", "true")
        _write_values(element, term.values)
        for member in term.members:
            if member.operator is Operator.EQUALS:
                _write_values(element, member.values)
            else:
                _write_values(child(element, _RANGE, operator=member.operator.value), member.values)


def _write_values(element: Element, values: Iterable[Written]) -> None:
    for value in values:
        child(element, _VALUE, key_text(STRING, value.text))


def _read(root: Element, schema: Schema) -> Subscription:
    sources = root.find(_SOURCES)
    try:
        statement = Statement(
            data_class=root.get("class", ""),
            only=is_true(root, "only"),
            sources=None if sources is None else tuple(_source(node) for node in sources),
            source_marks=() if sources is None else tuple(_mark(node) for node in sources),
            terms=tuple(_term(node, root, schema) for node in root.iterchildren(_CONSTRAINT)),
            class_mark=_mark(root),
        )
        text = etree.tostring(root, encoding="unicode", with_tail=False)
        return normal_form(statement, schema, text)
    except QnsError as problem:
        raise problem.at_mark(line_of(root), None) from None


def _source(element: Element) -> str:
    return (element.text or "").strip(WHITE_SPACE)


def _term(element: Element, root: Element, schema: Schema) -> Term:
    attribute = element.get("attribute", "")
    operator = Operator(element.get("operator"))
    previous = is_true(element, "previous")
    if previous and operator in _TRANSITIONS:
        raise DocumentError(
            f"{operator.value} on the previous value",
            remedy="it compares the two values already: remove previous",
        ).at_mark(line_of(element), None)
    is_text = _is_text(attribute, root, schema)
    values: tuple[Written, ...] = ()
    members: tuple[Member, ...] = ()
    if operator is Operator.IN:
        members = tuple(_member(node, is_text) for node in element)
    else:
        values = _values(element, operator, is_text)
    return Term(attribute, operator, values, members, previous, mark=_mark(element))


def _member(element: Element, is_text: bool) -> Member:
    if element.tag == _VALUE:
        return Member(Operator.EQUALS, (_written(element, is_text),))
    operator = Operator(element.get("operator"))
    return Member(operator, _values(element, operator, is_text))


def _values(element: Element, operator: Operator, is_text: bool) -> tuple[Written, ...]:
    due = _VALUES_DUE.get(operator, 1)
    if len(element) != due or any(node.tag != _VALUE for node in element):
        raise DocumentError(
            f"{operator.value} with {len(element)} values or ranges",
            remedy=f"{due} {'value is' if due == 1 else 'values are'} due",
        ).at_mark(line_of(element), None)
    return tuple(_written(node, is_text) for node in element)


def _written(element: Element, is_text: bool) -> Written:
    text = element.text or ""
    return Written(text if is_text else text.strip(WHITE_SPACE), "raw", _mark(element))


def _is_text(attribute: str, root: Element, schema: Schema) -> bool:
    """True if white space around a value is part of it. An unknown name is rejected later."""
    try:
        path = schema.data_class(root.get("class", ""))
        return schema.attribute(path, attribute).domain is STRING
    except QnsError:
        return True


def _mark(element: Element) -> Position:
    return Position(line_of(element))
