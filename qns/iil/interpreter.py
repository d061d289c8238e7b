"""Interpreter: reads a user's subscription in any of its spellings (thesis 5.4.4)."""

from __future__ import annotations

import re

from qns.cbr.subscription import Subscription
from qns.d2q.language import parse_statement, parse_subscription
from qns.d2q.lexical import write_number
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import read_subscription
from qns.d2q.terms import Written

_XML = re.compile(r"\ufeff?\s*(<\?xml|<!--|<([\w.-]+:)?subscription\s[^<>]*\bxmlns)")


def interpret(text: str, schema: Schema) -> Subscription:
    """Returns the normal form. Raises QnsError with the problem and its place in the text."""
    if _XML.match(text):
        return read_subscription(text, schema)
    return parse_subscription(text, schema)


def without_labels(text: str, subscription: Subscription, schema: Schema) -> str:
    """Returns a text of the same meaning that a later change of labels does not affect.

    Each label is replaced by its number (semantics §1). XML becomes the readable spelling.
    """
    if _XML.match(text):
        return write_readable(subscription, schema)
    folded = text.casefold()
    if not any(label in folded for label in schema.labels):
        return text
    lines = text.split("\n")
    for value in reversed(_labels_in(text, schema)):
        line, start = value.mark.line - 1, (value.mark.column or 1) - 1
        quoted = 2 if lines[line][start] == "`" else 0
        number = write_number(schema.label(value.text))
        end = start + len(value.text) + quoted
        lines[line] = lines[line][:start] + number + lines[line][end:]
    return "\n".join(lines)


def _labels_in(text: str, schema: Schema) -> list[Written]:
    """Returns the labels of a valid subscription, in the order of the text."""
    statement = parse_statement(text)
    path = schema.data_class(statement.data_class)
    values = [
        value
        for term in statement.terms
        if schema.attribute(path, term.attribute).dimension is not None
        for value in (*term.values, *(each for part in term.members for each in part.values))
    ]
    return [
        each for each in values if each.form == "bare" and each.text.casefold() in schema.labels
    ]
