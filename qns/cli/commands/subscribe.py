"""`qns subscribe`: subscribes at a peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.inputs import STDIN, Input, decoded
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_connection import add_lifetime_option, add_peer_options, client_of
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.wording import moment
from qns.d2q.subscription_xml import MAX_SUBSCRIPTION_BYTES

_DESCRIPTION = """
Subscribes to events at a peer. TEXT is a subscription in any notation (docs/language.md) or
D2Q XML; - reads it from standard input.

Returns at once and prints the id of the subscription, and the producers at which it is still
pending; `qns subscriptions` shows them later. `qns watch ID` and `qns pull ID` print the
deliveries. A source that is no member of the federation, or does not host the class, gets a
warning: the subscription is valid, but such a source publishes nothing that matches it now.

Subscribing again with the same --id and TEXT changes nothing.
"""
_EXAMPLES = (
    "qns subscribe 'Enterprise/Holder where Name.accuracy <= medium' --id bad-names",
    "qns subscribe 'Enterprise from CoC' --owner maria --for 30d",
    "qns subscribe Enterprise/Holder --group clerks --json",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "subscribe", "subscribe to events at a peer", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("text", metavar="TEXT", help="the subscription, or -")
    add_peer_options(parser)
    parser.add_argument(
        "--id", default="", help="the id of the subscription (default: a random one)"
    )
    parser.add_argument(
        "--group", metavar="NAME", default="", help="a delivery group: one member gets each event"
    )
    add_lifetime_option(parser)
    add_json_option(parser, "one JSON object: id, pending, expires, warnings")
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
        screen.json(
            {
                "id": made.id,
                "pending": list(made.pending),
                "expires": expires,
                "warnings": list(made.warnings),
            }
        )
        return 0
    screen.line("subscribed as ", (visible(made.id), "bold cyan"))
    if made.pending:
        screen.line("pending at ", visible(", ".join(made.pending)))
    if (expires := moment(made.expires_at)) is not None:
        screen.line("ends ", expires)
    for warning in made.warnings:
        screen.line(("warning: ", "yellow"), visible(warning))
    return 0
