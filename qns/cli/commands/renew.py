"""`qns renew`: sets a new lifetime of subscriptions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_connection import add_lifetime_option, add_peer_options, client_of
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.wording import moment

_DESCRIPTION = """
Sets a new lifetime of subscriptions, which begins now. Without --for they do not end any more.
"""
_EXAMPLES = ("qns renew bad-names --for 30d", "qns renew bad-names")


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "renew", "set a new lifetime of subscriptions", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("ids", metavar="ID", nargs="+", help="the id of a subscription")
    add_peer_options(parser)
    add_lifetime_option(parser)
    add_json_option(parser, "one JSON object per subscription: id, expires")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    with client_of(args) as client:
        for id in args.ids:
            expires = moment(client.renew(id, lifetime_s=args.lifetime_s).expires_at)
            if screen.as_json:
                screen.json({"id": id, "expires": expires})
                continue
            ends = f", ends {expires}" if expires is not None else ", does not end"
            screen.line("renewed ", (visible(id), "bold cyan"), ends)
    return 0
