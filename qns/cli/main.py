"""`qns`: parses the command line, runs one command and reports its errors.

Exit status: 0 for yes or success, 1 for no or problems found, 2 for an error or wrong usage.
"""

from __future__ import annotations

import io
import os
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, TextIO

from qns import __version__
from qns.cli.options import CommandParser, epilog
from qns.cli.problems import Problem
from qns.cli.screen import Screen
from qns.errors import QnsError

COMMANDS: Final = (
    "demo",
    "check",
    "match",
    "contains",
    "merge",
    "schemas",
    "schema",
    "federation",
    "certificates",
    "peer",
    "subscribe",
    "unsubscribe",
    "subscriptions",
    "pause",
    "resume",
    "renew",
    "publish",
    "pull",
    "watch",
    "why",
    "history",
    "verify",
    "evidence",
    "simulate",
    "lab",
    "loss",
    "savings",
    "pipeline",
)
"""The names of the commands. Each is a module of `qns.cli.commands`."""

_INTERRUPTED = 130
_BROKEN_PIPE = 141

_DESCRIPTION = """
QNS, the Quality Notification Service, notifies organisations when the quality of the
data that they share changes.
"""
_EXAMPLES = (
    "qns contains --schema agencies 'Enterprise/Holder' "
    "'Enterprise/Holder where Name.accuracy <= medium'",
    "qns demo",
    "qns match --help",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    sys.stdout, sys.stderr = _utf8(sys.stdout), _utf8(sys.stderr)
    screen = Screen()
    try:
        try:
            words = sys.argv[1:] if argv is None else argv
            parser = new_parser(_needed(words))
            args = parser.parse_args(words)
            if not hasattr(args, "run"):  # no command at all
                parser.print_help(sys.stderr)
                return 2
            screen = Screen(as_json=args.as_json)
            status: int = args.run(args, screen)
        except SystemExit as ended:  # argparse has printed its message
            status = ended.code if isinstance(ended.code, int) else 2
        sys.stdout.flush()
    except QnsError as problem:
        screen.error(Problem.of(problem))
        status = 2
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        status = _BROKEN_PIPE
    except OSError as problem:  # errors of reading are handled elsewhere: this is the output
        _discard_output()
        screen.error(Problem(f"cannot write: {problem.strerror or problem}"))
        status = 2
    return status


def new_parser(names: Sequence[str] = COMMANDS) -> CommandParser:
    """Returns the parser of a command line with these commands."""
    parser = CommandParser(
        prog="qns",
        description=_DESCRIPTION.strip(),
        epilog=epilog(_EXAMPLES),
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"qns {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in names:
        import_module(f"qns.cli.commands.{name}").add(commands)
    return parser


def _needed(words: Sequence[str]) -> Sequence[str]:
    """Returns the commands whose modules have to be imported for this command line.

    To import those of all commands takes longer than most commands do.
    """
    if words[:1] == ["--version"]:
        return ()
    return words[:1] if words and words[0] in COMMANDS else COMMANDS


class _Help(RawDescriptionHelpFormatter):
    """Reserves the width of the longest command, which argparse before 3.12.7 does not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._action_max_length = 2 * self._indent_increment + max(map(len, COMMANDS))


def _utf8(stream: TextIO | None) -> TextIO:
    """Makes a stream write UTF-8 in any locale. A closed stream is replaced by os.devnull."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # closed when the process ends
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


def _discard_output() -> None:
    """Redirects standard output, so that Python does not fail to flush it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a file: nothing to flush
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
