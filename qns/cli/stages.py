"""Stages: what a long command is doing now, how far it has come and how long it will take.

On standard error, if anyone is looking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from qns.cli.bar import new_progress


@contextmanager
def stages() -> Iterator[Callable[[str, float], None]]:
    """Each call names the stage and the share of it that is done; 0: nobody knows."""
    columns = TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn()
    with new_progress(*columns) as progress:
        task = progress.add_task("starting", total=None)

        def tell(stage: str, share: float) -> None:
            total = 1.0 if share else None
            progress.update(task, description=stage, completed=share, total=total)

        yield tell
