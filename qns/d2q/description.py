"""Description: turns a subscription into a statement whose terms mean exactly its value sets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from qns.cbr.domains import QUALITY, Domain
from qns.cbr.intervals import Interval, Intervals
from qns.cbr.region import EVERY_QUALITY, Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.d2q.lexical import write_value
from qns.d2q.schema import Attribute, Schema
from qns.d2q.terms import Member, Operator, Statement, Term, Written


def describe(subscription: Subscription, schema: Schema) -> Statement:
    """Returns a statement whose normal form is this subscription."""
    path = subscription.data_class
    return Statement(
        data_class=path,
        only=subscription.only,
        sources=None if subscription.sources is None else tuple(sorted(subscription.sources)),
        terms=tuple(
            term
            for name, values in subscription.constraints.items()
            for term in terms_of(schema.attribute(path, name), values, spelled(schema, path, name))
        ),
    )


def spelled(schema: Schema, path: str, name: str) -> str:
    """Returns the shortest spelling that means this attribute in this class."""
    attribute = schema.attribute(path, name)
    prop = attribute.prop
    suffix = f".{attribute.dimension}" if attribute.dimension else ""
    last_step = prop.owner.rsplit("/", 1)[-1]
    for spelling in (prop.name, f"{last_step}.{prop.name}"):
        if schema.means(path, spelling + suffix, attribute):
            return spelling + suffix
    return attribute.name


def terms_of(attribute: Attribute, values: ValueSet, name: str) -> Iterator[Term]:
    if isinstance(values, Strings):
        yield from _string_terms(values, name)
    elif isinstance(values, Intervals):
        yield from _interval_terms(values, attribute.domain, name)
    else:
        yield from _region_terms(values, name)


def _string_terms(values: Strings, name: str) -> Iterator[Term]:
    if values.listed is not None:
        yield _listed(name, [_quoted(text) for text in sorted(values.listed)])
        return
    patterns = [
        (Operator.STARTS_WITH, [values.prefix] if values.prefix else []),
        (Operator.ENDS_WITH, [values.suffix] if values.suffix else []),
        (Operator.CONTAINS, sorted(values.fragments)),
        (Operator.DIFFERS, sorted(values.excluded)),
    ]
    if not any(texts for _, texts in patterns):
        yield Term(name, Operator.EXISTS)
    for operator, texts in patterns:
        for text in texts:
            yield Term(name, operator, (_quoted(text),))


def _interval_terms(
    values: Intervals, domain: Domain, name: str, previous: bool = False
) -> Iterator[Term]:
    spans = values.spans
    gaps = [(left[1] + 1, right[0] - 1) for left, right in pairwise(spans)]
    ends = _range_terms((values.lowest, values.highest), domain)
    if all(lo == hi for lo, hi in spans):
        yield _listed(name, [_bare(domain, lo) for lo, _ in spans], previous)
    elif all(lo == hi for lo, hi in gaps) and len(gaps) + len(ends) <= max(2, len(spans)):
        if not ends and not gaps:
            yield Term(name, Operator.EXISTS, previous=previous)
        for operator, written in ends:
            yield Term(name, operator, written, previous=previous)
        for lo, _ in gaps:
            yield Term(name, Operator.DIFFERS, (_bare(domain, lo),), previous=previous)
    else:
        members = tuple(_member(span, domain) for span in spans)
        yield Term(name, Operator.IN, members=members, previous=previous)


def _region_terms(region: Region, name: str) -> Iterator[Term]:
    if region.previous is None:
        yield from _interval_terms(region.new, QUALITY, name)
        return
    for operator, threshold, make in (
        (Operator.FALLS_BELOW, region.new.highest + 1, Region.falls_below),
        (Operator.RISES_ABOVE, region.new.lowest - 1, Region.rises_above),
        (Operator.CHANGES_BY, region.change, Region.changes_by),
    ):
        if make(threshold) == region:
            yield Term(name, operator, (_bare(QUALITY, threshold),))
            return
    if region.new != EVERY_QUALITY:
        yield from _interval_terms(region.new, QUALITY, name)
    if region.previous != EVERY_QUALITY or not region.change:
        yield from _interval_terms(region.previous, QUALITY, name, previous=True)
    if region.change:
        yield Term(name, Operator.CHANGES_BY, (_bare(QUALITY, region.change),))


def _range_terms(span: Interval, domain: Domain) -> list[tuple[Operator, tuple[Written, ...]]]:
    """Returns the terms that bound a span: none, one, or two."""
    lo, hi = span
    lower = _bound(lo, lo - 1, Operator.AT_LEAST, Operator.ABOVE, domain)
    upper = _bound(hi, hi + 1, Operator.AT_MOST, Operator.BELOW, domain)
    if lo == domain.lo:
        return [] if hi == domain.hi else [upper]
    if hi == domain.hi:
        return [lower]
    if lower[0] is Operator.AT_LEAST and upper[0] is Operator.AT_MOST:
        return [(Operator.BETWEEN, lower[1] + upper[1])]
    return [lower, upper]


def _bound(
    end: int, beyond: int, closed: Operator, strict: Operator, domain: Domain
) -> tuple[Operator, tuple[Written, ...]]:
    """Returns `<= end`, or `< beyond` if that is clearly shorter (0.6, not 0.599999999999999)."""
    written = _bare(domain, end)
    if domain.lo <= beyond <= domain.hi:
        shorter = _bare(domain, beyond)
        if len(shorter.text) + 1 < len(written.text):
            return strict, (shorter,)
    return closed, (written,)


def _member(span: Interval, domain: Domain) -> Member:
    lo, hi = span
    if lo == hi:
        return Member(Operator.EQUALS, (_bare(domain, lo),))
    ends = _range_terms(span, domain)
    if len(ends) == 1:
        return Member(*ends[0])
    return Member(Operator.BETWEEN, (_bare(domain, lo), _bare(domain, hi)))


def _listed(name: str, values: list[Written], previous: bool = False) -> Term:
    if len(values) == 1:
        return Term(name, Operator.EQUALS, (values[0],), previous=previous)
    members = tuple(Member(Operator.EQUALS, (value,)) for value in values)
    return Term(name, Operator.IN, members=members, previous=previous)


def _bare(domain: Domain, key: int) -> Written:
    return Written(write_value(domain, key), "bare")


def _quoted(text: str) -> Written:
    return Written(text, "quoted")
