"""`qns pull`: the deliveries of a subscription that wait at a peer."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from qns.cli.delivery_lines import show_delivery
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_options import add_peer_options, add_reading_schema_option, client_of
from qns.cli.screen import Screen
from qns.errors import QnsError

_DESCRIPTION = """
Prints the deliveries of a subscription, oldest first: number, source, id and class of the event,
its new quality, its data. Nothing changes at the peer, so the same deliveries are printed again
the next time, unless --ack acknowledges what was printed; then the peer forgets it.

`qns watch ID` follows a subscription instead.
"""
_EXAMPLES = (
    "qns pull bad-names --limit 10",
    "qns pull bad-names --after 10 --schema agencies --json",
    "qns pull bad-names --ack",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "pull", "print what was delivered to a subscription", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("id", metavar="ID", help="a subscription")
    add_peer_options(parser)
    parser.add_argument(
        "--after", metavar="N", type=int, default=0, help="only deliveries beyond this number"
    )
    parser.add_argument(
        "--limit", metavar="N", type=int, default=100, help="at most so many (100 if left out)"
    )
    parser.add_argument("--ack", action="store_true", help="acknowledge what was printed")
    add_reading_schema_option(parser)
    add_json_option(parser, "one JSON object per delivery: number, event")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    for option, number in (("--after", args.after), ("--limit", args.limit)):
        if number < 0:
            raise QnsError(f"{option} is negative", remedy="give a number from 0")
    with client_of(args) as client:
        found = client.pull(args.id, after=args.after, limit=args.limit)
        for delivered in found:
            show_delivery(screen, delivered)
        if not found and not screen.as_json:
            screen.line("nothing was delivered" + (f" after {args.after}" if args.after else ""))
        if found and args.ack:
            sys.stdout.flush()  # what could not be printed is not acknowledged
            client.acknowledge(args.id, found[-1].number)
    return 0
