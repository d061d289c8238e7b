"""`qns contains`: decides whether one subscription contains another (semantics §5)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cbr.domains import STRING
from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.cbr.witness import witness
from qns.cli.options import Commands, add_json_option, add_schema_option, new_command
from qns.cli.problems import Problem, visible
from qns.cli.screen import Screen
from qns.cli.subscription_file import read_any_spelling
from qns.d2q.description import spelled
from qns.d2q.event_json import write_event_json
from qns.d2q.lexical import write_value
from qns.d2q.schema import Schema
from qns.d2q.schema_files import load_schema
from qns.errors import QnsError

_DESCRIPTION = """
Prints yes if every event that matches B also matches A. Otherwise prints no, the reason and an
event that matches B and not A. The schema mapping is ignored.

A and B are subscriptions in any notation. Exit status: 0 for yes, 1 for no, 2 for an error.
"""
_EXAMPLES = (
    "qns contains --schema agencies 'Enterprise/Holder' \\\n"
    "               'Enterprise/Holder where Name.accuracy <= medium'",
    "qns contains --schema weather '<Report/Wind, Speed > 20, _>' '<Report/Wind, Speed > 10, _>'",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands,
        "contains",
        "decide whether one subscription contains another",
        _DESCRIPTION,
        _EXAMPLES,
    )
    add_schema_option(parser)
    parser.add_argument("a", metavar="A", help="the subscription that may contain B")
    parser.add_argument("b", metavar="B", help="the other subscription")
    add_json_option(parser, "the answer as one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    schema = load_schema(args.schema)
    a, b = _read("A", args.a, schema, screen), _read("B", args.b, schema, screen)
    if a is None or b is None:
        return 2
    found = witness(a, b)
    equivalent = found is None and b.contains(a)
    if found is None:
        reason = (
            "they are equivalent: the same events match both"
            if equivalent
            else "every event that matches B matches A"
        )
        if screen.as_json:
            screen.json({"contains": True, "equivalent": equivalent, "reason": reason})
        else:
            screen.line(("yes", "bold green"), f": {reason}")
        return 0
    if screen.as_json:
        event = write_event_json(found.event, schema)
        answer = {"contains": False, "equivalent": False, "reason": found.reason}
        screen.json({**answer, "attribute": found.attribute, "witness": event})
    else:
        screen.line(("no", "bold red"), f": {visible(found.reason)}")
        screen.line("an event that matches B and not A:")
        _show_event(found.event, schema, screen)
    return 1


def _read(name: str, text: str, schema: Schema, screen: Screen) -> Subscription | None:
    try:
        return read_any_spelling(text, schema)
    except QnsError as problem:
        screen.error(Problem.of(problem, name, text=text))
        return None


def _show_event(event: Event, schema: Schema, screen: Screen) -> None:
    screen.line("  ", (event.data_class, "cyan"), " from ", (visible(event.source), "cyan"))
    for name, key in event.values.items():
        domain = schema.attribute(event.data_class, name).domain
        shown = write_value(domain, key)
        if domain is STRING:
            shown = f'"{visible(shown)}"'
        if name in event.previous:
            shown += f", before that {write_value(domain, event.previous[name])}"
        attribute = spelled(schema, event.data_class, name)
        screen.line("    ", (attribute, "bold"), f" = {shown}")
