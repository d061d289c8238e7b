"""Delivery lines: an event that was delivered, as people and programs read it.

12  CoC e1  Enterprise/Holder  Name.accuracy 0.9 → 0.3  Name "M. Mecalla", FiscalCode "MCLMSM…"
"""

from __future__ import annotations

from typing import Any

from qns.cli.problems import visible
from qns.cli.screen import Part, Screen
from qns.client import Delivered

_LONGEST_VALUE = 60


def show_delivery(screen: Screen, delivered: Delivered) -> None:
    fields = delivered.fields
    if screen.as_json:
        screen.json({"number": delivered.number, "event": fields})
    else:
        screen.line(*_parts(delivered, fields))
    screen.raw("")  # at once: somebody may be waiting for it


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
    values = [f"{name.removeprefix(prefix)} {_value(value)}" for name, value in _data(fields)]
    if values:
        parts += ["  ", (visible(", ".join(values)), "dim")]
    return parts


def _data(fields: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(fields["data"].items())


def _change(previous: object, new: object) -> str:
    if previous is None:
        return f"{new}"
    return f"{previous} → {'?' if new is None else new}"


def _value(value: object) -> str:
    text = str(value)
    shown = text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
    return f'"{shown}"' if isinstance(value, str) else shown
