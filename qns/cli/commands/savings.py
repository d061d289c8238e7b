"""`qns savings`: computes on Spark how much merge subscriptions save, with a report."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from dataclasses import fields
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from qns.cli.options import Commands, add_json_option, add_master_option, new_command
from qns.cli.progress import staged_progress
from qns.cli.screen import Screen
from qns.cli.wording import counted
from qns.d2q.schema_files import load_schema
from qns.d2q.shipped import SHIPPED, WEATHER
from qns.errors import NameNotKnown, ValueRefused, shorten

if TYPE_CHECKING:
    from qns.pipeline.run.plan import Plan
    from qns.pipeline.run.work import Work
    from qns.pipeline.workload.scenario import Workload

MAPPINGS: Final = {"partial": ("partial",), "full": ("full",), "both": ("partial", "full")}
FAN_OUTS: Final = "2,4,8"

_OF_GENERATED: Final = (
    "organisations",
    "subscriptions",
    "seeds",
    "churn",
    "publications",
    "workload",
    "sensitivity",
    "hard",
)
"""The options that only generated workloads have."""
_OF_STORED: Final = ("sensitivity", "hard", "replayed", "exact_merging", "trees")
"""Further options that are not for the datasets of --workload PATH."""
_NUMBER: Final = re.compile(r"\d{1,12}", re.ASCII)
_SHARE: Final = re.compile(r"\d{0,6}(?:\.\d{1,9})?", re.ASCII)
_WAYS: Final = {"mapping": "mapping alone", "containment": "merging alone", "both": "both: QNS"}

_DESCRIPTION = """
Generates the subscriptions and publications of a federation, merges them like its peers, and
computes what that saves against the trivial solution, in which every change is sent to and
stored by every other organisation. These are the figures 5.8 to 5.10 of the thesis, and more.

The computation uses Spark: on this computer (without a cluster and without Java), or on the
cluster that --master names. The folder gets the tables as Parquet, the figures, and
report.html. The same command resumes a run that was stopped.

--from replays recorded data instead: the stores of peers that recorded their history, or
SUBS.parquet and EVENTS.parquet (qns pipeline generate writes examples). --mapping then names
mappings to compare with: full, a shipped federation, or an .xml file with a federation
document.

