"""`qns pipeline`: matches stored events on Spark, and generates sample files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from qns.cli.inputs import Input, decoded, too_long
from qns.cli.mappings import MAPPINGS
from qns.cli.options import (
    Commands,
    add_json_option,
    add_master_option,
    add_schema_option,
    new_command,
)
from qns.cli.problems import visible
from qns.cli.progress import staged_progress
from qns.cli.screen import Screen
from qns.cli.subscription_file import SubscriptionReader
from qns.cli.wording import shortened
from qns.d2q.event_json import MAX_LINE_BYTES
from qns.d2q.schema import Schema
from qns.d2q.schema_files import load_schema
from qns.d2q.shipped import WEATHER
from qns.errors import NotAllowed, QnsError

if TYPE_CHECKING:
    from qns.pipeline.matching.match_inputs import Line, Unit, Wanted
    from qns.pipeline.matching.match_job import Matched
    from qns.pipeline.workload.scenario import Scenario

SHOWN: Final = 5
_LONGEST_TEXT: Final = 72

_DESCRIPTION = """
Processes stored events and subscriptions with Spark: on this computer (without a cluster and
without Java), or on a cluster.
"""
_EXAMPLES = (
    "qns pipeline generate --out sample",
    "qns pipeline match sample/EVENTS.parquet sample/SUBS.parquet --schema weather --out found",
)
_MATCH = """
Matches stored events with subscriptions, to replay the past or to choose thresholds before
subscribing. The schema mapping is ignored, as in qns match.

EVENTS is a Parquet file, or a folder of them, with a column event (D2Q XML, or JSON as in qns
match), or a text file with one JSON object per line. SUBSCRIPTIONS is a Parquet file with the
columns id and subscription, and optionally organisation, or lines of id<TAB>subscription.

Writes to DIR: pairs/ (source, event, organisation, subscription) and summary.parquet, the
number of events that each subscription matches. The files do not depend on the number of
cores. On a cluster, all files must be in a place that every worker can read.
"""
_MATCH_EXAMPLES = (
    "qns pipeline match EVENTS.parquet SUBS.parquet --schema weather --out found",
    "qns pipeline match examples/weather/events.jsonl examples/weather/subscriptions.tsv \\\n"
    "            --schema weather --out found",
    "qns pipeline match /shared/events SUBS.parquet --schema my.xml \\\n"
    "            --master spark://host:7077 --out /shared/found",
)
_GENERATE = """
Writes the datasets of a generated federation (docs/datasets.md), with the workload of qns
savings: subscriptions, unsubscriptions, publications and mapping, drawn inside Spark. PATH may
be on any file system that the session knows. qns savings --workload PATH merges them.

