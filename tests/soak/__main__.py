"""Runs peer processes under injected faults and prints the verdict on their history."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

from qns.cli.main import main as qns
from tests.soak.harness import PEERS, Soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0, help="approximate duration (4)")
    parser.add_argument("--seed", type=int, help="seed of all random choices (default: random)")
    parser.add_argument("--keep", action="store_true", help="keep the folder of stores and logs")
    args = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if args.seed is None else args.seed
    folder = Path(tempfile.mkdtemp(prefix="qns-soak-"))
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", flush=True)

    say(f"seed {seed}: {PEERS} peers, {args.minutes:g} minutes, in {folder}")
    outcome = asyncio.run(Soak(seed, folder, 60 * args.minutes, say=say).run())
    for what, number in outcome.counts.items():
        print(f"  {what:<28}{number:>9,}")
    status = qns(["verify", str(folder / "history.jsonl")])
    for violation in outcome.violations:
        print(f"\nVIOLATION {violation}")
    if outcome.violations or status:
        say(f"seed {seed}: {len(outcome.violations)} violations; stores and logs are in {folder}")
        return 1
    say(f"seed {seed}: no violation; nothing that was acknowledged is lost")
    if not args.keep:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
