"""Trial: runs the tests and the simulator against one mutant in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from tests.mutants.mutant import Mutant
from tests.mutants.table import STATIC, concerned_tests, is_simulated

ROOT: Final = Path(__file__).parents[2]
SEEDS: Final = 200
MOST_S: Final = 1_800.0
"""A bug that keeps a test busy for so long counts as caught."""
_COPIED: Final = ("qns", "tests", "schemas", "examples", "docs", "pyproject.toml", "README.md")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant."""

    mutant: Mutant
    caught_by: str
    """The test that failed, or the seed that broke a rule; empty if the mutant survived."""
    seconds: float

    @property
    def is_surprise(self) -> bool:
        """True if it survived without an explanation."""
        return not self.caught_by and not self.mutant.survives


def make_copy(folder: Path) -> Path:
    """Copies what the tests need into a folder, in which mutants can be applied."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder


def try_mutant(mutant: Mutant, copy: Path, before: str = "", seeds: int = SEEDS) -> Verdict:
    """Applies the mutant, runs what may catch it, and removes it again.

    `before` is what caught it the last time; it is tried first.
    """
    started = monotonic()
    file = copy / mutant.file
    original = file.read_text(encoding="utf-8")
    try:
        _write(file, mutant.mutated(original))
        caught_by = _catch(mutant, copy, before, seeds)
    finally:
        _write(file, original)
    return Verdict(mutant, caught_by, monotonic() - started)


def _catch(mutant: Mutant, copy: Path, before: str, seeds: int) -> str:
    known = before.partition("[")[0]
    if known.startswith("tests/") and (copy / known.partition("::")[0]).exists():
        caught_by = _failing_test(copy, (known,))
        if caught_by:
            return caught_by
    for tests in concerned_tests(mutant):
        caught_by = _failing_test(copy, tests)
        if caught_by:
            return caught_by
    return _failing_seed(copy, seeds) if seeds and is_simulated(mutant) else ""


def _failing_test(copy: Path, tests: tuple[str, ...]) -> str:
    """Returns the first test that fails, or an empty text."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header"]
    command += [f"--ignore={path}" for path in STATIC]
    status, output = _run([*command, *tests], copy)
    if status is None:
        return f"{tests[0]} does not end"
    found = _FAILED.search(output)
    if found:
        return found[1]
    if status not in (0, 5):  # 5: the test that caught it the last time has gone
        return f"{tests[0]} cannot be run"
    return ""


def _failing_seed(copy: Path, seeds: int) -> str:
    status, output = _run([sys.executable, "-m", "tests.mutants.seeds", str(seeds)], copy)
    if status is None:
        return "the simulator does not end"
    return output.strip().splitlines()[-1] if status else ""


def _run(command: list[str], copy: Path) -> tuple[int | None, str]:
    """Returns the exit status, None if the command does not end in time, and its output."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "QNS_HYPOTHESIS": "quick",
        "COLUMNS": "400",
    }
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=MOST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _write(file: Path, source: str) -> None:
    """Writes a source file and removes its bytecode, whose time stamp may be the same."""
    file.write_text(source, encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)
