"""`qns peer report`: writes an archive with diagnostics of a running peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen

_DESCRIPTION = """
Writes an archive with diagnostics of a running peer: versions, settings, health, metrics, counts,
streams, links, facts of the store with the result of verifying its pages, and the newest log lines.
It has no event, no subscription's text, no key and no other secret; it names organisations,
addresses, paths, and ids of events and subscriptions. The peer itself writes the file.
"""
_EXAMPLES = (
    "qns peer report services/peer/inps.toml inps-report.zip",
    "qns peer report services/peer/inps.toml /tmp/inps-report.tar.gz",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(commands, "report", "write diagnostics of a peer", _DESCRIPTION, _EXAMPLES)
    add_peer_arguments(parser)
    parser.add_argument("file", metavar="FILE", help="the new file: .zip or .tar.gz")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    made = ask_peer(args, "report", file=str(Path(args.file).absolute()))
    if screen.as_json:
        screen.json(made)
        return 0
    screen.line(visible(f"{made['file']}: {made['bytes']:,} bytes"))
    screen.line(visible(f"  {', '.join(made['parts'])}"))
    return 0
