"""`qns peer status`: shows whether a running peer works, and the work that is left to it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen

_DESCRIPTION = """
Shows whether a running peer works: its health with the reasons, and the work that is left to it.
Exit status: 0, or 1 if the peer is failing.
"""
_EXAMPLES = ("qns peer status services/peer/inps.toml",)
_STYLES = {"ok": "green", "degraded": "yellow", "failing": "bold red"}


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "status", "show whether a running peer works", _DESCRIPTION, _EXAMPLES
    )
    add_peer_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    state = ask_peer(args, "status")
    if screen.as_json:
        screen.json(state)
    else:
        _show(state, screen)
    return int(state["status"] == "failing")


def _show(state: dict[str, Any], screen: Screen) -> None:
    status = str(state["status"])
    screen.line(visible(f"{state['organisation']} is "), (status, _STYLES.get(status, "")))
    for reason in state["reasons"]:
        screen.line(visible(f"  {reason}"))
    rows = {
        "process": f"{state['pid']}, QNS {state['version']}, up {state['uptime_s']:.0f} s",
        "listens": state["listen"],
        "store": f"{state['store']}, epoch {state['epoch']}",
        "document": f"{state['federation']}, version {state['document']}",
        "subscriptions": f"{state['subscriptions']:,}",
        "owed": f"{state['owed']:,} events to other organisations",
        "custody": f"{state['custody']:,} events to forward",
        "waiting": f"{state['deliveries_waiting']:,} deliveries for users",
        "dead letters": f"{state['dead_letters']:,}",
    }
    for name, value in rows.items():
        screen.line(visible(f"  {name:<13}  {value}"))
