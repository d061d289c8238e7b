"""The screen: where a command writes what it found, and what went wrong.

Colour only for a terminal, and never where NO_COLOR asks for none; JSON is never coloured.
Standard output carries results, standard error everything else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from qns.cli.inputs import Input
from qns.cli.problems import Problem

Part = str | tuple[str, str]
"""Words, or words with a style."""


class Screen:
    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)

    def line(self, *parts: Part) -> None:
        """One line of a result, for people."""
        text = Text.assemble(*parts)
        text.rstrip()
        self._out.print(text, soft_wrap=True)

    def json(self, result: object) -> None:
        """One line of a result, for programs."""
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")

    def raw(self, text: str) -> None:
        """Text for whoever reads it next, at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def finding(self, problem: Problem) -> None:
        """A problem that a command was asked to look for."""
        self._show(self._out, problem)

    def error(self, problem: Problem) -> None:
        """A problem that keeps a command from its work."""
        if self.as_json:
            sys.stderr.write(json.dumps(problem.as_json(), ensure_ascii=False) + "\n")
        else:
            self._show(self._err, problem, ("qns: error: ", "bold red"))

    @contextmanager
    def progress(
        self, what: str, source: Input, *, beside_output: bool = False
    ) -> Iterator[Callable[[int], None]]:
        """A bar on standard error while a file is read, if anyone is looking.

        Results that scroll by on the same terminal (`beside_output`) are progress enough.
        """
        if not self._err.is_terminal or (beside_output and self._out.is_terminal):
            yield lambda _: None
            return
        total = source.size_bytes
        measure = TaskProgressColumn() if total else MofNCompleteColumn()
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), measure)
        with Progress(
            *columns,
            TimeRemainingColumn(),
            console=self._err,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as bar:
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
        """Leaves it to `main`, instead of ending the process on the spot."""
        raise BrokenPipeError
