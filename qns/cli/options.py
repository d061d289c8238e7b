"""What the commands share: how a command is declared, and the options that many of them take."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qns.d2q.shipped import SHIPPED

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[ArgumentParser]
else:
    Commands = Any


def new_command(
    commands: Commands, name: str, summary: str, description: str, examples: Sequence[str]
) -> ArgumentParser:
    """A command whose help ends with examples to copy."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=description.strip(),
        epilog=epilog(examples),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(as_json=False)
    return parser


def epilog(examples: Sequence[str]) -> str:
    return "\n".join(["examples:", *(f"  {example}" for example in examples)])


def add_schema_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--schema",
        required=True,
        metavar="SCHEMA",
        help=f"{' or '.join(SHIPPED)}, or a .dtd or .xml file",
    )


def add_json_option(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", dest="as_json", help=what)
