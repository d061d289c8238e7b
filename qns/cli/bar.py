"""Bar: how far a long computation has come, on standard error, if anyone is looking."""

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
    TextColumn,
    TimeRemainingColumn,
)


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Each call is one step, and says what is shown beside the bar from then on."""
    with new_progress(MofNCompleteColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(what, total=total)
        yield lambda told: progress.update(task, advance=1, description=told)


def new_progress(*further: ProgressColumn) -> Progress:
    """What is done, a bar, and further columns; it leaves nothing behind on the screen."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *further,
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not sys.stderr.isatty(),
    )
