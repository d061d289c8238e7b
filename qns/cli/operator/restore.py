"""`qns peer restore`: replaces the store of a stopped peer by a backup."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from qns.cli.operator.port import add_peer_arguments
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.progress import staged_progress
from qns.cli.screen import Screen
from qns.errors import StoreFailed
from qns.federation.document_xml import read_federation
from qns.runtime.configuration import Configuration, read_configuration
from qns.store.backup_key import read_key
from qns.store.backups import BackupContent, restore_backup

_DESCRIPTION = """
Replaces the store of a stopped peer by a backup. The whole backup is verified before anything is
replaced. A backup of another organisation or federation, of a newer QNS, or that is damaged is
refused. Keep the lineage file: with it, the peer detects the restore when it starts.
"""
_EXAMPLES = (
    "qns peer restore services/peer/inps.toml /var/backups/inps-monday.db",
    "qns peer restore services/peer/inps.toml inps-monday.qns --key inps.key --overwrite",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "restore", "replace the store of a stopped peer", _DESCRIPTION, _EXAMPLES
    )
    add_peer_arguments(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="the backup")
    parser.add_argument("--key", metavar="KEYFILE", type=Path, help="the key of the backup")
    parser.add_argument("--overwrite", action="store_true", help="replace a store that exists")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    configuration = read_configuration(args.configuration)
    store = configuration.store
    if store.exists() and not args.overwrite:
        raise StoreFailed(
            "the store exists already",
            place=str(store),
            remedy="replace it with --overwrite, or move it away",
        )
    key = None if args.key is None else read_key(args.key)
    with staged_progress() as show:
        content = restore_backup(
            args.file,
            store,
            lambda content: _check(content, configuration, args.file),
            key=key,
            overwrite=args.overwrite,
            on_copied=lambda done, total: show("decrypting", done / (total or 1)),
        )
    if screen.as_json:
        screen.json(
            {
                "store": str(store.absolute()),
                "file": str(args.file.absolute()),
                "organisation": content.organisation,
                "epoch": content.epoch,
                "document": content.document_version,
            }
        )
        return 0
    screen.line(visible(f"{store}: restored from {args.file}, verified"))
    screen.line(
        visible(
            f"  {content.organisation}, epoch {content.epoch}, version "
            f"{content.document_version} of the federation document"
        )
    )
    screen.line("  start the peer; it detects the restore and tells the other peers")
    return 0


def _check(content: BackupContent, configuration: Configuration, file: Path) -> None:
    if content.organisation != configuration.organisation:
        raise StoreFailed(
            f"is a backup of {content.organisation}, not of {configuration.organisation}",
            place=str(file),
            remedy="give a backup of this organisation",
        )
    name = read_federation(content.document).name
    if name != configuration.federation.name:
        raise StoreFailed(
            f"is a backup of the federation {name}, not of {configuration.federation.name}",
            place=str(file),
            remedy="give a backup of this federation",
        )
