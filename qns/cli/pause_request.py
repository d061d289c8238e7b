"""Pause request: what `qns pause` and `qns resume` have in common."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.options import add_json_option
from qns.cli.peer_connection import add_peer_options, client_of
from qns.cli.problems import visible
from qns.cli.screen import Screen


def add_pausing_options(parser: ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="+", help="the id of a subscription")
    add_peer_options(parser)
    add_json_option(parser, "one JSON object per subscription: id, paused")


def set_paused(args: Namespace, screen: Screen, paused: bool) -> int:
    """Pauses the subscriptions that the arguments name, or ends their pause."""
    with client_of(args) as client:
        for id in args.ids:
            (client.pause if paused else client.resume)(id)
            if screen.as_json:
                screen.json({"id": id, "paused": paused})
            else:
                screen.line("paused " if paused else "resumed ", (visible(id), "bold cyan"))
    return 0
