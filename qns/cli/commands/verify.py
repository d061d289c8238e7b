"""`qns verify`: judges whether a history keeps the guarantees (semantics §9)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Final

from qns.cli.inputs import Input, decoded, too_long
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.problems import Problem, visible
from qns.cli.screen import Screen
from qns.cli.wording import counted
from qns.errors import NameNotKnown, QnsError
from qns.history.judge import judge
from qns.history.records import Record, read_record
from qns.history.verdict import Counts, Rule, Verdict

MAX_LINE_BYTES: Final = 1 << 25

_DESCRIPTION = """
Judges whether every event of a history was delivered once and in order, and nothing else
was. HISTORY has one JSON record per line (docs/history.md describes them); - is standard
input. Prints how often each rule was checked and broken, then a paragraph on each violation,
at most 20 for each rule.

Exit status: 0 if all rules hold, 1 if one is broken, 2 if HISTORY cannot be read or is not a
history.
"""
_EXAMPLES = (
    "qns verify examples/histories/holds.jsonl",
    "qns verify examples/histories/broken.jsonl --rule FIFO --rule 'No gap'",
    "qns verify --json - < examples/histories/broken.jsonl",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "verify", "judge whether a history keeps the guarantees", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("history", metavar="HISTORY", help="a file of records, or -")
    parser.add_argument(
        "--rule",
        metavar="NAME",
        action="append",
        help=f"only this rule, or these if repeated: {', '.join(Rule)}",
    )
    add_json_option(parser, "one JSON object: ok, rules, violations, counts")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    rules = [_rule(name) for name in args.rule or Rule]
    with Input(args.history) as source, screen.progress("judging", source) as seen:
        lines = _Lines(source, seen)
        try:
            verdict = judge(lines)
        except QnsError as problem:
            screen.error(Problem.of(problem, source.name, line=lines.number or None))
            return 2
    ok = not any(verdict.broken[rule] for rule in rules)
    if screen.as_json:
        screen.json(_as_json(verdict, rules, ok))
    else:
        _show(verdict, rules, screen)
    return 0 if ok else 1


def _rule(name: str) -> Rule:
    """Returns the rule of a name. `no-gap`, `NO GAP` and `No gap` are the same."""
    for rule in Rule:
        if rule.casefold() == name.casefold().replace("-", " ").replace("_", " "):
            return rule
    raise NameNotKnown("rule", name, Rule)


class _Lines:
    """Iterates over the records of a file and keeps the number of the last line."""

    def __init__(self, source: Input, seen: Callable[[int], None]) -> None:
        self.number = 0
        self._source = source
        self._seen = seen

    def __iter__(self) -> Iterator[Record]:
        for first, lines in self._source.batches(MAX_LINE_BYTES, self._seen):
            for number, line in enumerate(lines, start=first):
                self.number = number
                if line is None:
                    raise too_long(MAX_LINE_BYTES)
                if line.strip():
                    yield read_record(decoded(line))


def _show(verdict: Verdict, rules: list[Rule], screen: Screen) -> None:
    screen.line((f"{'rule':<14}{'checks':>9}{'violations':>12}", "bold"))
    for rule in rules:
        broken = verdict.broken[rule]
        screen.line(
            f"{rule:<14}{verdict.checks[rule]:>9,}",
            (f"{broken:>12,}", "bold red" if broken else "green"),
        )
    screen.line()
    screen.line(_counted(verdict.counts))
    if not verdict.was_calm:
        screen.line("never calm: Liveness and Completeness were not judged, nor was Economy")
    for rule in rules:
        shown = [each for each in verdict.violations if each.rule is rule]
        for violation in shown:
            screen.line()
            screen.line((f"{rule}: ", "bold red"), visible(violation.explain()))
        if len(shown) < verdict.broken[rule]:
            screen.line()
            screen.line(f"{rule}: {verdict.broken[rule] - len(shown):,} more")


def _counted(counts: Counts) -> str:
    """Formats the counts. Events that are counted apart appear only if there are any."""
    numbers = [
        counted(counts.records, "record"),
        counted(counts.events, "event"),
        counted(counts.subscriptions, "subscription"),
        counted(counts.notifications, "notification"),
    ]
    apart = [
        f"{number:,} {what}"
        for number, what in (
            (counts.void, "void by a restore"),
            (counts.lost, "lost by a restore"),
            (counts.skipped, "skipped"),
            (counts.dropped, "dropped"),
            (counts.withheld, "withheld"),
            (counts.discarded, "dead letters dropped"),
            (counts.overflowed, "dropped from queues"),
            (counts.relayed, "relayed"),
            (counts.excused, "excused"),
        )
        if number
    ]
    return ", ".join(numbers) + (f"; apart: {', '.join(apart)}" if apart else "")


def _as_json(verdict: Verdict, rules: list[Rule], ok: bool) -> dict[str, object]:
    return {
        "ok": ok,
        "rules": {
            rule: {"checks": verdict.checks[rule], "violations": verdict.broken[rule]}
            for rule in rules
        },
        "violations": [
            {
                "rule": each.rule,
                "records": [number for number, _ in each.records],
                "explanation": each.explain(),
            }
            for each in verdict.violations
            if each.rule in rules
        ],
        "counts": asdict(verdict.counts),
        "calm": verdict.was_calm,
    }
