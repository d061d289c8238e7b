"""Screen: writes results to standard output and errors and progress to standard error.

Text is coloured on a terminal, unless NO_COLOR is set. JSON is never coloured.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import MofNCompleteColumn, TaskProgressColumn, TimeRemainingColumn
from rich.text import Text

from qns.cli.inputs import Input
from qns.cli.problems import Problem
from qns.cli.progress import new_progress

Part = str | tuple[str, str]
"""Text, or text with a style."""


class Screen:
    """The output of one command, as text or as JSON."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)

    def line(self, *parts: Part) -> None:
        """Prints one line of a result as text."""
        text = Text.assemble(*parts)
        text.rstrip()
        self._out.print(text, soft_wrap=True)

    def json(self, result: object) -> None:
        """Prints one line of a result as JSON."""
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")

    def raw(self, text: str) -> None:
        """Prints text unchanged and flushes it."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Prints what the user should know beside the result."""
        self._err.print(Text(text), soft_wrap=True)

    def finding(self, problem: Problem) -> None:
        """Prints a problem that is a result of the command, as of `qns check`."""
        self._show(self._out, problem)

    def error(self, problem: Problem) -> None:
        """Prints a problem that prevents the work of the command."""
        if self.as_json:
            sys.stderr.write(json.dumps(problem.as_json(), ensure_ascii=False) + "\n")
        else:
            self._show(self._err, problem, ("qns: error: ", "bold red"))

    @contextmanager
    def progress(
        self, what: str, source: Input, *, beside_output: bool = False
    ) -> Iterator[Callable[[int], None]]:
        """Shows a progress bar while a file is read, if standard error is a terminal.

        With `beside_output` there is no bar if the results are printed on the same terminal.
        """
        if not self._err.is_terminal or (beside_output and self._out.is_terminal):
            yield lambda _: None
            return
        total = source.size_bytes
        measure = TaskProgressColumn() if total else MofNCompleteColumn()
        with new_progress(measure, TimeRemainingColumn(), console=self._err) as bar:
            task = bar.add_task(what, total=total)
            yield lambda count: bar.advance(task, count)

    def _show(self, console: Console, problem: Problem, *prefix: Part) -> None:
        console.print(Text.assemble(*prefix, *_coloured(problem)), soft_wrap=True)
        if excerpt := problem.excerpt:
            text, caret = excerpt
            console.print(Text.assemble("  ", (text, "dim")), soft_wrap=True)
            console.print(Text.assemble("  ", (caret, "bold red")), soft_wrap=True)


def _coloured(problem: Problem) -> list[Part]:
    place, message = problem.place, problem.message
    if place and message.startswith(f"{place}: "):
        return [(f"{place}: ", "bold"), message.removeprefix(f"{place}: ")]
    return [message]


def _console(file: TextIO) -> Console:
    is_terminal = file.isatty()
    settings: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    if not is_terminal or os.environ.get("NO_COLOR"):
        settings["color_system"] = None
    return _Console(file=file, force_terminal=is_terminal, **settings)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raises an error that `main` handles. The method of rich would end the process."""
        raise BrokenPipeError
