"""`qns check`: checks subscriptions, events and documents against a schema."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from qns.cli.event_file import event_batches
from qns.cli.file_kinds import Kind, kind_of
from qns.cli.inputs import Input, Unreadable
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.problems import Problem
from qns.cli.screen import Screen
from qns.cli.subscription_file import SubscriptionReader
from qns.d2q.document_xml import read_document
from qns.d2q.dtd import read_dtd
from qns.d2q.event_xml import read_event
from qns.d2q.schema import Schema
from qns.d2q.schema_files import load_schema
from qns.d2q.schema_xml import MAX_SCHEMA_BYTES, read_schema
from qns.d2q.shipped import SHIPPED
from qns.d2q.subscription_xml import read_subscription
from qns.d2q.xml import parse_xml
from qns.errors import DocumentError, QnsError

_DESCRIPTION = """
Checks files against a schema and prints each error with its place and a remedy. The kind of
a file is recognised: lines of subscriptions (id<TAB>subscription), lines of events (JSON), a
D2Q DTD, or XML with a D2Q document, an event, one or more subscriptions or a schema. For an
XML file that is not a list only the first error is printed. Without files the schema itself
is checked.

Exit status: 0 without errors, 1 if errors were found, 2 if a file could not be read.
"""
_EXAMPLES = (
    "qns check agencies examples/agencies/subscriptions.tsv examples/agencies/events.jsonl",
    "qns check schemas/weather.dtd",
    "qns check --json weather examples/weather/events.jsonl",
)
_COUNTED = ("subscriptions", "events", "documents", "schemas")


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands,
        "check",
        "check subscriptions, events and documents against a schema",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument(
        "schema", metavar="SCHEMA", help=f"{' or '.join(SHIPPED)}, or a .dtd or .xml file"
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="the files; - is standard input")
    add_json_option(parser, "one JSON object: ok, checked, errors")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    checker = Checker((lambda _: None) if screen.as_json else screen.finding)
    schema = checker.load_schema(args.schema)
    unreadable = []
    if schema is not None:
        if not args.files:
            checker.count("schemas", 1)
        for name in args.files:
            try:
                with Input(name) as source:
                    checker.check_file(source, schema)
            except Unreadable as problem:
                unreadable.append(Problem.of(problem, problem.place))
                if not screen.as_json:
                    screen.error(unreadable[-1])
    checker.errors += unreadable
    ok = not checker.errors
    if screen.as_json:
        errors = [problem.as_json() for problem in checker.errors]
        screen.json({"ok": ok, "checked": checker.checked(), "errors": errors})
    else:
        _summarise(checker, screen)
    if unreadable:
        return 2
    return 0 if ok else 1


@dataclass(slots=True)
class Checker:
    """Counts the valid items and keeps the problems."""

    show: Callable[[Problem], None]
    errors: list[Problem] = field(default_factory=list)
    _fine: Counter[str] = field(default_factory=Counter)

    def checked(self) -> dict[str, int]:
        return {what: self._fine[what] for what in _COUNTED}

    def count(self, what: str, number: int) -> None:
        self._fine[what] += number

    def report(self, problem: Problem) -> None:
        self.errors.append(problem)
        self.show(problem)

    def load_schema(self, name: str) -> Schema | None:
        """Loads the schema. An error inside its file is reported like one of any other file."""
        try:
            return load_schema(name)
        except QnsError as problem:
            if problem.line is None:  # the schema is unknown or cannot be read
                raise
            self.report(Problem.of(problem, name))
        return None

    def check_file(self, source: Input, schema: Schema) -> None:
        kind = kind_of(source)
        if kind in (Kind.SUBSCRIPTIONS, Kind.SUBSCRIPTIONS_XML):
            reader = SubscriptionReader(schema, self.report)
            reader.read(source)
            self.count("subscriptions", len(reader.found))
        elif kind is Kind.EVENTS:
            for batch in event_batches(source, schema, self.report, unique=True):
                self.count("events", len(batch.events))
        else:
            what, read = _READERS[kind]
            data = source.read(MAX_SCHEMA_BYTES)
            try:
                read(data, schema)
                self.count(what, 1)
            except QnsError as problem:
                self.report(Problem.of(problem, source.name))


def _summarise(checker: Checker, screen: Screen) -> None:
    counts = [f"{number} {what}" for what, number in checker.checked().items() if number]
    fine = ", ".join(_singular(count) for count in counts) or "nothing"
    if not checker.errors:
        screen.line(("ok", "bold green"), f": {fine}")
        return
    number = len(checker.errors)
    screen.line((_singular(f"{number} errors"), "bold red"), f"; fine: {fine}")


def _singular(count: str) -> str:
    return count.removesuffix("s") if count.startswith("1 ") else count


def _other_xml(data: bytes, _: Schema) -> Any:
    parse_xml(data, max_bytes=MAX_SCHEMA_BYTES)
    raise DocumentError(
        "the root element is unknown",
        remedy="use document, event, subscription, subscriptions or schema",
    )


_READERS: dict[Kind, tuple[str, Callable[[bytes, Schema], Any]]] = {
    Kind.SUBSCRIPTION_XML: ("subscriptions", read_subscription),
    Kind.EVENT_XML: ("events", read_event),
    Kind.DOCUMENT_XML: ("documents", read_document),
    Kind.SCHEMA_XML: ("schemas", lambda data, _: read_schema(data)),
    Kind.DTD: ("schemas", lambda data, _: read_dtd(data)),
    Kind.OTHER_XML: ("documents", _other_xml),
}
