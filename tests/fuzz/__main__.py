"""Fuzzes the decoders, each in a process of its own: `python -m tests.fuzz --seconds 20`.

It needs atheris (`pip install atheris`), which has wheels for Python up to 3.13 on Linux. Exit
status: 0 if no decoder crashed or hung, 1 if one did; its input is printed in base64. `--keep` adds
to the kept inputs what reached new code.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.fuzz.kept import keep, kept
from tests.fuzz.targets import TARGETS

_LONGEST_INPUT: Final = 8_192
_HANG_S: Final = 5
"""A decoder that takes longer for one input hangs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    target: str
    runs: int
    found: tuple[bytes, ...]
    """The inputs that reached new code."""
    crashes: tuple[bytes, ...]
    output: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=20, help="for each target (default: 20)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (default: 2)")
    parser.add_argument("--keep", action="store_true", help="keep inputs that reached new code")
    options = parser.parse_args()
    unknown = set(options.targets) - TARGETS.keys()
    if unknown:
        parser.error(f"there is no target {min(unknown)}")
    with ThreadPoolExecutor(options.jobs) as pool:
        names = options.targets or list(TARGETS)
        outcomes = list(pool.map(lambda name: _fuzz(name, options.seconds), names))
    for each in outcomes:
        if options.keep:
            keep(each.target, (*_smallest(each.found), *each.crashes))
    crashed = [each for each in outcomes if each.crashes]
    for each in crashed:
        print(f"\n{each.target} crashed or hung:\n{each.output[-3_000:]}")
        print(*(b64encode(data).decode() for data in each.crashes), sep="\n")
    return 1 if crashed or not all(each.runs for each in outcomes) else 0


def _fuzz(name: str, seconds: int) -> Outcome:
    with TemporaryDirectory() as folder:
        corpus, crashes = Path(folder, "corpus"), Path(folder, "crashes")
        corpus.mkdir()
        crashes.mkdir()
        inputs = [*TARGETS[name].samples, *kept(name)]
        for number, data in enumerate(inputs):
            (corpus / f"start-{number}").write_bytes(data)
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "tests.fuzz.run", name, str(corpus)),
                *(f"-max_total_time={seconds}", f"-max_len={_LONGEST_INPUT}"),
                *(f"-timeout={_HANG_S}", f"-artifact_prefix={crashes}/", "-print_final_stats=1"),
            ],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
        )
        found = tuple(
            path.read_bytes() for path in corpus.iterdir() if not path.name.startswith("start-")
        )
        broken = tuple(path.read_bytes() for path in crashes.iterdir())
        if ended.returncode and not broken:
            broken = (b"",)  # it ended in another way: the output tells
    runs = re.search(r"number_of_executed_units: (\d+)", ended.stderr)
    outcome = Outcome(name, int(runs[1]) if runs else 0, found, broken, ended.stderr)
    print(f"{name:18} {outcome.runs:>9,} inputs, {len(found):,} reached new code", flush=True)
    return outcome


def _smallest(inputs: tuple[bytes, ...], most: int = 60) -> list[bytes]:
    """Returns some of the inputs, so that the kept ones stay few."""
    return sorted(inputs, key=len)[:most]


if __name__ == "__main__":
    sys.exit(main())
