"""Folder: where one run keeps its results, whole or not at all.

DIR/run.json                        what was asked; another run is refused
DIR/scenarios/ID/TABLE.parquet      a finished scenario, and `done`: which files it has
DIR/TABLE.parquet                   all scenarios together
DIR/report.html, DIR/figures/…      written last
DIR/spark.log                       what Spark had to say

Every file is written under another name, forced to the disk and renamed, and a scenario's folder
once more as a whole: what has its name is complete, whatever was killed when.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from qns import __version__
from qns.errors import NotAllowed, StoreFailed, StoreFull
from qns.pipeline.spark.session import LOG
from qns.pipeline.tables import TABLES

REPORT: Final = "report.html"

_RUN: Final = "run.json"
_SCENARIOS: Final = "scenarios"
_DONE: Final = "done"
_LOCK: Final = ".lock"
_NEW: Final = ".new"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FIRST: Final = ("mapping", "organisations", "churn", "seed", "scenario")


class Folder:
    """An open folder, locked: one run at a time writes into it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def is_finished(self, scenario: str) -> bool:
        """Whether all its files are there, and none has been changed since."""
        folder = self.path / _SCENARIOS / scenario
        try:
            promised = json.loads((folder / _DONE).read_bytes())
            return all(_digest(folder / name) == told for name, told in promised.items())
        except (OSError, ValueError, AttributeError):
            return False

    def keep(self, scenario: str, tables: Mapping[str, pa.Table]) -> None:
        """The tables of a scenario that is finished with this."""
        folder = self.path / _SCENARIOS / scenario
        new = folder.with_name(scenario + _NEW)
        with told_with(self.path):
            for each in (folder, new):
                shutil.rmtree(each, ignore_errors=True)
            new.mkdir(parents=True)
            try:
                for name, table in tables.items():
                    _write(new / f"{name}.parquet", parquet(name, table))
                digests = {each.name: _digest(each) for each in sorted(new.iterdir())}
                _write(new / _DONE, _json(digests))
                _sync(new)
                new.rename(folder)
            except OSError:
                shutil.rmtree(new, ignore_errors=True)
                raise
            _sync(folder.parent)

    def kept(self, scenarios: tuple[str, ...]) -> dict[str, pa.Table]:
        """The tables of all these scenarios together, sorted; those without a row are left out."""
        together = {}
        for name in TABLES:
            files = [self.path / _SCENARIOS / each / f"{name}.parquet" for each in scenarios]
            parts = [_read(each) for each in files if each.is_file()]
            if any(part.num_rows for part in parts):
                together[name] = ordered(name, pa.concat_tables(parts))
        return together

    def save(self, name: str, data: bytes) -> None:
        """A file of the run as a whole."""
        with told_with(self.path):
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            _write(file, data)
            _sync(file.parent)

    def drop_report(self) -> None:
        """Before anything new is computed: a report is of what lies beside it."""
        with told_with(self.path):
            (self.path / REPORT).unlink(missing_ok=True)


@contextmanager
def open_folder(path: Path, asked: Mapping[str, object]) -> Iterator[Folder]:
    """The folder of a run, new or begun before; refused if it holds anything else."""
    description = _json({"qns": __version__, "asked": asked})
    with told_with(path):
        path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise NotAllowed(
                "another run writes into this folder now",
                place=str(path),
                remedy="wait until it has ended, or choose another folder",
            ) from None
        with told_with(path):
            _claim(path, description)
        yield Folder(path)
    finally:
        os.close(lock)


@contextmanager
def told_with(path: Path) -> Iterator[None]:
    """Errors of the file system, told with the folder they happened in."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or str(problem)
        if problem.errno in _NO_ROOM:
            raise StoreFull(
                f"no room left on the disk ({reason})",
                place=str(path),
                remedy="free some and give the same command again: what is finished is kept",
            ) from None
        raise StoreFailed(
            f"cannot be written: {reason}", place=str(path), remedy="choose another folder"
        ) from None


def parquet(name: str, table: pa.Table) -> bytes:
    """The same bytes for the same rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        ordered(name, table),
        sink,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        row_group_size=1 << 20,
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def ordered(name: str, table: pa.Table) -> pa.Table:
    """Rows in the one order that does not depend on who computed them, in one piece."""
    schema = TABLES[name]
    columns = [*_FIRST, *(each for each in schema.names if each not in _FIRST)]
    in_order = table.select(schema.names).cast(schema)
    return in_order.sort_by([(each, "ascending") for each in columns]).combine_chunks()


def _claim(path: Path, description: bytes) -> None:
    """Makes the folder this run's, or finds that it is already, or refuses it."""
    run = path / _RUN
    if run.exists():
        if run.read_bytes() != description:
            raise NotAllowed(
                "the folder holds another run",
                place=str(path),
                remedy=f"choose another folder, or remove this one ({_RUN} tells what was asked)",
            )
    else:
        mine = {_LOCK, LOG, _RUN + _NEW}
        if foreign := sorted(each.name for each in path.iterdir() if each.name not in mine):
            raise NotAllowed(
                f"the folder holds other files: {', '.join(foreign[:3])}"
                f"{'…' if len(foreign) > 3 else ''}",
                place=str(path),
                remedy="choose an empty folder, or a new one",
            )
        _write(run, description)
        _sync(path)
    # What a run that was killed has left half done.
    for left in [*path.glob(f"*{_NEW}"), *path.glob(f"*/*{_NEW}"), *path.glob(".spark-*")]:
        _remove(left)


def _remove(left: Path) -> None:
    if left.is_dir():
        shutil.rmtree(left, ignore_errors=True)
    else:
        left.unlink(missing_ok=True)


def _write(file: Path, data: bytes) -> None:
    new = file.with_name(file.name + _NEW)
    try:
        with new.open("wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(file)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


def _read(file: Path) -> pa.Table:
    try:
        return pq.read_table(file)
    except (OSError, pa.ArrowException) as problem:
        raise StoreFailed(
            f"cannot be read: {str(problem).splitlines()[0]}",
            place=str(file),
            remedy="remove its folder and give the same command again",
        ) from None


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
