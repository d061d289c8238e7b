"""`qns match`: prints which subscriptions each event matches (semantics §4)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Final

import orjson

from qns.cbr.event import Event
from qns.cbr.index import DictionaryIndex, MatchingIndex
from qns.cbr.subscription import Subscription
from qns.cli.event_file import event_batches
from qns.cli.inputs import STDIN, Input
from qns.cli.options import Commands, add_json_option, add_schema_option, new_command
from qns.cli.problems import Problem
from qns.cli.screen import Screen
from qns.cli.subscription_file import SubscriptionReader
from qns.d2q.schema_files import load_schema
from qns.errors import QnsError

FEW_SUBSCRIPTIONS: Final = 1_000
FEW_EVENTS: Final = 2_000

_DESCRIPTION = """
Prints for each event which subscriptions it matches: one JSON object per line,
{"event": id, "matches": [ids]}, in the order of the events. The schema mapping is ignored.

SUBS has one subscription per line, id<TAB>subscription, in any notation; blank lines and
lines that start with # and have no TAB are ignored. EVENTS has one JSON object per line:
{"id", "class", "source", "data": {…}, "quality": {"Name.accuracy": 0.3}, "previous": {…}}.
One of them may be - for standard input.

All subscriptions are checked first: if one is wrong, nothing is matched. A wrong event is
reported and skipped. Exit status: 0, or 2 if anything was wrong.
"""
_EXAMPLES = (
    "qns match --schema agencies --subscriptions examples/agencies/subscriptions.tsv \\\n"
    "            --events examples/agencies/events.jsonl",
    "qns match --schema weather --subscriptions examples/weather/subscriptions.tsv \\\n"
    "            --events - < examples/weather/events.jsonl",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands,
        "match",
        "print which subscriptions each event matches",
        _DESCRIPTION,
        _EXAMPLES,
    )
    add_schema_option(parser)
    parser.add_argument("--subscriptions", required=True, metavar="SUBS", help="a file, or -")
    parser.add_argument("--events", required=True, metavar="EVENTS", help="a file, or -")
    add_json_option(parser, "print errors as JSON too")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    if args.subscriptions == args.events == STDIN:
        raise QnsError(
            "subscriptions and events cannot both come from standard input",
            remedy="give one of them as a file",
        )
    schema = load_schema(args.schema)
    with Input(args.subscriptions) as subscriptions, Input(args.events) as events:
        wanted = SubscriptionReader(schema, screen.error)
        with screen.progress("reading subscriptions", subscriptions) as seen:
            wanted.read(subscriptions, seen)
        if wanted.problems:
            return 2
        matcher = _Matcher(wanted.found)
        wrong = 0

        def report(problem: Problem) -> None:
            nonlocal wrong
            wrong += 1
            screen.error(problem)

        with screen.progress("matching events", events, beside_output=True) as seen:
            for batch in event_batches(events, schema, report, seen):
                found = matcher.match_all(batch.events)
                screen.raw("".join(map(_as_line, batch.ids, found)))
    return 2 if wrong else 0


class _Matcher:
    """Chooses the index: the compiled one starts slowly, so small inputs use the plain one."""

    def __init__(self, subscriptions: dict[str, Subscription]) -> None:
        self._subscriptions = subscriptions
        self._is_short = len(subscriptions) <= FEW_SUBSCRIPTIONS
        self._index: DictionaryIndex[str] | MatchingIndex[str] = (
            DictionaryIndex(subscriptions) if self._is_short else MatchingIndex(subscriptions)
        )
        self._matched = 0

    def match_all(self, events: Sequence[Event]) -> list[list[str]]:
        self._matched += len(events)
        if self._is_short and self._matched > FEW_EVENTS:
            self._is_short = False
            self._index = MatchingIndex(self._subscriptions)
        return self._index.match_all(events)


def _as_line(id: str | int, found: list[str]) -> str:
    result = {"event": id, "matches": sorted(found)}
    return orjson.dumps(result, option=orjson.OPT_APPEND_NEWLINE).decode()
