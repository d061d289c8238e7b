"""`qns peer document`: puts a newer federation document in force at a running peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from base64 import b64encode
from pathlib import Path

from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.errors import QnsError
from qns.federation.document_xml import MAX_FEDERATION_BYTES

_DESCRIPTION = """
Gives a running peer a newer version of the federation document.
"""
_EXAMPLES = ("qns peer document install services/peer/inps.toml federation-2.xml",)
_INSTALL = """
Puts a newer version of the federation document in force at a running peer, without a restart. The
other members get it from this peer. A document that does not follow the one in force is refused,
by the same rules as in qns peer check and qns federation diff. Also replace the file that the
configuration names.
"""


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "document", "install a newer federation document", _DESCRIPTION, _EXAMPLES
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    installing = new_command(actions, "install", "put it in force", _INSTALL, _EXAMPLES)
    add_peer_arguments(installing)
    installing.add_argument("file", metavar="FILE", type=Path, help="the document")
    installing.set_defaults(run=install)
    return parser


def install(args: Namespace, screen: Screen) -> int:
    try:
        with args.file.open("rb") as file:
            content = file.read(MAX_FEDERATION_BYTES + 1)
    except OSError as error:
        raise QnsError(
            f"the document cannot be read: {error.strerror or error}", place=str(args.file)
        ) from None
    try:
        found = ask_peer(args, "document-install", document=b64encode(content).decode())
    except QnsError as error:
        raise error.at(str(args.file)) from None
    if screen.as_json:
        screen.json(found)
        return 0
    version = found["version"]
    if version == found["before"]:
        screen.line(visible(f"version {version} of {found['federation']} was in force already"))
        return 0
    screen.line(
        visible(f"version {version} of {found['federation']} is in force, after {found['before']}")
    )
    for change in found["changes"]:
        screen.line(visible(f"  {change}"))
    return 0
