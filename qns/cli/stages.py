"""Stages: what a long command is doing now, how far it has come and how long it will take.

On standard error, if anyone is looking.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def stages() -> Iterator[Callable[[str, float], None]]:
    """Each call names the stage and the share of it that is done; 0: nobody knows."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("starting", total=None)

        def tell(stage: str, share: float) -> None:
            total = 1.0 if share else None
            progress.update(task, description=stage, completed=share, total=total)

        yield tell
