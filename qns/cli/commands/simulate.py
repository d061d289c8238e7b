"""`qns simulate`: runs simulated federations with faults and judges their histories."""

from __future__ import annotations

import os
import re
import secrets
import sys
from argparse import ArgumentParser, Namespace
from typing import Final

from qns.cli.campaign import Campaign, range_text
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.outputs import save
from qns.cli.replay import replay_as_json, show_history, show_plan, show_verdict, smallest
from qns.cli.screen import Screen
from qns.errors import NameNotKnown, QnsError, shorten
from qns.history.records import write_record
from qns.simulation.campaign import Setting, play
from qns.simulation.faults import FAULTS

FEWEST_PEERS: Final = 2
MOST_PEERS: Final = 50

_INTERRUPTED: Final = 130
_FRESH_BELOW: Final = 1_000_000_000
_SEEDS: Final = re.compile(r"(?:(\d{1,15})\.\.)?(\d{1,15})", re.ASCII)

_DESCRIPTION = f"""
Runs a federation of real peers on a simulated clock, network and disk, once for each seed.
While users subscribe and factories publish, messages are lost, hosts crash and old backups
are restored. Then the faults end, and the history is judged as by qns verify. A seed
determines the run to the last message, in any process and with any number of --jobs.

Faults: {", ".join(FAULTS[:6])},
        {", ".join(FAULTS[6:13])},
        {", ".join(FAULTS[13:22])},
        {", ".join(FAULTS[22:])}.

If a rule is broken, the plan of the first such seed is minimised to the actions that are
needed. --replay runs one seed and prints its plan, its history and the verdict.

Exit status: 0 if every rule held, 1 if one was broken or, in 200 seeds or more, had
nothing to decide, 2 for wrong usage, 130 if Ctrl-C stopped the run (its results so far
are printed).
"""
_EXAMPLES = (
    "qns simulate --seeds 0..3",
    "qns simulate --seeds 40..42 --peers 3 --faults crash,restore --json",
    "qns simulate --fresh 2 --peers 4 --jobs 0",
    "qns simulate --replay 7 --peers 3",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands,
        "simulate",
        "run simulated federations with faults and judge them",
        _DESCRIPTION,
        _EXAMPLES,
    )
    peers = Setting().peers
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--seeds",
        metavar="A..B",
        default="0..200",
        help="from A up to B, without B (default: 0..200)",
    )
    which.add_argument(
        "--fresh", metavar="N", type=int, help="N seeds from a random start, which is printed"
    )
    which.add_argument(
        "--replay", metavar="SEED", type=int, help="run one seed and print everything"
    )
    parser.add_argument(
        "--peers",
        metavar="N",
        type=int,
        default=peers,
        help=f"organisations, {FEWEST_PEERS} to {MOST_PEERS} (default: {peers})",
    )
    parser.add_argument(
        "--faults",
        metavar="LIST",
        default="all",
        help="names with commas, all or none (default: all)",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=int,
        default=1,
        help="processes; 0 for one per core (default: 1)",
    )
    parser.add_argument(
        "--minimise", action="store_true", help="with --replay: only the actions that are needed"
    )
    parser.add_argument(
        "--history", metavar="FILE", help="with --replay: write the history, for qns verify"
    )
    add_json_option(parser, "one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    setting = Setting(_peers(args.peers), _faults(args.faults))
    if args.replay is not None:
        return _replay(args, setting, screen)
    for option, is_given in (("--minimise", args.minimise), ("--history", args.history)):
        if is_given:
            raise QnsError(f"{option} needs --replay", remedy="name the seed to replay")
    if args.fresh is not None:
        seeds = _fresh(args.fresh)
    else:
        seeds = _seeds(args.seeds)
    campaign = Campaign(seeds, setting)
    campaign.play(_jobs(args.jobs, len(seeds)))
    campaign.minimise()
    if screen.as_json:
        screen.json(campaign.as_json())
    else:
        campaign.show(screen)
    if campaign.interrupted:
        return _INTERRUPTED
    return 0 if campaign.held else 1


def _replay(args: Namespace, setting: Setting, screen: Screen) -> int:
    if args.replay < 0:
        raise QnsError(f"there is no seed {args.replay}", remedy="seeds count from 0")
    plan, interrupted = setting.plan(args.replay), False
    if args.minimise:
        found, interrupted = smallest(plan)
        plan, result = found.plan, found.result
    else:
        result = play(plan)
    if args.history is not None:
        save(args.history, "".join(map(write_record, result.history)).encode())
    if screen.as_json:
        screen.json(replay_as_json(plan, result))
    else:
        show_plan(plan, screen)
        screen.line()
        show_history(result.history, screen)
        screen.line()
        show_verdict(result, screen)
    if interrupted:
        return _INTERRUPTED
    return 1 if result.breaches else 0


def _seeds(text: str) -> range:
    match = _SEEDS.fullmatch(text)
    if match is None:
        raise QnsError(f"{shorten(text)} is no range of seeds", remedy="write it as 0..200, or 200")
    seeds = range(int(match[1] or 0), int(match[2]))
    if not seeds:
        raise QnsError(
            f"no seed is in {range_text(seeds)}", remedy="the end must be after the start"
        )
    return seeds


def _fresh(number: int) -> range:
    """Returns random seeds. Prints them first, so that the run can always be repeated."""
    if number < 1:
        raise QnsError(f"--fresh {number} is out of range", remedy="give 1 or more")
    start = secrets.randbelow(_FRESH_BELOW)
    seeds = range(start, start + number)
    sys.stderr.write(f"fresh seeds; the same again: --seeds {range_text(seeds)}\n")
    sys.stderr.flush()
    return seeds


def _peers(number: int) -> int:
    if not FEWEST_PEERS <= number <= MOST_PEERS:
        raise QnsError(
            f"--peers {number} is out of range", remedy=f"give {FEWEST_PEERS} to {MOST_PEERS}"
        )
    return number


def _faults(text: str) -> tuple[str, ...]:
    """Returns the named faults in the order of `FAULTS`."""
    if text in ("all", "none"):
        return FAULTS if text == "all" else ()
    wanted = [name.strip() for name in text.split(",")]
    for name in wanted:
        if name not in FAULTS:
            raise NameNotKnown("fault", name, FAULTS)
    return tuple(name for name in FAULTS if name in wanted)


def _jobs(number: int, seeds: int) -> int:
    if number < 0:
        raise QnsError(
            f"--jobs {number} is negative", remedy="give a number of processes, or 0 for all cores"
        )
    return min(number or os.cpu_count() or 1, seeds)
