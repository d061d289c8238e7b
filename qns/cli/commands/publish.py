"""`qns publish`: publishes events at the peer of their organisation."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from qns.cli.event_file import excerpt, json_fields
from qns.cli.file_kinds import Kind, kind_of
from qns.cli.inputs import Input
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_connection import add_peer_options, client_of
from qns.cli.problems import Problem, visible
from qns.cli.screen import Screen
from qns.cli.wording import counted
from qns.client import Client, PeerUnreachable
from qns.client.delivered import fields_of
from qns.d2q.event_json import MAX_LINE_BYTES
from qns.d2q.xml import MAX_BYTES
from qns.errors import Busy, QnsError

_PATIENCE_S = 30.0
_DESCRIPTION = """
Publishes events at the peer of the organisation that is their source, in the order of the
file. EVENTS has one JSON object per line, as for `qns match`:
{"id", "class", "source", "data": {…}, "quality": {"Name.accuracy": 0.3}, "previous": {…}},
optionally with "published" (a dateTime) and "available" (seconds, or "INF"). Or it is one event
in XML. - is standard input; then events are published as they arrive.

No schema is needed, because the peer has it. An event that is wrong or that the peer rejects
is reported with its line, and the other events are published. If the peer does not answer any
more, the place is reported at which publishing stopped. Publishing an event again changes
nothing as long as the peer remembers it (its last 100,000 events), so the same command can be
repeated. Exit status: 0, or 2 if any event was not published.
"""
_EXAMPLES = (
    "qns publish examples/agencies/events.jsonl --peer http://127.0.0.1:8703/",
    "qns publish --json - < examples/agencies/events.jsonl",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(commands, "publish", "publish events at a peer", _DESCRIPTION, _EXAMPLES)
    parser.add_argument("events", metavar="EVENTS", help="a file of JSON lines or XML, or -")
    add_peer_options(parser)
    add_json_option(parser, "one JSON object per event: event, sentTo, again; errors too")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    with Input(args.events) as source, client_of(args) as client:
        publisher = _Publisher(client, screen, source.name)
        with screen.progress("publishing", source, beside_output=args.as_json) as seen:
            for entry in _entries(source):
                if not publisher.publish(entry):
                    break
                seen(entry.size)
    if not screen.as_json:
        screen.line(publisher.summary())
    return 2 if publisher.refused or publisher.is_stopped else 0


_XML: Final = frozenset(kind for kind in Kind if kind.name.endswith("XML"))
"""A file of any XML kind is read as an event, so that the error says what is wrong with it."""


class _Entry(NamedTuple):
    """One event of the file: a line, or a whole XML file."""

    line: int | None
    text: bytes | None
    size: int
    is_xml: bool = False

    def fields(self) -> Any:
        if self.is_xml and self.text is not None:
            return fields_of(self.text)
        return json_fields(self.text)


def _entries(source: Input) -> Iterator[_Entry]:
    # A pipe always has lines: to recognise its kind would wait for more than one event.
    if source.size_bytes is not None and kind_of(source) in _XML:
        data = source.read(MAX_BYTES)
        yield _Entry(None, data, len(data), is_xml=True)
        return
    for first, lines in source.batches(MAX_LINE_BYTES):
        for number, line in enumerate(lines, start=first):
            if line is None or line.strip():
                yield _Entry(number, line, 0 if line is None else len(line) + 1)


@dataclass(slots=True)
class _Publisher:
    """Publishes events and counts the results."""

    client: Client
    screen: Screen
    file: str
    published: int = 0
    again: int = 0
    refused: int = 0
    is_stopped: bool = False
    sent_to: Counter[str] = field(default_factory=Counter)

    def publish(self, entry: _Entry) -> bool:
        """Publishes one event. Returns False if the peer does not answer any more."""
        try:
            answer = self.client.publish(entry.fields())
        except (PeerUnreachable, Busy) as problem:
            self._stop(entry, problem)
            return False
        except QnsError as problem:
            self.refused += 1
            text = "" if entry.is_xml else excerpt(entry.text)
            self.screen.error(Problem.of(problem, self.file, line=entry.line, text=text))
            return True
        self.client.patience_s = _PATIENCE_S  # it has answered, so a restart is waited for
        self.published += 1
        self.again += answer.again
        self.sent_to.update(answer.sent_to)
        if self.screen.as_json:
            sent = list(answer.sent_to)
            self.screen.json({"event": answer.id, "sentTo": sent, "again": answer.again})
        return True

    def summary(self) -> str:
        parts = [f"published {counted(self.published, 'event')}"]
        if self.again:
            parts.append(f"{self.again:,} of them had been published before")
        if self.refused:
            parts.append(f"{self.refused:,} refused")
        if self.sent_to:
            counts = (f"{name} {count:,}" for name, count in sorted(self.sent_to.items()))
            parts.append(f"sent to {visible(', '.join(counts))}")
        return "; ".join(parts)

    def _stop(self, entry: _Entry, problem: QnsError) -> None:
        self.is_stopped = True
        if self.published or self.refused:
            problem.problem = f"{problem.problem}; this line and what follows is not published"
            problem.remedy = f"{problem.remedy}, then give the same command again"
            self.screen.error(Problem.of(problem, self.file, line=entry.line))
        else:
            self.screen.error(Problem.of(problem))
