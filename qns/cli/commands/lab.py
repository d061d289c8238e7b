"""`qns lab`: measures figures of the thesis again and judges their claims in a report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import active_children
from os import cpu_count
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.processes import processes
from qns.cli.progress import counted_progress
from qns.cli.screen import Screen
from qns.errors import QnsError, ValueRefused, shorten

if TYPE_CHECKING:
    from qns.report.claim import Claim

REPORT: Final = "report.html"

_NEEDED: Final = ("numpy", "rtree", "matplotlib")
_MOST_JOBS: Final = 256
_MOST_SEEDS: Final = 1_000
_VERDICTS: Final = {
    True: ("yes", "bold green"),
    False: ("no", "bold red"),
    None: ("open", "bold"),
}
_DESCRIPTION = """
Measures figures of the thesis again, with the code of QNS: how likely a notification is to
arrive (chapter 3, paper 002), the cost of content-based routing and how self-organisation
changes it (chapter 4), and all strategies side by side (table 2.1). Writes report.html, which
judges each claim of the papers by the numbers, the figures as SVG and PNG, and the data as
CSV.

FIGURE is all, or some of
  3.6 3.7 3.8 3.9 3.10 table-3.1 3.11 3.12     loss
  002-9 002-10                                 loss, paper 002
  4.2 table-2.1                                locality; all strategies
  4.12 4.13 4.14 4.15 4.16                     SOCBR on flat networks
  4.17 4.18 4.19 4.20                          latency, pbSOCBR on transit-stub networks
  shapes associativity                         further workloads; cost of associativity

The result does not depend on the number of jobs, except for the seconds.

  qns lab all --out lab              the set-ups of the papers: 25 minutes on two processors
  qns lab all --quick --out quick    small systems, two seeds: a minute; not to be cited
  qns lab 4.12 4.13 --out socbr      only these figures
  qns lab 4.12 --seeds 40 --out many            narrower intervals, in more time
"""
_EXAMPLES = (
    'qns lab 3.7 3.8 3.9 002-10 --out "$(mktemp -d)/formulas"',
    'qns lab 3.9 --json --out "$(mktemp -d)/formulas"',
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands,
        "lab",
        "measure figures of the thesis again, with a report",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument("figures", metavar="FIGURE", nargs="+", help="all, or names of figures")
    option = parser.add_argument
    option("--out", metavar="DIR", required=True, help="a new folder for the report")
    option("--quick", action="store_true", help="small systems and two seeds: a minute or two")
    option("--seeds", metavar="N", help="runs of each figure (default: 20 or 5; 2 with --quick)")
    option("--jobs", metavar="N", help="worker processes (default: one per processor)")
    add_json_option(parser, "the verdicts as one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    jobs = _number("--jobs", args.jobs, cpu_count() or 1, 1, _MOST_JOBS)
    for name in _NEEDED:
        if find_spec(name) is None:
            raise QnsError(
                f"{name} is not installed", remedy='pip install "qns[lab]", in a checkout ".[lab]"'
            )
    from qns.lab import laboratory
    from qns.lab.experiments import setups

    figures = laboratory.figures_of(args.figures)
    chosen = setups.Setups().quick() if args.quick else setups.Setups()
    if args.seeds is not None:
        chosen = chosen.with_seeds(_number("--seeds", args.seeds, chosen.seeds, 2, _MOST_SEEDS))
    steps, out, started = laboratory.steps(figures, chosen), Path(args.out), monotonic()
    try:
        with (
            counted_progress("measuring", steps) as advance,
            processes(min(jobs, steps - 1)) as executor,
        ):
            try:
                judged = laboratory.make_report(
                    figures, out, chosen, executor, lambda done: advance(f"measuring, {done}")
                )
            except KeyboardInterrupt:
                for child in active_children():  # their results are not needed any more
                    child.terminate()
                raise
    except BrokenProcessPool:
        raise QnsError(
            "a worker process was killed", remedy="if memory ran out, use fewer --jobs"
        ) from None
    seconds = round(monotonic() - started, 1)
    if screen.as_json:
        screen.json(_as_json(figures, judged, out, seconds, quick=args.quick))
    else:
        _show(judged, out, screen)
        if args.quick:
            screen.line("this was a quick run, which must not be cited")
    return 0


def _show(judged: list[Claim], out: Path, screen: Screen) -> None:
    for each in judged:
        verdict, style = _VERDICTS[each.holds]
        of = f" ({each.mapping})" if each.mapping else ""
        screen.line((f"{verdict:<5}", style), (f"{each.figure:<14}", "bold"), f"{each.claim}{of}")
        if details := each.numbers or each.reason:
            screen.line(f"{'':<19}{details}")
    counts = Counter(_VERDICTS[each.holds][0] for each in judged)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict, _ in _VERDICTS.values())
    screen.line(("report: ", "bold"), f"{out / REPORT} ({summary})")


def _as_json(
    figures: tuple[str, ...], judged: list[Claim], out: Path, seconds: float, *, quick: bool
) -> dict[str, object]:
    return {
        "report": str(out / REPORT),
        "figures": list(figures),
        "quick": quick,
        "claims": [
            {
                "figure": each.figure,
                "claim": each.claim,
                "of": each.mapping,
                "holds": each.holds,
                "numbers": each.numbers,
                "rule": each.reason,
            }
            for each in judged
        ],
        "seconds": seconds,
    }


def _number(option: str, text: str | None, default: int, least: int, most: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and least <= int(text) <= most):
        raise ValueRefused(
            f"{option} {shorten(text)} is out of range", remedy=f"give {least} to {most}"
        )
    return int(text)
