"""Delivery lines: a delivered event as one line of text or JSON.

12  CoC e1  Enterprise/Holder  Name.accuracy 0.9 → 0.3  Name "M. Mecalla", FiscalCode "MCLMSM…"
"""

from __future__ import annotations

import sys
from typing import Any

from qns.cli.problems import visible
from qns.cli.screen import Part, Screen
from qns.cli.wording import shortened
from qns.client import Delivered, DeliveriesDropped

_LONGEST_VALUE = 60


def show_delivery(screen: Screen, delivered: Delivered) -> None:
    """Prints one delivery and flushes the output."""
    fields = delivered.fields
    if screen.as_json:
        screen.json({"number": delivered.number, "cursor": delivered.cursor, "event": fields})
    else:
        screen.line(*_parts(delivered, fields))
    screen.raw("")  # flushes, because a reader may wait for the line


def show_dropped(screen: Screen, declared: DeliveriesDropped) -> None:
    """Prints that deliveries were dropped: as JSON, or as a warning to standard error."""
    if screen.as_json:
        for each in declared.dropped:
            screen.json({"dropped": {"first": each.first, "last": each.last}})
        screen.raw("")
    else:
        sys.stdout.flush()
        sys.stderr.write(f"{visible(f'warning: {declared.problem}')}\n")
        sys.stderr.flush()


def _parts(delivered: Delivered, fields: dict[str, Any]) -> list[Part]:
    prefix = f"{fields['class']}."
    parts: list[Part] = [
        (f"{delivered.number:<4} ", "dim"),
        (visible(f"{delivered.source} {delivered.id}"), "bold cyan"),
        f"  {visible(fields['class'])}",
    ]
    previous = fields.get("previous", {})
    changes = [
        f"{name.removeprefix(prefix)} {_change(previous.get(name), fields['quality'].get(name))}"
        for name in {**fields["quality"], **previous}
    ]
    if changes:
        parts += ["  ", (visible(", ".join(changes)), "yellow")]
    data = fields["data"]
    values = [f"{name.removeprefix(prefix)} {_value(value)}" for name, value in data.items()]
    if values:
        parts += ["  ", (visible(", ".join(values)), "dim")]
    return parts


def _change(previous: object, new: object) -> str:
    if previous is None:
        return f"{new}"
    return f"{previous} → {'?' if new is None else new}"


def _value(value: object) -> str:
    shown = shortened(str(value), _LONGEST_VALUE)
    return f'"{shown}"' if isinstance(value, str) else shown
