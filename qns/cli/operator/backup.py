"""`qns peer backup`: copies the store of a running peer to a file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.progress import staged_progress
from qns.cli.screen import Screen

_DESCRIPTION = """
Copies the store of a running peer to a new file, which only the user of the peer can read. The
peer works on meanwhile. The copy is verified before it gets its name. With --key it is encrypted
(AES-256-GCM); qns peer backup-key makes a key. The peer itself writes the file.
"""
_EXAMPLES = (
    "qns peer backup services/peer/inps.toml /var/backups/inps-monday.db",
    "qns peer backup services/peer/inps.toml inps-monday.qns --key inps.key",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "backup", "copy the store of a running peer", _DESCRIPTION, _EXAMPLES
    )
    add_peer_arguments(parser)
    parser.add_argument("file", metavar="FILE", help="the new file")
    parser.add_argument("--key", metavar="KEYFILE", help="encrypt the copy with this key")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    key = None if args.key is None else str(Path(args.key).absolute())
    with staged_progress() as show:
        made = ask_peer(
            args,
            "backup",
            lambda line: show(line["stage"], line["done"] / (line["total"] or 1)),
            file=str(Path(args.file).absolute()),
            key=key,
        )
    if screen.as_json:
        screen.json(made)
        return 0
    encrypted = ", encrypted" if made["encrypted"] else ""
    screen.line(
        visible(
            f"{made['file']}: {made['bytes']:,} bytes, verified{encrypted}, in "
            f"{made['seconds']:.1f} s"
        )
    )
    screen.line(
        visible(
            f"  {made['organisation']}, epoch {made['epoch']}, version {made['document']} of the "
            "federation document"
        )
    )
    return 0
