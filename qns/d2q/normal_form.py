"""Normal form: turns a statement into a subscription with one value set for each attribute.

Names are resolved and types are checked here. All errors in a subscription are found at
subscription time; matching checks no types (semantics §3).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, zip_longest

from qns.cbr.domains import BOOLEAN, DATE, DATETIME, QUALITY, STRING, Domain, Key
from qns.cbr.intervals import Interval, Intervals
from qns.cbr.region import EVERY_QUALITY, Region
from qns.cbr.strings import EVERY_STRING, Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.d2q.description import describe
from qns.d2q.lexical import checked_organisation, read_value
from qns.d2q.schema import Attribute, Schema
from qns.d2q.terms import (
    MAX_NAME_CHARACTERS,
    MAX_NORMAL_TERMS,
    MAX_TERMS,
    MAX_VALUE_CHARACTERS,
    SIGNS,
    Member,
    Operator,
    Position,
    Statement,
    Term,
    Written,
)
from qns.errors import LimitExceeded, QnsError, Unsatisfiable, ValueRefused, shorten

_PATTERNS = {Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS}
_TRANSITIONS = {Operator.FALLS_BELOW, Operator.RISES_ABOVE, Operator.CHANGES_BY}
_ORDER = {Operator.BELOW, Operator.AT_MOST, Operator.ABOVE, Operator.AT_LEAST, Operator.BETWEEN}
_MAX_SOURCES = 4_096
_IN_VALUES = "characters in strings and sources"


def normal_form(statement: Statement, schema: Schema, text: str = "") -> Subscription:
    """Returns the subscription of a statement in a schema. Raises QnsError if it is not valid."""
    try:
        path = schema.data_class(statement.data_class)
    except QnsError as problem:
        raise _marked(problem, statement.class_mark) from None
    sizes = list(accumulate(term.size for term in statement.terms))
    if sizes and sizes[-1] > MAX_TERMS:
        mark = statement.terms[bisect_right(sizes, MAX_TERMS)].mark
        _limit(sizes[-1], MAX_TERMS, "terms", mark)
    sources = _sources(statement)
    characters = sum(map(len, sources or ()))
    _limit(characters, MAX_VALUE_CHARACTERS, _IN_VALUES, statement.class_mark)
    asked: dict[str, list[tuple[ValueSet, Position]]] = {}
    for term in statement.terms:
        try:
            attribute = _attribute(term, path, schema)
            values = value_set(term, attribute, schema)
        except QnsError as problem:
            raise _marked(problem, term.mark) from None
        if isinstance(values, Strings):
            characters += values.characters
            _limit(characters, MAX_VALUE_CHARACTERS, _IN_VALUES, term.mark)
        asked.setdefault(attribute.name, []).append((values, term.mark))
    constraints = {name: _joined(name, sets) for name, sets in asked.items()}
    has_quality = any(isinstance(values, Region) for values in constraints.values())
    only = statement.only or has_quality
    subscription = Subscription(
        scope=schema.scope(path, only),
        sources=sources,
        constraints=constraints,
        data_class=path,
        only=only,
        text=text,
    )
    _check_size(subscription, schema, statement.class_mark)
    return subscription


def in_grown_schema(subscription: Subscription, schema: Schema) -> Subscription:
    """Returns the subscription as it is in a later schema, which may have classes below its own.

    Its names and values mean the same there (`qns.federation.schema_changes`).
    """
    scope = schema.scope(subscription.data_class, subscription.only)
    return subscription if scope == subscription.scope else replace(subscription, scope=scope)


def _joined(name: str, sets: Sequence[tuple[ValueSet, Position]]) -> ValueSet:
    """Intersects all constraints on one attribute. Raises at the one that leaves nothing."""
    values = _common(sets)
    if values.is_empty:
        last = bisect_left(range(len(sets)), True, key=lambda at: _common(sets[: at + 1]).is_empty)
        raise _marked(Unsatisfiable(name), sets[last][1])
    return values


def _common(sets: Sequence[tuple[ValueSet, Position]]) -> ValueSet:
    """Returns the intersection, computed by halves.

    One by one, a thousand exclusions would take a million steps.
    """
    if len(sets) == 1:
        return sets[0][0]
    middle = len(sets) // 2
    left, right = _common(sets[:middle]), _common(sets[middle:])
    return left.intersect(right)  # type: ignore[arg-type]  # same attribute, same kind


def _check_size(subscription: Subscription, schema: Schema, mark: Position) -> None:
    """Raises LimitExceeded if the printed subscription could not be parsed again."""
    sizes = {name: values.terms for name, values in subscription.constraints.items()}
    _limit(sum(sizes.values()), MAX_NORMAL_TERMS, "terms in normal form", mark)
    if 2 * sum(len(name) * terms for name, terms in sizes.items()) > MAX_NAME_CHARACTERS:
        names = sum(len(term.attribute) for term in describe(subscription, schema).terms)
        _limit(names, MAX_NAME_CHARACTERS, "characters in names", mark)


def _limit(size: int, limit: int, what: str, mark: Position) -> None:
    if size > limit:
        too_much = LimitExceeded(
            f"an expression of {size:,} {what}", remedy=f"at most {limit:,}: split it"
        )
        raise _marked(too_much, mark)


def _sources(statement: Statement) -> frozenset[str] | None:
    if statement.sources is None:
        return None
    if not statement.sources:
        raise ValueRefused(
            "an empty set of sources", remedy="omit the sources to accept all of them"
        )
    if len(statement.sources) > _MAX_SOURCES:
        raise LimitExceeded(f"{len(statement.sources):,} sources", remedy=f"at most {_MAX_SOURCES}")
    for source, mark in zip_longest(statement.sources, statement.source_marks):
        try:
            checked_organisation(source)
        except QnsError as problem:
            raise (_marked(problem, mark) if mark else problem) from None
    return frozenset(statement.sources)


def _attribute(term: Term, path: str, schema: Schema) -> Attribute:
    attribute = schema.attribute(path, term.attribute)
    if attribute.dimension is not None:
        attribute = schema.quality_attribute(path, term.attribute)
        if term.part == "data":
            raise ValueRefused(
                f"{attribute.name} is a quality constraint among the data constraints",
                remedy="quality constraints stand in the third part: <class, data, quality>",
            )
    elif term.part == "quality":
        raise ValueRefused(
            f"{attribute.name} is a data constraint among the quality constraints",
            remedy=f"data constraints stand in the second part; or name a dimension, as in "
            f"{term.attribute}.accuracy",
        )
    elif term.previous:
        raise ValueRefused(
            f"{attribute.name} has no previous value", remedy="`was` is for quality dimensions"
        )
    return attribute


def value_set(term: Term, attribute: Attribute, schema: Schema) -> ValueSet:
    """Returns the values that satisfy one term. Raises QnsError if its types are wrong."""
    domain = attribute.domain
    if domain is STRING:
        return _strings(term, attribute)
    if term.operator in _PATTERNS:
        raise _operator_refused(term, attribute)
    if domain is not QUALITY:
        return _intervals(term, attribute, schema)
    if term.operator in _TRANSITIONS:
        threshold = _key(term.values[0], domain, schema)
        assert isinstance(threshold, int)
        if term.operator is Operator.FALLS_BELOW:
            return Region.falls_below(threshold)
        if term.operator is Operator.RISES_ABOVE:
            return Region.rises_above(threshold)
        return Region.changes_by(threshold)
    values = _intervals(term, attribute, schema)
    return Region.of(EVERY_QUALITY, values) if term.previous else Region.of(values)


def _strings(term: Term, attribute: Attribute) -> Strings:
    def text(written: Written) -> str:
        if written.form == "bare":
            raise _marked(
                ValueRefused(
                    f"{attribute.name} is a string, {shorten(written.text)} is not quoted",
                    remedy=f'write "{written.text[:60]}"',
                ),
                written.mark,
            )
        key = _checked(STRING, written)
        assert isinstance(key, str)
        return key

    match term.operator:
        case Operator.EXISTS:
            return EVERY_STRING
        case Operator.EQUALS:
            return Strings.of([text(term.values[0])])
        case Operator.DIFFERS:
            return Strings.described(excluded=[text(term.values[0])])
        case Operator.STARTS_WITH:
            return Strings.described(prefix=text(term.values[0]))
        case Operator.ENDS_WITH:
            return Strings.described(suffix=text(term.values[0]))
        case Operator.CONTAINS:
            return Strings.described(fragments=[piece for piece in [text(term.values[0])] if piece])
        case Operator.IN:
            _refuse_empty(term, attribute)
            if any(member.operator is not Operator.EQUALS for member in term.members):
                raise _operator_refused(term, attribute, "ranges")
            return Strings.of(text(member.values[0]) for member in term.members)
    raise _operator_refused(term, attribute)


def _intervals(term: Term, attribute: Attribute, schema: Schema) -> Intervals:
    domain = attribute.domain
    if term.operator in _TRANSITIONS or (
        domain is BOOLEAN and term.operator in _ORDER | {Operator.IN}
    ):
        raise _operator_refused(term, attribute)
    if term.operator is Operator.EXISTS:
        return Intervals.all_of(domain)
    if term.operator is Operator.IN:
        _refuse_empty(term, attribute)
        return Intervals.of(
            span for member in term.members for span in _range(member, attribute, schema)
        )
    return Intervals.of(_spans(term.operator, _keys(term, domain, schema), domain))


def _range(member: Member, attribute: Attribute, schema: Schema) -> list[Interval]:
    keys = _keys(member, attribute.domain, schema)
    spans = _spans(member.operator, keys, attribute.domain)
    if all(lo > hi for lo, hi in spans):
        texts = [value.text for value in member.values]
        shown = " to ".join(texts) if len(texts) > 1 else f"{SIGNS[member.operator]} {texts[0]}"
        raise _marked(
            ValueRefused(
                f"the range {shorten(shown)} of {attribute.name} is empty",
                remedy="give the lower end first, or leave it out",
            ),
            member.values[0].mark,
        )
    return spans


def _spans(operator: Operator, keys: Sequence[int], domain: Domain) -> list[Interval]:
    first = keys[0]
    match operator:
        case Operator.EQUALS:
            return [(first, first)]
        case Operator.DIFFERS:
            return [(domain.lo, first - 1), (first + 1, domain.hi)]
        case Operator.BELOW:
            return [(domain.lo, first - 1)]
        case Operator.AT_MOST:
            return [(domain.lo, first)]
        case Operator.ABOVE:
            return [(first + 1, domain.hi)]
        case Operator.AT_LEAST:
            return [(first, domain.hi)]
        case Operator.BETWEEN:
            return [(first, keys[1])]
    raise AssertionError(operator)


def _keys(written: Term | Member, domain: Domain, schema: Schema) -> list[int]:
    keys = [_key(value, domain, schema) for value in written.values]
    return [key for key in keys if isinstance(key, int)]


def _key(written: Written, domain: Domain, schema: Schema) -> Key:
    if written.form == "quoted" and domain not in (DATE, DATETIME):
        raise _marked(
            ValueRefused(
                f"{shorten(written.text)} is a quoted string where a {domain.name} value is due",
                remedy="write it without quotes",
            ),
            written.mark,
        )
    start = written.text[:1]
    if domain is QUALITY and (
        written.text.casefold() in schema.labels or start.isalpha() or start == "_"
    ):
        try:
            return QUALITY.key(schema.label(written.text))
        except QnsError as problem:
            raise _marked(problem, written.mark) from None
    return _checked(domain, written)


def _checked(domain: Domain, written: Written) -> Key:
    try:
        return read_value(domain, written.text)
    except QnsError as problem:
        raise _marked(problem, written.mark) from None


def _refuse_empty(term: Term, attribute: Attribute) -> None:
    if not term.members:
        raise ValueRefused(f"an empty set for {attribute.name}", remedy="list at least one value")


def _operator_refused(term: Term, attribute: Attribute, what: str = "") -> QnsError:
    domain = attribute.domain
    allowed = {Operator.EQUALS, Operator.DIFFERS}
    if domain is STRING:
        allowed |= _PATTERNS | {Operator.IN}
    elif domain is not BOOLEAN:
        allowed |= _ORDER | {Operator.IN}
    if domain is QUALITY:
        allowed |= _TRANSITIONS
    signs = [sign for operator, sign in SIGNS.items() if operator in allowed]
    name = what or f"the operator {SIGNS[term.operator]}"
    return ValueRefused(
        f"{attribute.name} is of type {domain.name}: {name} does not apply",
        remedy=f"use {', '.join(signs)} or exists",
    )


def _marked(problem: QnsError, mark: Position) -> QnsError:
    return problem.at_mark(mark.line, mark.column)
