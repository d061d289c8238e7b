"""`qns federation publish`: gives a document to the running peer of one's own organisation."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from qns.cli.documents.files import add_action
from qns.cli.operator.document import install
from qns.cli.operator.port import add_peer_arguments
from qns.cli.options import Commands

_PUBLISH: Final = """
Puts a newer version of the document in force at the running peer of your organisation, from which
the other members get it. It does the same as qns peer document install.
"""


def add(actions: Commands) -> None:
    parser = add_action(
        actions,
        "publish",
        "put a document in force",
        _PUBLISH,
        ("qns federation publish services/peer/inps.toml next.xml",),
        install,
    )
    add_peer_arguments(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="the document")
