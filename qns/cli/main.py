"""`qns`: the command line. One file per command; this one chooses, and turns errors into words.

Exit status: 0 yes or all well, 1 no or problems found, 2 an error or wrong usage.
"""

from __future__ import annotations

import io
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Any, Final, TextIO

from qns import __version__
from qns.cli import (
    check,
    contains,
    demo,
    federation,
    history,
    lab,
    loss,
    match,
    merge,
    peer,
    pipeline,
    publish,
    pull,
    savings,
    schema,
    schemas,
    simulate,
    subscribe,
    subscribed_to,
    unsubscribe,
    verify,
    watch,
)
from qns.cli.options import epilog
from qns.cli.problems import Problem
from qns.cli.screen import Screen
from qns.errors import QnsError

COMMANDS: Final = (
    demo,
    check,
    match,
    contains,
    merge,
    schemas,
    schema,
    federation,
    peer,
    subscribe,
    unsubscribe,
    subscribed_to,
    publish,
    pull,
    watch,
    history,
    verify,
    simulate,
    lab,
    loss,
    savings,
    pipeline,
)

_INTERRUPTED = 130
_NOBODY_READS = 141

_DESCRIPTION = """
QNS, the Quality Notification Service: tells organisations that the quality of the
data they share has changed.
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
            parser = new_parser()
            args = parser.parse_args(argv)
            if not hasattr(args, "run"):  # no command at all
                parser.print_help(sys.stderr)
                return 2
            screen = Screen(as_json=args.as_json)
            status: int = args.run(args, screen)
        except SystemExit as ended:  # argparse has said what it had to say
            status = ended.code if isinstance(ended.code, int) else 2
        sys.stdout.flush()
    except QnsError as problem:
        screen.error(Problem.of(problem))
        status = 2
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except BrokenPipeError:
        _give_up_output()
        status = _NOBODY_READS
    except OSError as problem:  # reading is dealt with where it happens: this is the output
        _give_up_output()
        screen.error(Problem(f"cannot write: {problem.strerror or problem}"))
        status = 2
    return status


def new_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="qns",
        description=_DESCRIPTION.strip(),
        epilog=epilog(_EXAMPLES),
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"qns {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser


class _Help(RawDescriptionHelpFormatter):
    """Leaves room for the longest command, also where argparse (before 3.12.7) forgets to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        longest = max(len(command.__name__.rpartition(".")[2]) for command in COMMANDS)
        self._action_max_length = 2 * self._indent_increment + longest


def _utf8(stream: TextIO | None) -> TextIO:
    """The stream, writing UTF-8 whatever the locale; a closed one swallows what it is given."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # open until the end
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


def _give_up_output() -> None:
    """So that Python does not try to flush what nobody can take when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a file: nothing to flush
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
