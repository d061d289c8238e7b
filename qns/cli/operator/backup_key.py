"""`qns peer backup-key`: makes a key for encrypted backups."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.store.backup_key import write_new_key

_DESCRIPTION = """
Makes a key for encrypted backups: a new file that only you can read. Keep a copy of it away from
the peer: without the key, nobody can read the backups.
"""
_EXAMPLES = ("qns peer backup-key inps.key",)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "backup-key", "make a key for encrypted backups", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("file", metavar="KEYFILE", type=Path, help="the new file")
    add_json_option(parser, "one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    key = write_new_key(args.file)
    if screen.as_json:
        screen.json({"file": str(args.file), "key": key.id.hex()})
    else:
        screen.line(visible(f"{args.file}: the key {key.id.hex()}; keep a copy away from the peer"))
    return 0
