"""`qns pull`: prints the deliveries of a subscription that wait at a peer."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from qns.cli.delivery_lines import show_delivery, show_dropped
from qns.cli.options import Commands, new_command
from qns.cli.peer_connection import add_peer_options, add_reading_options, client_of
from qns.cli.screen import Screen
from qns.client import DeliveriesDropped
from qns.errors import QnsError

_DESCRIPTION = """
Prints the deliveries of a subscription, oldest first: number, source, id and class of the event,
its new quality and its data. The deliveries stay at the peer and are printed again the next
time, unless --ack acknowledges them; then the peer deletes them.

With --json, each delivery has a cursor. `--after CURSOR` continues after it, and fails if the peer
was put back to an older state meanwhile: a plain number would skip deliveries then.

If the operator of the peer has limited the queues and deliveries were dropped, a warning or a
JSON object names their numbers.

`qns watch ID` prints deliveries as they arrive.
"""
_EXAMPLES = (
    "qns pull bad-names --limit 10",
    "qns pull bad-names --after 10 --schema agencies --json",
    "qns pull bad-names --ack",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "pull", "print the deliveries of a subscription", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("id", metavar="ID", help="the id of a subscription")
    add_peer_options(parser)
    parser.add_argument(
        "--after", metavar="CURSOR", default="0", help="only deliveries after this cursor or number"
    )
    parser.add_argument(
        "--limit", metavar="N", type=int, default=100, help="at most N (default: 100)"
    )
    parser.add_argument("--ack", action="store_true", help="acknowledge the printed deliveries")
    add_reading_options(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    if args.limit < 0:
        raise QnsError("--limit is negative", remedy="give a number from 0")
    after, left = args.after, args.limit
    with client_of(args) as client:
        # One answer has at most half a MiB of events, so the peer is asked until it has no more.
        while True:
            try:
                found = client.pull(args.id, after=after, limit=left)
            except DeliveriesDropped as declared:
                show_dropped(screen, declared)
                found, after = [], declared.cursor
            else:
                if not found:
                    break
            for delivered in found:
                show_delivery(screen, delivered)
                after, left = delivered.cursor, left - 1
            if args.ack:
                sys.stdout.flush()  # a failure to print prevents the acknowledgement
                client.acknowledge(args.id, after)
            if not left:
                break
    if after == args.after and not screen.as_json:
        after_what = f" after {args.after}" if args.after != "0" else ""
        screen.line(f"nothing was delivered{after_what}")
    return 0