--workload PATH merges stored datasets, as qns pipeline generate writes them.
"""
_EXAMPLES = (
    "qns savings --subscriptions 10,100 --seeds 2 --publications 100 --out small",
    "qns savings --exact-merging --trees --churn 0.2 --sensitivity --out savings",
    "qns savings --subscriptions 1000000 --publications 0 --hard --out million",
    "qns savings --master spark://host:7077 --organisations 10,100,500 --out many",
    "qns savings --workload s3a://bucket/workload --out stored",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "savings", "compute how much merging saves, at any scale", _DESCRIPTION, _EXAMPLES
    )
    option = parser.add_argument
    option("--out", metavar="DIR", required=True, help="a new folder for the results")
    option("--from", metavar="FILE", nargs="+", dest="replayed", help="replay recorded data")
    option(
        "--schema",
        metavar="SCHEMA",
        help=f"{' or '.join(SHIPPED)}, or a .dtd or .xml file (default: {WEATHER.name})",
    )
    option("--organisations", metavar="N,…", help="numbers of organisations (default: 10)")
    option(
        "--subscriptions",
        metavar="N,…",
        help="of each organisation; intermediate points are added (default: 100,1000,10000)",
    )
    option("--seeds", metavar="N", help="number of repetitions (default: 5)")
    option("--mapping", metavar="MAPPING", help="partial, full or both (default: both)")
    option(
        "--churn",
        metavar="P,…",
        help="also with unsubscriptions: the probability of one after each subscription",
    )
    option(
        "--publications",
        metavar="N,…",
        help="for figure 5.10, with 100 subscriptions of each organisation; 0 for none "
        "(default: 100,1000,10000)",
    )
    option("--exact-merging", action="store_true", help="also with exact merging")
    option(
        "--trees",
        metavar="FAN_OUT,…",
        nargs="?",
        const=FAN_OUTS,
        help=f"also with diffusion trees (default fan-outs: {FAN_OUTS})",
    )
    option("--sensitivity", action="store_true", help="also vary the parameters of the workload")
    option("--hard", action="store_true", help="also a workload with little containment")
    option(
        "--workload",
        metavar="KEY=VALUE|PATH",
        action="append",
        default=[],
        help="set a parameter of the generated workload (the report lists all), or merge the "
        "datasets at a path of Spark (docs/datasets.md)",
    )
    option("--format", metavar="FORMAT", help="of these datasets: parquet (default), csv, json, …")
    add_master_option(parser)
    add_json_option(parser, "the summary as one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    from qns.pipeline.run import savings

    started = monotonic()
    out, path = Path(args.out), _path(args.workload)
    with staged_progress() as report:
        if path is not None:
            _refuse("beside --workload PATH", args, *_OF_GENERATED[:-3], *_OF_STORED)
            schema = load_schema(args.schema or WEATHER.name)
            stored = savings.Stored(path, args.format or "parquet", schema, args.mapping)
            result = savings.compute_stored(stored, out, args.master, report)
        elif args.replayed:
            report("reading", 0.0)
            result = savings.compute_savings(_replayed(args), out, args.master, report)
        else:
            work = savings.work_of(_plan(args))
            result = savings.compute_savings(work, out, args.master, report)
    result["seconds"] = round(monotonic() - started, 1)
    if screen.as_json:
        screen.json(result)
    else:
        _show(result, screen)
    return 0


def _show(result: dict[str, Any], screen: Screen) -> None:
    for each in result["mappings"]:
        if "messages" in each:
            screen.line(
                (f"{each['mapping']} mapping", "bold"),
                f", {each['subscriptions']:,} subscriptions of each organisation",
            )
            screen.line(f"  {'':<18}{'messages':>16}{'saved':>9}{'table rows':>16}{'saved':>9}")
            messages, rows = each["messages"], each["rows"]
            screen.line(f"  {'trivial':<18}{messages['trivial']:>16,.0f}{rows['trivial']:>25,.0f}")
            for way, name in _WAYS.items():
                screen.line(
                    f"  {name:<18}{messages[way]:>16,.0f}"
                    f"{messages['saved_percent'][way]:>7.1f} %{rows[way]:>16,.0f}"
                    f"{rows['saved_percent'][way]:>7.1f} %"
                )
        if "notifications" in each:
            sent = each["notifications"]
            screen.line(
                f"  of {sent['published']:,} events {sent['delivered']:,.0f} notifications were "
                f"delivered to users, {sent['sent']:,.0f} sent between peers"
            )
        screen.line()
    again = f", {result['resumed']} of them before" if result["resumed"] else ""
    screen.line(
        ("report: ", "bold"),
        f"{result['report']} ({counted(result['scenarios'], 'scenario')}{again})",
    )


# -- options --------------------------------------------------------------------------------------


def _plan(args: Namespace) -> Plan:
    from qns.pipeline.run import plan

    publications = _numbers("--publications", args.publications or "100,1000,10000")
    mapping = args.mapping or "both"
    if mapping not in MAPPINGS:
        raise NameNotKnown("mapping", mapping, MAPPINGS)
    return plan.Plan(
        schema=load_schema(args.schema or WEATHER.name),
        organisations=_numbers("--organisations", args.organisations or "10"),
        subscriptions=_numbers("--subscriptions", args.subscriptions or "100,1000,10000"),
        seeds=_numbers("--seeds", args.seeds or "5")[0],
        mappings=MAPPINGS[mapping],
        churns=(0.0, *(share for share in _shares("--churn", args.churn or "0") if share)),
        workload=_workload(args.workload),
        publications=() if publications == (0,) else publications,
        fan_outs=_fan_outs(args.trees),
        exact_merging=args.exact_merging,
        sensitivity=args.sensitivity,
        hard=args.hard,
    )


def _replayed(args: Namespace) -> Work:
    from qns.pipeline.replay import real_workload
    from qns.pipeline.run import replay_plan

    _refuse("beside --from", args, *_OF_GENERATED)
    happened = real_workload.read(args.replayed, load_schema(args.schema) if args.schema else None)
    mappings = args.mapping.split(",") if args.mapping else ()
    return replay_plan.replay_work(happened, mappings, _fan_outs(args.trees), args.exact_merging)


def _refuse(beside: str, args: Namespace, *options: str) -> None:
    for name in options:
        if getattr(args, name):
            raise ValueRefused(
                f"--{name.replace('_', '-')} is for generated workloads only",
                remedy=f"leave it out {beside}",
            )


def _path(given: list[str]) -> str | None:
    """The path among the values of --workload, which also sets parameters."""
    from qns.pipeline.workload import scenario

    names = {each.name for each in fields(scenario.Workload)}
    paths = [each for each in given if "/" in each or ("=" not in each and each not in names)]
    if paths and len(given) > 1:
        raise ValueRefused(
            "more than one --workload with a path", remedy="give one path and nothing else"
        )
    return paths[0] if paths else None


def _fan_outs(trees: str | None) -> tuple[int, ...]:
    """Returns the fan-outs, with 0 for the comparison without trees."""
    return (0, *_numbers("--trees", trees)) if trees else ()


def _numbers(option: str, text: str) -> tuple[int, ...]:
    words = [word.strip().replace("_", "") for word in text.split(",")]
    if not all(_NUMBER.fullmatch(word) for word in words):
        raise ValueRefused(
            f"{option} {shorten(text)} is no list of numbers", remedy="as in 100,1000,10000"
        )
    return tuple(map(int, words))


def _shares(option: str, text: str) -> tuple[float, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word and _SHARE.fullmatch(word) for word in words):
        raise ValueRefused(f"{option} {shorten(text)} is no share", remedy="as in 0.2")
    return tuple(map(float, words))


def _workload(settings: list[str]) -> Workload:
    from qns.pipeline.workload import scenario

    types = {each.name: each.type for each in fields(scenario.Workload)}
    chosen: dict[str, Any] = {}
    for setting in settings:
        name, is_set, value = setting.partition("=")
        name = name.strip().replace("-", "_")
        if name not in types:
            raise NameNotKnown("parameter of the workload", name, types)
        if not is_set:
            raise ValueRefused(f"{name} has no value", remedy=f"as in {name}=0.5")
        chosen[name] = _value(name, str(types[name]), value.strip())
    return scenario.Workload(**chosen)


def _value(name: str, kind: str, text: str) -> object:
    if kind == "bool":
        if text.lower() in ("true", "yes", "1", "false", "no", "0"):
            return text.lower() in ("true", "yes", "1")
        raise ValueRefused(f"{name} is {shorten(text)}", remedy="yes or no")
    if kind == "int" and _NUMBER.fullmatch(text):
        return int(text)
    if kind == "float" and text and _SHARE.fullmatch(text):
        return float(text)
    remedy = "give a whole number" if kind == "int" else "give a number, as in 0.5"
    raise ValueRefused(f"{name} is {shorten(text)}", remedy=remedy)
