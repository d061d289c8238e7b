"""Fuzzes one target: `python -m tests.fuzz.run TARGET FOLDER [options of libFuzzer]`.

The folder has the inputs to start from and gets those that reach new code. It runs in a process of
its own, because libFuzzer ends the process.
"""

from __future__ import annotations

import sys
from contextlib import suppress

import atheris

with atheris.instrument_imports(include=["qns"]):
    from tests.fuzz.targets import EXPECTED, TARGETS


def main() -> None:
    name, *arguments = sys.argv[1:]
    target = TARGETS[name]

    def check(data: bytes) -> None:
        with suppress(*EXPECTED):
            target.decode(data)

    atheris.Setup([sys.argv[0], *arguments], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
