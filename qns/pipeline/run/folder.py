"""Folder: where one run keeps its results, so that an interrupted run can be resumed.

DIR/run.json                        the request; the folder is refused for another one
DIR/scenarios/ID/TABLE.parquet      a finished scenario, and `done` with the digests of its files
DIR/TABLE.parquet                   all scenarios together
DIR/report.html, DIR/figures/…      written last
DIR/spark.log                       the log of Spark

Every file is written under a temporary name, forced to the disk and renamed, and so is the folder
of a scenario. A file or folder that has its final name is therefore complete.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from qns import __version__
from qns.errors import NotAllowed, StoreFailed
from qns.pipeline.spark.session import LOG
from qns.pipeline.tables import TABLES, Tables
from qns.report.atomic_folder import (
    TEMPORARY,
    holds_request,
    replace_folder,
    storage_errors,
    sync_folder,
    write_file,
)

REPORT: Final = "report.html"

_RUN: Final = "run.json"
_SCENARIOS: Final = "scenarios"
_DONE: Final = "done"
_LOCK: Final = ".lock"
_WHEN_FULL: Final = "free some and give the same command again: what is finished is kept"
_FIRST: Final = ("mapping", "organisations", "churn", "seed", "scenario")


class Folder:
    """An open and locked folder: only one run at a time writes into it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def is_finished(self, scenario: str) -> bool:
        """True if all files of the scenario exist with the digests that were recorded."""
        folder = self.path / _SCENARIOS / scenario
        try:
            digests = json.loads((folder / _DONE).read_bytes())
            return all(_digest(folder / name) == digest for name, digest in digests.items())
        except (OSError, ValueError, AttributeError):
            return False

    def keep(self, scenario: str, tables: Mapping[str, pa.Table]) -> None:
        """Writes the tables of a scenario and marks it as finished."""
        folder = self.path / _SCENARIOS / scenario
        new = folder.with_name(scenario + TEMPORARY)
        with run_errors(self.path):
            for each in (folder, new):
                shutil.rmtree(each, ignore_errors=True)
            new.mkdir(parents=True)
            try:
                for name, table in tables.items():
                    write_file(new / f"{name}.parquet", parquet(name, table))
                digests = {each.name: _digest(each) for each in sorted(new.iterdir())}
                write_file(new / _DONE, _json(digests))
                replace_folder(folder, new)
            except OSError:
                shutil.rmtree(new, ignore_errors=True)
                raise

    def kept(self, scenarios: tuple[str, ...]) -> Tables:
        """The tables of all these scenarios together, sorted; tables without a row are omitted."""
        together = {}
        for name in TABLES:
            files = [self.path / _SCENARIOS / each / f"{name}.parquet" for each in scenarios]
            parts = [_read(each) for each in files if each.is_file()]
            if any(part.num_rows for part in parts):
                together[name] = ordered(name, pa.concat_tables(parts))
        return together

    def save(self, name: str, data: bytes) -> None:
        """Writes a file that belongs to the whole run."""
        with run_errors(self.path):
            file = self.path / name
            write_file(file, data)
            sync_folder(file.parent)

    def drop_report(self) -> None:
        """Removes the report before new tables are computed, because it would not match them."""
        with run_errors(self.path):
            (self.path / REPORT).unlink(missing_ok=True)


@contextmanager
def open_folder(path: Path, asked: Mapping[str, object]) -> Iterator[Folder]:
    """Opens the folder of a run, a new one or an earlier one of the same request."""
    description = _json({"qns": __version__, "asked": asked})
    with run_errors(path):
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
        with run_errors(path):
            _claim(path, description)
        yield Folder(path)
    finally:
        os.close(lock)


def run_errors(path: Path) -> AbstractContextManager[None]:
    """Translates errors of the file system; a run can be resumed after the disk was full."""
    return storage_errors(path, _WHEN_FULL)


def parquet(name: str, table: pa.Table) -> bytes:
    """Encodes a table; equal rows give equal bytes."""
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
    """Sorts the rows by all columns, so that their order does not depend on who computed them."""
    schema = TABLES[name]
    columns = [*_FIRST, *(each for each in schema.names if each not in _FIRST)]
    in_order = table.select(schema.names).cast(schema)
    return in_order.sort_by([(each, "ascending") for each in columns]).combine_chunks()


def _claim(path: Path, description: bytes) -> None:
    """Marks the folder as this run's, and removes what an interrupted run left incomplete."""
    own = {_LOCK, LOG, _RUN + TEMPORARY}
    if not holds_request(path, _RUN, description, "run", own):
        write_file(path / _RUN, description)
        sync_folder(path)
    for left in (f"*{TEMPORARY}", f"*/*{TEMPORARY}", ".spark-*"):
        for each in list(path.glob(left)):
            _remove(each)


def _remove(left: Path) -> None:
    if left.is_dir():
        shutil.rmtree(left, ignore_errors=True)
    else:
        left.unlink(missing_ok=True)


def _read(file: Path) -> pa.Table:
    try:
        return pq.read_table(file)
    except (OSError, pa.ArrowException) as problem:
        raise StoreFailed(
            f"cannot be read: {str(problem).splitlines()[0]}",
            place=str(file),
            remedy="remove its folder and give the same command again",
        ) from None


def _digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
