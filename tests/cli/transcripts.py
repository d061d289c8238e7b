"""Transcripts: the console blocks of a Markdown page, with commands after `$` and their output.

`python -m tests.cli.transcripts` writes the present output of the commands into the pages. With an
argument, such as `"qns peer"`, only the blocks whose commands begin with it are written.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

from qns.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = (
    *("docs/cli.md", "docs/evidence.md"),
    *("examples/agencies/README.md", "examples/weather/README.md"),
)

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    command: str
    printed: str


def steps(page: str) -> list[Step]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [step for block in _BLOCK.findall(text) for step in _steps_of(block)]


def _steps_of(block: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield Step(command, printed)


def output_of(command: str) -> str:
    """Returns the output and errors of a command. The working directory must be ROOT."""
    words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    if words[0] == "qns" and not any(set(word) <= set("();<>|&") for word in words if word):
        return _in_process(shlex.split(command)[1:])
    done = subprocess.run(
        ["bash", "-c", f'qns() {{ "{sys.executable}" -m qns.cli "$@"; }}; {command}'],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "80"},
        check=False,
    )
    return done.stdout.decode("utf-8")


def _in_process(arguments: list[str]) -> str:
    stream = TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True)
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with redirect_stdout(stream), redirect_stderr(stream):
            main(arguments)
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    stream.seek(0)
    return stream.read()


def rewritten(page: str, run: Callable[[str], str] = output_of, only: str = "") -> str:
    """Returns the page with the present output in each block whose commands begin with `only`."""

    def with_output(block: re.Match[str]) -> str:
        shown = list(_steps_of(block[1]))
        if not all(step.command.startswith(only) for step in shown):
            return block[0]
        output = "".join(f"$ {step.command}\n{run(step.command)}" for step in shown)
        return f"```console\n{output}```"

    return _BLOCK.sub(with_output, (ROOT / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    os.chdir(ROOT)
    for name in PAGES:
        text = rewritten(name, only=" ".join(sys.argv[1:]))
        (ROOT / name).write_text(text, encoding="utf-8")
