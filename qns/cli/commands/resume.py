"""`qns resume`: end the pause of subscriptions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.options import Commands, new_command
from qns.cli.pause_request import add_pausing_options, set_paused
from qns.cli.screen import Screen

_DESCRIPTION = """
Ends the pause of subscriptions: the events that the peer kept meanwhile are delivered.
"""
_EXAMPLES = ("qns resume bad-names",)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "resume", "end the pause of subscriptions", _DESCRIPTION, _EXAMPLES
    )
    add_pausing_options(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    return set_paused(args, screen, paused=False)
