"""Options: the parser of the command line, and the options that many commands have."""

from __future__ import annotations

from argparse import (
    Action,
    ArgumentParser,
    RawDescriptionHelpFormatter,
    _SubParsersAction,
)
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qns.d2q.shipped import SHIPPED
from qns.errors import near_misses, shorten

if TYPE_CHECKING:
    Commands = _SubParsersAction[ArgumentParser]
else:
    Commands = Any


class CommandParser(ArgumentParser):
    """A parser that answers a mistyped command or option with those of similar names."""

    default_command = ""
    """The command that may be left out before a file; empty if there is none."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reports unknown arguments itself, so that usage and remedy are those of the command."""
        if self.default_command and self._names_a_file(args or ()):
            args = [self.default_command, *args]
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unknown argument {shorten(unknown[0])} ({self._remedy(unknown[0])})")
        return known, unknown

    def _remedy(self, argument: str) -> str:
        options = [name for name in self._option_string_actions if argument.startswith("-")]
        near = " or ".join(near_misses(argument.partition("=")[0], options))
        return f"did you mean {near}?" if near else f"see {self.prog} --help"

    def _names_a_file(self, words: Sequence[str]) -> bool:
        """True if the first word that is no option is no command, and none mistyped either."""
        word = next((each for each in words if not each.startswith("-") or each == "-"), None)
        if word is None:
            return False
        names = [
            name
            for action in self._actions
            if isinstance(action, _SubParsersAction)
            for name in action.choices
        ]
        is_file = bool(Path(word).suffix) or Path(word).exists()
        return word not in names and (is_file or not near_misses(word, names))

    def _check_value(self, action: Action, value: Any) -> None:
        if isinstance(action, _SubParsersAction) and value not in action.choices:
            near = " or ".join(near_misses(value, action.choices))
            remedy = f"did you mean {near}?" if near else f"see {self.prog} --help"
            self.error(f"unknown command {shorten(value)} ({remedy})")
        super()._check_value(action, value)


def new_command(
    commands: Commands, name: str, summary: str, description: str, examples: Sequence[str]
) -> ArgumentParser:
    """Adds a command. Its help ends with examples."""
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


def add_master_option(parser: ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--master",
        metavar="MASTER",
        help="local[N], spark://…, yarn or k8s://… (default: local[*])",
    )
    where.add_argument(
        "--remote", metavar="URL", dest="master", help="a Spark Connect server: sc://host:15002"
    )
