"""Subscriptions as text, in the two notations that language.py reads.

The normal form is printed, so labels have become numbers. Parsing the text again gives the same
subscription. `only` is omitted if there is a quality condition, because that makes the scope exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache

from qns.cbr.subscription import Subscription
from qns.d2q.description import describe
from qns.d2q.language import parser
from qns.d2q.schema import Schema
from qns.d2q.terms import SIGNS, Member, Operator, Statement, Term, Written

_THESIS = SIGNS | {Operator.DIFFERS: "≠", Operator.AT_MOST: "≤", Operator.AT_LEAST: "≥"}
_Signs = dict[Operator, str]


def write_readable(subscription: Subscription, schema: Schema) -> str:
    """Writes `Enterprise/Holder from INAIL, INPS where Name.accuracy <= 0.6`."""
    statement = describe(subscription, schema)
    text = _scope(statement, schema)
    if statement.sources is not None:
        text += f" from {_organisations(statement.sources)}"
    if statement.terms:
        text += f" where {_conditions(statement.terms, SIGNS)}"
    return text


def write_thesis(subscription: Subscription, schema: Schema) -> str:
    """Writes `⟨Enterprise/Holder : {INAIL, INPS}, ⊥, Name.accuracy ≤ 0.6⟩`."""
    statement = describe(subscription, schema)
    data, quality = _parts(statement, schema)
    text = _scope(statement, schema)
    if statement.sources is not None:
        text += f" : {{{_organisations(statement.sources)}}}"
    return f"⟨{text}, {_conditions(data, _THESIS)}, {_conditions(quality, _THESIS)}⟩"


def _parts(statement: Statement, schema: Schema) -> tuple[list[Term], list[Term]]:
    """Returns the data conditions and the quality conditions."""
    parts: tuple[list[Term], list[Term]] = [], []
    for term in statement.terms:
        attribute = schema.attribute(statement.data_class, term.attribute)
        parts[attribute.dimension is not None].append(term)
    return parts


def _scope(statement: Statement, schema: Schema) -> str:
    only = statement.only and not _parts(statement, schema)[1]
    return f"{'only ' if only else ''}{_name(statement.data_class)}"


def _organisations(names: Iterable[str]) -> str:
    return ", ".join(name if _is_bare(name) else _quoted(name) for name in names)


def _conditions(terms: Iterable[Term], signs: _Signs) -> str:
    return " and ".join(_condition(term, signs) for term in terms) or "⊥"


def _condition(term: Term, signs: _Signs) -> str:
    return " ".join(part for part in condition_parts(term, signs) if part)


def condition_parts(term: Term, signs: _Signs = SIGNS) -> tuple[str, str, str]:
    """Returns the subject, the operator and the values of a condition; `exists` has no values."""
    subject = _name(term.attribute) + (" was" if term.previous else "")
    values = [_value(value) for value in term.values]
    match term.operator:
        case Operator.EXISTS:
            return subject, "exists", ""
        case Operator.BETWEEN:
            return subject, "between", f"{values[0]} and {values[1]}"
        case Operator.IN:
            members = ", ".join(_member(member, signs) for member in term.members)
            return subject, "in", f"{{{members}}}"
    return subject, signs[term.operator], values[0]


def _member(member: Member, signs: _Signs) -> str:
    values = [_value(value) for value in member.values]
    if member.operator is Operator.EQUALS:
        return values[0]
    if member.operator is Operator.BETWEEN:
        return f"{values[0]} to {values[1]}"
    return f"{signs[member.operator]} {values[0]}"


def _value(written: Written) -> str:
    return _quoted(written.text) if written.form == "quoted" else written.text


def _name(name: str) -> str:
    """Returns the name, in backticks if it is a word of the language."""
    return name if _is_bare(name) else f"`{name}`"


def _is_bare(name: str) -> bool:
    return "`" not in name and _name_in_grammar().fullmatch(name) is not None


@cache
def _name_in_grammar() -> re.Pattern[str]:
    """Returns the grammar's pattern for a name, so that printing and parsing always agree."""
    return re.compile(parser().get_terminal("CLASS").pattern.to_regexp())


def _quoted(text: str) -> str:
    """Returns a JSON string in which only invisible characters are escaped."""
    if text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    seen = (json.dumps(c, ensure_ascii=not c.isprintable())[1:-1] for c in text)
    return f'"{"".join(seen)}"'
