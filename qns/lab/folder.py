"""Folder: where a report of the laboratory goes, completely or not at all.

All files are written into a new folder beside the target, which is renamed at the end. The target
is replaced only if it is empty or holds an earlier report on the same request.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from qns.report.atomic_folder import holds_request, replace_folder, storage_errors, write_file

MARK: Final = "lab.json"
"""The description of the request. A folder with this file is a report of the laboratory."""

Save = Callable[[Mapping[str, bytes]], None]
"""Name in the folder -> content."""


@contextmanager
def new_folder(path: Path, asked: Mapping[str, object]) -> Iterator[Save]:
    """Raises at once if the folder holds something else or cannot be written."""
    description = f"{json.dumps(asked, ensure_ascii=False, sort_keys=True)}\n".encode()
    with storage_errors(path):
        path = Path(os.path.realpath(path))
        holds_request(path, MARK, description, "report")
        path.parent.mkdir(parents=True, exist_ok=True)
        new = Path(mkdtemp(prefix=f".{path.name}-", dir=path.parent))

    def save(files: Mapping[str, bytes]) -> None:
        with storage_errors(path):
            for name, data in files.items():
                write_file(new / name, data)

    try:
        with storage_errors(path):
            new.chmod(0o755)
        save({MARK: description})
        yield save
        with storage_errors(path):
            holds_request(path, MARK, description, "report")
            replace_folder(path, new)
    finally:
        shutil.rmtree(new, ignore_errors=True)
