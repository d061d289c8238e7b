"""Progress: what a long command is doing and how far it is, on standard error of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def counted_progress(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Shows a bar over `total` steps. Each call completes one and sets the text beside the bar."""
    with new_progress(MofNCompleteColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(what, total=total)
        yield lambda text: progress.update(task, advance=1, description=text)


@contextmanager
def staged_progress() -> Iterator[Callable[[str, float], None]]:
    """Shows a bar over stages. Each call names the stage and its share done; 0 means unknown."""
    columns = (TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left:"))
    with new_progress(*columns, TimeRemainingColumn()) as progress:
        task = progress.add_task("starting", total=None)

        def report(stage: str, share: float) -> None:
            total = 1.0 if share else None
            progress.update(task, description=stage, completed=share, total=total)

        yield report


def new_progress(*further: ProgressColumn, console: Console | None = None) -> Progress:
    """Returns a spinner, a text, a bar and further columns, which are removed at the end."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *further,
        console=console or Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not sys.stderr.isatty(),
    )
