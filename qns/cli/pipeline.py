"""`qns pipeline`: stored events matched on Spark, and sample files to try it on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from qns.cli.inputs import Input, decoded, too_long
from qns.cli.mappings import MAPPINGS
from qns.cli.options import Commands, add_json_option, add_schema_option, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.stages import stages
from qns.cli.subscriptions import SubscriptionReader
from qns.d2q.event_json import MAX_LINE_BYTES
from qns.d2q.schema import Schema
from qns.d2q.schema_files import load_schema
from qns.d2q.shipped import WEATHER
from qns.errors import NotAllowed, QnsError

if TYPE_CHECKING:
    from qns.pipeline.matching.match_inputs import Line, Unit, Wanted
    from qns.pipeline.matching.match_job import Matched

SHOWN: Final = 5
_TEXT: Final = 72

_DESCRIPTION = """
Works on stored events and subscriptions with Spark: on this computer (no cluster and no Java
needed), or on a cluster.
"""
_EXAMPLES = (
    "qns pipeline generate --out sample",
    "qns pipeline match sample/EVENTS.parquet sample/SUBS.parquet --schema weather --out found",
)
_MATCH = """
Matches stored events with subscriptions: what would each have got? For replaying the past,
and for choosing thresholds before subscribing. The schema mapping is ignored, as in qns match.

EVENTS is a Parquet file, or a folder of them, with a column event (D2Q XML, or JSON as in qns
match), or a text file with one JSON object per line. SUBSCRIPTIONS is a Parquet file with the
columns id and subscription, and perhaps organisation, or lines of id<TAB>subscription.

DIR gets pairs/ (source, event, organisation, subscription) and summary.parquet: how many events
each subscription matches. Any number of cores gives the same files. With a cluster, all files
lie where every worker sees them.
"""
_MATCH_EXAMPLES = (
    "qns pipeline match EVENTS.parquet SUBS.parquet --schema weather --out found",
    "qns pipeline match examples/weather/events.jsonl examples/weather/subscriptions.tsv \\\n"
    "            --schema weather --out found",
    "qns pipeline match /shared/events SUBS.parquet --schema my.xml \\\n"
    "            --master spark://host:7077 --out /shared/found",
)
_GENERATE = """
Writes SUBS.parquet and EVENTS.parquet of a generated federation, as qns savings draws them:
to try qns pipeline match and qns savings --from on, and to see what such files look like.
"""
_GENERATE_EXAMPLES = (
    "qns pipeline generate --out sample",
    "qns pipeline generate --organisations 20 --subscriptions 1000 --churn 0.2 \\\n"
    "            --publications 100000 --seed 7 --out sample",
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
        actions, "match", "what would subscriptions have got?", _MATCH, _MATCH_EXAMPLES
    )
    parser.add_argument("events", metavar="EVENTS", help="Parquet, or JSON lines")
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help="Parquet, or lines")
    add_schema_option(parser)
    parser.add_argument("--out", metavar="DIR", required=True, type=Path, help="where results go")
    parser.add_argument(
        "--master", metavar="MASTER", help="local[N], spark://…, yarn or k8s://… (local[*])"
    )
    add_json_option(parser, "the numbers as one JSON object")
    parser.set_defaults(run=run_match)


def _add_generate(actions: Commands) -> None:
    parser = new_command(actions, "generate", "write sample files", _GENERATE, _GENERATE_EXAMPLES)
    option = parser.add_argument
    option("--out", metavar="DIR", required=True, type=Path, help="where the files go")
    option("--schema", metavar="SCHEMA", default=WEATHER.name, help=f"({WEATHER.name})")
    option("--organisations", metavar="N", type=int, default=10, help="how many take part (10)")
    option("--mapping", choices=MAPPINGS, default=MAPPINGS[0], help=f"({MAPPINGS[0]})")
    option("--subscriptions", metavar="N", type=int, default=100, help="of each of them (100)")
    option("--churn", metavar="P", type=float, default=0.0, help="share of unsubscriptions (0)")
    option("--publications", metavar="N", type=int, default=1_000, help="events in all (1000)")
    option("--seed", metavar="N", type=int, default=0, help="another one draws others (0)")
    add_json_option(parser, "the names of the files as one JSON object")
    parser.set_defaults(run=run_generate)


# -- match ----------------------------------------------------------------------------------------


def run_match(args: Namespace, screen: Screen) -> int:
    from qns.pipeline.matching import match_job
    from qns.pipeline.spark import session

    schema = load_schema(args.schema)
    if args.master is not None:
        session.checked_master(args.master)
    match_job.refuse_results(args.out)
    wanted = _wanted(args.subscriptions, schema, screen)
    if wanted is None:
        return 2
    new_folder(args.out)
    with stages() as told, TemporaryDirectory(prefix=".events-", dir=args.out) as staged:
        told("reading events", 0.0)
        units = _units(args.events, Path(staged))
        told("starting Spark", 0.0)
        with session.session(args.master, "qns pipeline match", args.out) as spark:
            matched = match_job.match_job(
                spark, units, wanted, schema, args.out, lambda share: told("matching", share)
            )
    if screen.as_json:
        counts = {name: getattr(matched, name) for name in ("events", "matched", "pairs")}
        screen.json({**counts, "subscriptions": len(wanted), "out": str(args.out)})
    else:
        _show(matched, args.out, screen)
    return 0


def _wanted(name: str, schema: Schema, screen: Screen) -> list[Wanted] | None:
    """None if something is wrong with lines of text; it is told."""
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
        text = row["text"] if len(row["text"]) <= _TEXT else row["text"][: _TEXT - 1] + "…"
        name = "/".join(filter(None, (row["organisation"], row["subscription"])))
        screen.line(
            f"  {row['events']:>12,}  {row['share']:>7.2%}  ",
            (visible(name), "cyan"),
            f"  {visible(text)}",
        )
    if len(rows) > SHOWN:
        nothing = sum(not row["events"] for row in rows)
        screen.line(f"  … {len(rows) - SHOWN:,} more; {nothing:,} subscriptions match nothing")
    screen.line(f"in {out}: pairs, summary.parquet")


# -- generate -------------------------------------------------------------------------------------


def run_generate(args: Namespace, screen: Screen) -> int:
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
    for name in samples.NAMES:
        if (args.out / name).exists():
            raise NotAllowed(
                f"{name} is there already", place=str(args.out), remedy="choose another folder"
            )
    new_folder(args.out)
    subs, events = samples.write_sample(asked, args.publications, args.out)
    if screen.as_json:
        screen.json({"subscriptions": str(subs), "events": str(events)})
    else:
        screen.line(f"{subs}: subscriptions of {args.organisations} organisations")
        screen.line(f"{events}: {args.publications:,} events")
    return 0


def new_folder(path: Path) -> None:
    """Makes the folder, if there is none."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise QnsError(
            f"cannot be written: {problem.strerror}",
            place=str(path),
            remedy="choose another folder",
        ) from None
