"""`qns subscribe`: subscribes at a peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from math import inf, isinf

from qns.cli.inputs import STDIN, Input, decoded
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_options import add_peer_options, client_of, duration
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.d2q.subscription_xml import MAX_SUBSCRIPTION_BYTES

_DESCRIPTION = """
Subscribes to quality changes at a peer. TEXT is a subscription in any spelling
(docs/language.md) or D2Q XML; - reads it from standard input.

It returns at once and prints the subscription's id. Producers of other organisations that do
not know of it yet are told as pending; `qns subscriptions` shows when they do. Read what is
delivered with `qns watch ID` or `qns pull ID`.

Subscribing again with the same --id and TEXT changes nothing.
"""
_EXAMPLES = (
    "qns subscribe 'Enterprise/Holder where Name.accuracy <= medium' --id bad-names",
    "qns subscribe 'Enterprise from CoC' --owner maria --for 30d",
    "qns subscribe Enterprise/Holder --group clerks --json",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "subscribe", "subscribe to quality changes at a peer", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("text", metavar="TEXT", help="the subscription, or -")
    add_peer_options(parser)
    parser.add_argument("--id", default="", help="its id, of your choice; otherwise a new one")
    parser.add_argument(
        "--group", metavar="NAME", default="", help="a delivery group: one member gets each event"
    )
    parser.add_argument(
        "--for",
        dest="lifetime_s",
        metavar="TIME",
        type=duration,
        default=inf,
        help="until it ends: 90s, 45m, 12h, 30d, 2w; otherwise it does not end by itself",
    )
    add_json_option(parser, "one JSON object: id, pending, expires")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    text = args.text
    if text == STDIN:
        with Input(STDIN) as source:
            text = decoded(source.read(MAX_SUBSCRIPTION_BYTES))
    with client_of(args) as client:
        made = client.subscribe(text, id=args.id, group=args.group, lifetime_s=args.lifetime_s)
    if screen.as_json:
        expires = moment(made.expires_at)
        screen.json({"id": made.id, "pending": list(made.pending), "expires": expires})
        return 0
    screen.line("subscribed as ", (visible(made.id), "bold cyan"))
    if made.pending:
        screen.line("pending at ", visible(", ".join(made.pending)))
    if (expires := moment(made.expires_at)) is not None:
        screen.line("ends ", expires)
    return 0


def moment(at: float) -> str | None:
    """A time to the second, in UTC; None if it never comes."""
    if isinf(at):
        return None
    try:
        return datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # after the year 9999
        return None
