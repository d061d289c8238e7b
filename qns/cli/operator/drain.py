"""`qns peer drain`: makes a running peer finish its work and accept nothing new."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.progress import staged_progress
from qns.cli.screen import Screen

_DESCRIPTION = """
Makes a running peer refuse new publications and subscriptions; callers can try again later. The
peer goes on to deliver, forward and acknowledge. With --wait the command ends when the peer owes
nothing to other organisations and has nothing to forward. A restart does not end this: qns peer
resume does.
"""
_EXAMPLES = (
    "qns peer drain services/peer/inps.toml",
    "qns peer drain services/peer/inps.toml --wait",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(commands, "drain", "let a peer finish its work", _DESCRIPTION, _EXAMPLES)
    add_peer_arguments(parser)
    parser.add_argument(
        "--wait", action="store_true", help="wait until nothing is owed and nothing in custody"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    with staged_progress() as show:
        work = ask_peer(
            args, "drain", lambda line: show(work_words(line), 0.0), wait=args.wait or None
        )
    if screen.as_json:
        screen.json(work)
        return 0
    if not work["draining"]:
        screen.line(visible(f"{work['organisation']} was resumed meanwhile"))
    elif work["drained"]:
        screen.line(visible(f"{work['organisation']} is drained: {work_words(work)}"))
    else:
        screen.line(visible(f"{work['organisation']} is draining: {work_words(work)}"))
    return 0


def work_words(work: dict[str, Any]) -> str:
    """Returns the work that is left, in words."""
    owed = ", ".join(f"{count:,} to {name}" for name, count in work["owed"].items()) or "nothing"
    return (
        f"owed {owed}, custody {work['custody']:,}, deliveries that users have not acknowledged "
        f"{work['deliveries_waiting']:,}"
    )