With --files it writes SUBS.parquet and EVENTS.parquet into a folder of this computer instead,
without Spark: sample input for qns pipeline match and qns savings --from.
"""
_GENERATE_EXAMPLES = (
    "qns pipeline generate --subscriptions 100000 --out workload",
    "qns pipeline generate --organisations 20 --subscriptions 1000 --churn 0.2 \\\n"
    "            --publications 100000 --seed 7 --format csv --out hdfs://host/workload",
    "qns pipeline generate --files --out sample",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "pipeline", "match stored events at any scale", _DESCRIPTION, _EXAMPLES
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_match(actions)
    _add_generate(actions)
    return parser


def _add_match(actions: Commands) -> None:
    parser = new_command(
        actions, "match", "match stored events with subscriptions", _MATCH, _MATCH_EXAMPLES
    )
    parser.add_argument("events", metavar="EVENTS", help="a Parquet file or folder, or JSON lines")
    parser.add_argument(
        "subscriptions", metavar="SUBSCRIPTIONS", help="a Parquet file, or lines of text"
    )
    add_schema_option(parser)
    parser.add_argument(
        "--out", metavar="DIR", required=True, type=Path, help="the folder for results"
    )
    parser.add_argument(
        "--master",
        metavar="MASTER",
        help="local[N], spark://…, yarn or k8s://… (default: local[*])",
    )
    add_json_option(parser, "the numbers as one JSON object")
    parser.set_defaults(run=run_match)


def _add_generate(actions: Commands) -> None:
    parser = new_command(
        actions, "generate", "write a generated workload", _GENERATE, _GENERATE_EXAMPLES
    )
    option = parser.add_argument
    option("--out", metavar="PATH", required=True, help="a new path for the datasets")
    option("--files", action="store_true", help="two files in a local folder instead")
    option("--format", metavar="FORMAT", default="parquet", help="parquet (default), json, orc, …")
    add_master_option(parser)
    option("--schema", metavar="SCHEMA", default=WEATHER.name, help=f"(default: {WEATHER.name})")
    option("--organisations", metavar="N", type=int, default=10, help="number (default: 10)")
    option("--mapping", choices=MAPPINGS, default=MAPPINGS[0], help=f"(default: {MAPPINGS[0]})")
    option(
        "--subscriptions",
        metavar="N",
        type=int,
        default=100,
        help="of each organisation (default: 100)",
    )
    option(
        "--churn",
        metavar="P",
        type=float,
        default=0.0,
        help="share of unsubscriptions (default: 0)",
    )
    option(
        "--publications",
        metavar="N",
        type=int,
        default=1_000,
        help="number of events (default: 1000)",
    )
    option("--seed", metavar="N", type=int, default=0, help="of the random numbers (default: 0)")
    add_json_option(parser, "the paths as one JSON object")
    parser.set_defaults(run=run_generate)


# -- match ----------------------------------------------------------------------------------------


def run_match(args: Namespace, screen: Screen) -> int:
    from qns.pipeline.matching import match_job
    from qns.pipeline.spark import session

    schema = load_schema(args.schema)
    if args.master is not None:
        session.checked_master(args.master)
        if args.master.startswith("sc://"):
            raise NotAllowed("match does not run over Spark Connect", remedy="give a master")
    match_job.refuse_results(args.out)
    wanted = _wanted(args.subscriptions, schema, screen)
    if wanted is None:
        return 2
    new_folder(args.out)
    with staged_progress() as report, TemporaryDirectory(prefix=".events-", dir=args.out) as staged:
        report("reading events", 0.0)
        units = _units(args.events, Path(staged))
        report("starting Spark", 0.0)
        with session.session(args.master, "qns pipeline match", args.out) as spark:
            matched = match_job.match_job(
                spark, units, wanted, schema, args.out, lambda share: report("matching", share)
            )
    if screen.as_json:
        counts = {name: getattr(matched, name) for name in ("events", "matched", "pairs")}
        screen.json({**counts, "subscriptions": len(wanted), "out": str(args.out)})
    else:
        _show(matched, args.out, screen)
    return 0


def _wanted(name: str, schema: Schema, screen: Screen) -> list[Wanted] | None:
    """Returns the subscriptions, or None if a text file has errors, which are printed."""
    from qns.pipeline.matching import match_inputs
    from qns.pipeline.replay import workload_files

    if workload_files.is_parquet(Path(name)):
        return match_inputs.read_wanted(Path(name), schema)
    reader = SubscriptionReader(schema, screen.error)
    with Input(name) as source:
        reader.read(source)
    if reader.problems:
        return None
    return [match_inputs.Wanted("", id, each) for id, each in reader.found.items()]


def _units(name: str, staged: Path) -> list[Unit]:
    from qns.pipeline.matching import match_inputs
    from qns.pipeline.replay import workload_files

    if workload_files.is_parquet(Path(name)):
        return match_inputs.units_of(Path(name), staged)
    with Input(name) as source:
        return match_inputs.units_of_lines(_lines(source), source.name, staged)


def _lines(source: Input) -> Iterator[Line]:
    from qns.pipeline.matching import match_inputs

    for first, lines in source.batches(MAX_LINE_BYTES):
        for number, line in enumerate(lines, start=first):
            try:
                if line is None:
                    raise too_long(MAX_LINE_BYTES)
                text = decoded(line)
            except QnsError as problem:
                raise problem.at(f"{source.name}: line {number:,}") from None
            if text.strip():
                yield match_inputs.Line(number - 1, text)


def _show(matched: Matched, out: Path, screen: Screen) -> None:
    rows = matched.summary.to_pylist()
    screen.line(
        (f"{matched.matched:,}", "bold"),
        f" of {matched.events:,} events match any of {len(rows):,} subscriptions; "
        f"{matched.pairs:,} pairs",
    )
    rows.sort(key=lambda row: -row["events"])
    for row in rows[:SHOWN]:
        name = "/".join(filter(None, (row["organisation"], row["subscription"])))
        screen.line(
            f"  {row['events']:>12,}  {row['share']:>7.2%}  ",
            (visible(name), "cyan"),
            f"  {visible(shortened(row['text'], _LONGEST_TEXT))}",
        )
    if len(rows) > SHOWN:
        nothing = sum(not row["events"] for row in rows)
        screen.line(f"  … {len(rows) - SHOWN:,} more; {nothing:,} subscriptions match nothing")
    screen.line(f"in {out}: pairs, summary.parquet")


# -- generate -------------------------------------------------------------------------------------


def run_generate(args: Namespace, screen: Screen) -> int:
    from qns.pipeline.notifications import notification_job
    from qns.pipeline.replay import samples
    from qns.pipeline.workload import scenario

    schema = load_schema(args.schema)
    asked = scenario.Scenario(
        schema,
        scenario.hosts_of(schema, args.organisations, args.mapping),
        args.mapping,
        args.seed,
        (args.subscriptions,),
        args.churn,
    )
    notification_job.check_publications((args.publications,))
    if not args.files:
        return _datasets(args, asked, screen)
    out = Path(args.out)
    for name in samples.NAMES:
        if (out / name).exists():
            raise NotAllowed(
                f"{name} exists already", place=str(out), remedy="choose another folder"
            )
    new_folder(out)
    subs, events = samples.write_sample(asked, args.publications, out)
    if screen.as_json:
        screen.json({"subscriptions": str(subs), "events": str(events)})
    else:
        screen.line(f"{subs}: subscriptions of {args.organisations} organisations")
        screen.line(f"{events}: {args.publications:,} events")
    return 0


def _datasets(args: Namespace, asked: Scenario, screen: Screen) -> int:
    from qns.pipeline.datasets import generated, stored
    from qns.pipeline.spark import session

    with (
        staged_progress() as report,
        TemporaryDirectory(prefix="qns-") as scratch,
    ):
        report("starting Spark", 0.0)
        with session.session(args.master, "qns pipeline generate", Path(scratch)) as spark:
            report("writing", 0.0)
            frames = generated.generated(asked, spark, args.publications)
            stored.write(frames, args.out, args.format)
    paths = {name: f"{args.out.rstrip('/')}/{name}" for name in frames}
    if screen.as_json:
        screen.json(paths)
    else:
        total = args.organisations * args.subscriptions
        screen.line(f"{paths['subscriptions']}: {total:,} subscriptions")
        screen.line(f"{paths['publications']}: {args.publications:,} events")
    return 0


def new_folder(path: Path) -> None:
    """Creates a folder if it does not exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise QnsError(
            f"cannot be written: {problem.strerror}",
            place=str(path),
            remedy="choose another folder",
        ) from None
