"""`qns why`: explains why a user was notified of an event or not, or where the event is."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from qns.cli.event_file import json_fields
from qns.cli.inputs import Input, decoded
from qns.cli.operator.port import ask_peer
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.wording import moment
from qns.d2q.event_json import MAX_LINE_BYTES
from qns.errors import QnsError

_DESCRIPTION = """
Explains why a user was notified of an event or not. At the peer of the user's organisation, give
the event and the subscription: it prints the conditions of the subscription with the values of the
event, and where the event is: delivered, waiting for a pause or a backlog, held back behind a gap,
or not here. At the peer of the producer, give the event and --to ORGANISATION: it prints the number
of the event in the stream to that organisation and whether it is acknowledged, or why the view of
that organisation does not match.

The peer must run; CONFIG.toml is its configuration. A peer forgets an event that nobody needs any
more; --event FILE gives the event again (one JSON object, or XML). If the peer records a history,
what it says of the event is printed too. Only those values of the event are shown that a condition
is about. Exit status: 0 if the user was notified or the event is on its way, otherwise 1.
"""
_EXAMPLES = ("qns why --help",)
_VERDICTS = {
    "delivered": ("delivered", "green"),
    "on its way": ("on its way", "yellow"),
    "rejected": ("the receiver rejected it: see qns peer dead-letters", "bold red"),
    "not allowed": ("that organisation may not read it", "bold red"),
    "matches": ("it matches, but is not in the queue", "yellow"),
    "does not match": ("it does not match", "bold red"),
    "not wanted": ("nobody there wants it", "bold red"),
    "unknown": ("this peer cannot tell", "bold red"),
}


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "why", "explain why a user was notified or not", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("event", metavar="EVENT", help="the id of an event")
    parser.add_argument(
        "subscription", metavar="SUBSCRIPTION", nargs="?", help="the id of a subscription"
    )
    parser.add_argument(
        "--config",
        dest="configuration",
        metavar="CONFIG.toml",
        type=Path,
        help="the configuration of the peer (default: $QNS_CONFIG)",
    )
    parser.add_argument("--source", metavar="NAME", help="the organisation that published it")
    parser.add_argument("--to", metavar="NAME", help="the organisation that should have got it")
    parser.add_argument(
        "--event",
        dest="file",
        metavar="FILE",
        help="the event, if the peer has forgotten it: JSON or XML, or - for standard input",
    )
    add_json_option(parser, "one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    if args.configuration is None:
        path = os.environ.get("QNS_CONFIG")
        if not path:
            raise QnsError(
                "the configuration of the peer is missing",
                remedy="give --config CONFIG.toml, or set QNS_CONFIG",
            )
        args.configuration = Path(path)
    found = ask_peer(
        args,
        "why",
        event=args.event,
        source=args.source,
        subscription=args.subscription,
        to=args.to,
        **(_given(args.file) if args.file else {}),
    )
    if screen.as_json:
        screen.json(found)
    else:
        _show(found, args, screen)
    return int(found["verdict"] not in ("delivered", "on its way"))


def _given(name: str) -> dict[str, Any]:
    """Returns the event of a file, as an argument of the operation."""
    with Input(name) as source:
        content = source.read(MAX_LINE_BYTES)
    text = decoded(content).strip()
    return {"xml": text} if text.startswith("<") else {"fields": json_fields(content)}


def _show(found: dict[str, Any], args: Namespace, screen: Screen) -> None:
    about = f"event {found['event']}" + (f" of {found['source']}" if found["source"] else "")
    if args.subscription:
        about += f" and subscription {args.subscription} of {found['organisation']}"
    elif args.to:
        about += f" and {args.to}"
    words, style = _VERDICTS[found["verdict"]]
    screen.line(visible(f"{about}: "), (words, style))
    for each in found["explained"]:
        screen.line(visible(f"  {each['text']}"))
        for condition in each["conditions"]:
            _show_condition(condition, screen)
    for fact in found["facts"]:
        at = f", at {moment(fact['at'])}" if fact["at"] is not None else ""
        screen.line(visible(f"  {fact['words']}{at}"))
    for record in found["history"] or ():
        screen.line(visible(f"  history: {moment(record['t'])}  {record['words']}"))
    if not found["history_complete"]:
        screen.line("  there are more records than are searched and shown: older ones are left out")


def _show_condition(condition: dict[str, Any], screen: Screen) -> None:
    parts = (condition["what"], condition["operator"], condition["expected"])
    actual = condition["actual"]
    has = f"the event has {actual}" if actual is not None else "the event does not carry it"
    sign = ("    yes ", "green") if condition["holds"] else ("    no  ", "bold red")
    screen.line(sign, visible(f"{' '.join(filter(None, parts))}: {has}"))
