"""`qns peer resume`: makes a peer that drains accept everything again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen

_DESCRIPTION = """
Makes a peer that drains accept publications and subscriptions again.
"""
_EXAMPLES = ("qns peer resume services/peer/inps.toml",)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(commands, "resume", "end qns peer drain", _DESCRIPTION, _EXAMPLES)
    add_peer_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    found = ask_peer(args, "resume")
    if screen.as_json:
        screen.json(found)
        return 0
    before = "" if found["was_draining"] else "; it was not draining"
    screen.line(visible(f"{found['organisation']} accepts publications and subscriptions{before}"))
    return 0
