"""`qns unsubscribe`: ends subscriptions at a peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_connection import add_peer_options, client_of
from qns.cli.problems import visible
from qns.cli.screen import Screen

_DESCRIPTION = """
Ends subscriptions. Deliveries that were not acknowledged are dropped, and their number is
printed. The id of a subscription that has ended cannot be used again.
"""
_EXAMPLES = ("qns unsubscribe bad-names",)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "unsubscribe", "end subscriptions at a peer", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("ids", metavar="ID", nargs="+", help="the id of a subscription")
    add_peer_options(parser)
    add_json_option(parser, "one JSON object per subscription: id, dropped")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    with client_of(args) as client:
        for id in args.ids:
            dropped = client.unsubscribe(id).dropped
            if screen.as_json:
                screen.json({"id": id, "dropped": dropped})
                continue
            left = f", {dropped:,} unread dropped" if dropped else ""
            screen.line("unsubscribed ", (visible(id), "bold cyan"), left)
    return 0
