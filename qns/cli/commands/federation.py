"""`qns federation`: shows, changes, signs, compares and publishes federation documents.

Its commands are in `qns/cli/documents`.
"""

from __future__ import annotations

from argparse import ArgumentParser

from qns.cli.documents import members, publish, rights, roots, show, signing
from qns.cli.options import CommandParser, Commands, new_command

_DESCRIPTION = """
Shows, changes, signs, compares and publishes the document of a federation: its organisations, the
classes that they host, who may read them, and the schema of their data. docs/federation.md
describes it. Commands that change a document print its next version.
"""
_EXAMPLES = (
    "qns federation weather-partial",
    "qns federation add agencies ISTAT --hosts Enterprise --endpoint http://127.0.0.1:8704/",
    "qns federation remove agencies CoC | qns federation diff agencies -",
    "qns federation sign --help",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "federation", "show, change and sign a document", _DESCRIPTION, _EXAMPLES
    )
    assert isinstance(parser, CommandParser)
    parser.default_command = "show"
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for part in (show, members, rights, roots, signing, publish):
        part.add(actions)
    return parser
