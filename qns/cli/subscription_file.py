"""Subscription file: subscriptions from a file with lines of `id<TAB>subscription`.

Blank lines are ignored, and so are lines that start with `#` and have no TAB. A file may also be
a list in XML. Every problem of the file is reported, not only the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from qns.cbr.subscription import Subscription
from qns.cli.file_kinds import Kind, kind_of
from qns.cli.inputs import Input, decoded, too_long
from qns.cli.problems import Problem
from qns.d2q.language import parse_subscription
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import (
    MAX_SUBSCRIPTION_BYTES,
    read_subscription,
    read_subscriptions,
)
from qns.errors import DocumentError, DuplicateId, QnsError, shorten

MAX_LINE_BYTES: Final = MAX_SUBSCRIPTION_BYTES

_XML = re.compile(r"\s*<(?:\?xml\s|(?:[\w.-]+:)?subscription\s+[\w:.-]+\s*=)")


def read_any_spelling(text: str, schema: Schema) -> Subscription:
    """Parses a subscription in the readable notation, the thesis notation or XML."""
    if _XML.match(text):
        return read_subscription(text.strip(), schema)
    return parse_subscription(text, schema)


@dataclass(slots=True)
class SubscriptionReader:
    """Reads a file of subscriptions and reports each problem as it is found."""

    schema: Schema
    report: Callable[[Problem], None]
    found: dict[str, Subscription] = field(default_factory=dict)
    problems: int = 0
    _lines: dict[str, int] = field(default_factory=dict)

    def read(self, source: Input, seen: Callable[[int], None] = lambda _: None) -> None:
        if kind_of(source) is Kind.SUBSCRIPTIONS_XML:
            self._read_list(source)
            return
        for first, lines in source.batches(MAX_LINE_BYTES, seen):
            for number, line in enumerate(lines, start=first):
                self._read_line(source.name, number, line)

    def _read_list(self, source: Input) -> None:
        data = source.read(MAX_SUBSCRIPTION_BYTES)

        def refuse(problem: QnsError) -> None:
            self._refuse(Problem.of(problem, source.name))

        try:
            self.found.update(read_subscriptions(data, self.schema, refuse=refuse))
        except QnsError as problem:
            refuse(problem)

    def _read_line(self, file: str, number: int, line: bytes | None) -> None:
        text, offset = "", 0
        try:
            if line is None:
                raise too_long(MAX_LINE_BYTES)
            text = line.decode("utf-8", "replace")
            text = decoded(line)
            id, tab, written = text.partition("\t")
            if not text.strip() or (text.startswith("#") and not tab):
                return
            self._check_id(id, tab)
            self._lines[id] = number
            offset = len(id) + 1
            self.found[id] = read_any_spelling(written, self.schema)
        except QnsError as problem:
            self._refuse(Problem.of(problem, file, line=number, text=text, offset=offset))

    def _check_id(self, id: str, tab: str) -> None:
        if not tab:
            raise DocumentError(
                "no TAB between an id and a subscription", remedy="write id<TAB>subscription"
            )
        if not id:
            raise DocumentError("no id before the TAB", remedy="write id<TAB>subscription")
        if id in self._lines:
            raise DuplicateId(
                f"the id {shorten(id)} is given twice, first on line {self._lines[id]}",
                remedy="choose another id",
            )

    def _refuse(self, problem: Problem) -> None:
        self.problems += 1
        self.report(problem)
