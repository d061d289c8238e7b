"""Stored form: the normal form of a subscription as a compact text, for the store of a peer.

A peer that starts reads it much faster than the text of its author, and without looking anything
up in the schema but the scope. It is not a spelling for users: it has the keys of values
(`qns.cbr.domains`), so that other keys would need a migration of the stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from qns.cbr.intervals import Interval, Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.d2q.schema import Schema


def write_stored(subscription: Subscription) -> str:
    """Returns the stored form of a subscription."""
    sources = subscription.sources
    return orjson.dumps(
        (
            subscription.data_class,
            subscription.only,
            None if sources is None else sorted(sources),
            {name: _written(values) for name, values in subscription.constraints.items()},
        )
    ).decode()


def read_stored(stored: str, schema: Schema, text: str = "") -> Subscription:
    """Returns the subscription of a stored form; `text` is what its author wrote."""
    data_class, only, sources, constraints = orjson.loads(stored)
    return Subscription(
        scope=schema.scope(data_class, only),
        sources=None if sources is None else frozenset(sources),
        constraints={name: _read(values) for name, values in constraints.items()},
        data_class=data_class,
        only=only,
        text=text,
    )


def _written(values: ValueSet) -> object:
    """Returns a list of intervals as a list, strings and regions with the letter of their kind."""
    if isinstance(values, Intervals):
        return values.spans
    if isinstance(values, Region):
        previous = values.previous
        return "q", values.new.spans, None if previous is None else previous.spans, values.change
    if values.listed is not None:
        return "l", sorted(values.listed)
    fragments, excluded = sorted(values.fragments), sorted(values.excluded)
    return "p", values.prefix, values.suffix, fragments, excluded


def _read(written: Sequence[Any]) -> ValueSet:
    kind = written[0]
    if kind == "q":
        _, new, previous, change = written
        before = None if previous is None else Intervals(_spans(previous))
        return Region(Intervals(_spans(new)), before, change)
    if kind == "l":
        return Strings(frozenset(written[1]))
    if kind == "p":
        _, prefix, suffix, fragments, excluded = written
        return Strings(None, prefix, suffix, frozenset(fragments), frozenset(excluded))
    return Intervals(_spans(written))


def _spans(written: Sequence[Sequence[int]]) -> tuple[Interval, ...]:
    return tuple((lo, hi) for lo, hi in written)
