"""`qns pause`: hold the events of subscriptions back."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.options import Commands, new_command
from qns.cli.pause_request import add_pausing_options, set_paused
from qns.cli.screen import Screen

_DESCRIPTION = """
Pauses subscriptions: the peer keeps their events and delivers none of them until `qns resume`.
Deliveries that were made before can still be pulled. The lifetime of a subscription goes on.
"""
_EXAMPLES = ("qns pause bad-names",)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "pause", "hold the events of subscriptions back", _DESCRIPTION, _EXAMPLES
    )
    add_pausing_options(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    return set_paused(args, screen, paused=True)
