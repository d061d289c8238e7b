"""Tries mutants: python -m tests.mutants [--only NAME | --untried | --sample N] [--jobs N].

With --write each result is written at once, so that `--untried --write` goes on where it was
interrupted. The exit status is 1 if a mutant survives without an explanation.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic

from tests.mutants.mutant import Mutant
from tests.mutants.page import PAGE, known_results, page_text
from tests.mutants.table import MUTANTS
from tests.mutants.trial import ROOT, SEEDS, Verdict, make_copy, try_mutant


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    results = known_results()
    if options.page:
        PAGE.write_text(page_text(results), encoding="utf-8")
        return 0
    chosen = _chosen(options, results)
    for mutant in chosen:
        mutant.applied_to(ROOT)  # raises ValueError before anything is tried
    before = {} if options.anew else dict(results)
    verdicts: list[Verdict] = []
    with TemporaryDirectory(prefix="qns-mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for job in range(options.jobs):
            copies.put(make_copy(Path(folder, str(job))))
        ends = monotonic() + options.minutes * 60

        def attempt(mutant: Mutant) -> Verdict | None:
            if monotonic() > ends:
                return None
            copy = copies.get()
            try:
                seeds = 0 if options.tests_only else options.seeds
                return try_mutant(mutant, copy, before.get(mutant.name, ""), seeds)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(options.jobs) as threads:
            for verdict in threads.map(attempt, chosen):
                if verdict is not None:
                    verdicts.append(verdict)
                    print(_line(verdict, len(verdicts), len(chosen)), flush=True)
                    if options.write:
                        # The page may have changed since the start: its other rows are kept.
                        results = known_results() | {verdict.mutant.name: verdict.caught_by}
                        PAGE.write_text(page_text(results), encoding="utf-8")
    surprises = [each.mutant.name for each in verdicts if each.is_surprise]
    caught = sum(bool(each.caught_by) for each in verdicts)
    print(f"{len(verdicts)} mutants tried, {caught} caught")
    if surprises:
        print("these survive, and no explanation says why:", *surprises, sep="\n  ")
    return 1 if surprises else 0


def _options(arguments: list[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="a mutant by its name")
    parser.add_argument(
        "--untried", action="store_true", help="those that docs/mutants.md lists as not tried"
    )
    parser.add_argument("--sample", metavar="N", type=int, help="N of those that were caught")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="the draw of the sample")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="trials at the same time")
    parser.add_argument(
        "--minutes", metavar="M", type=float, default=1e9, help="begin no trial after M minutes"
    )
    parser.add_argument(
        "--seeds", metavar="N", type=int, default=SEEDS, help=f"seeds to simulate ({SEEDS})"
    )
    parser.add_argument(
        "--tests-only", action="store_true", help="do not simulate what the tests do not catch"
    )
    parser.add_argument(
        "--anew", action="store_true", help="do not try first what caught a mutant the last time"
    )
    parser.add_argument("--write", action="store_true", help="write the results to docs/mutants.md")
    parser.add_argument(
        "--page", action="store_true", help="write docs/mutants.md anew and try nothing"
    )
    return parser.parse_args(arguments)


def _chosen(options: Namespace, results: dict[str, str]) -> list[Mutant]:
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    if options.only:
        unknown = sorted(set(options.only) - by_name.keys())
        if unknown:
            sys.exit(f"there is no mutant {', '.join(unknown)}; docs/mutants.md lists them")
        return [by_name[name] for name in options.only]
    if options.untried:
        return [mutant for mutant in MUTANTS if mutant.name not in results]
    if options.sample:
        caught = [mutant for mutant in MUTANTS if results.get(mutant.name)]
        return Random(options.seed).sample(caught, min(options.sample, len(caught)))
    return list(MUTANTS)


def _line(verdict: Verdict, done: int, total: int) -> str:
    result = verdict.caught_by or f"SURVIVES {verdict.mutant.survives}"
    return f"{done:3}/{total} {verdict.seconds:5.0f} s  {verdict.mutant.name}: {result}"


if __name__ == "__main__":
    sys.exit(main())
