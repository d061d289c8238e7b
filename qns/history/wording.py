"""Wording: writes records, times and subscriptions for explanations of violations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qns.errors import shorten
from qns.history.branch import Subscription
from qns.history.records import Record

_LONG_TEXT: Final = 300


def seconds(t: float) -> str:
    return f"{t:.6f}".rstrip("0").rstrip(".") + " s"


def time(records: Sequence[Record], number: int) -> str:
    """Returns a record's time and number, as in `12.5 s (record 17)`."""
    return f"{seconds(records[number - 1]['t'])} (record {number})"


def moment(records: Sequence[Record], number: int) -> str:
    return f"at {time(records, number)}"


def subscription_named(organisation: str, subscription: Subscription) -> str:
    """Returns, for example, `subscription U3 of INPS, 'Report', in the delivery group night`."""
    group = f", in the delivery group {subscription.group}" if subscription.group else ""
    text = shorten(subscription.text, _LONG_TEXT)
    return f"subscription {subscription.id} of {organisation}, {text}{group}"
