"""The subscription language: parses the thesis notation and the readable one into a statement.

    <Enterprise/Holder : {INPS, INAIL}, FiscalCode = "…", Name.accuracy <= medium>
    Enterprise/Holder from INPS, INAIL where FiscalCode = "…" and Name.accuracy <= medium

The grammar is in grammar.lark. A text that does not parse raises a LanguageError, which points at
the column and says, in the words of docs/language.md, what was found and what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Final

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput

from qns.cbr.subscription import Subscription
from qns.d2q.normal_form import normal_form
from qns.d2q.schema import Schema
from qns.d2q.terms import (
    MAX_TERMS,
    MAX_TEXT_LENGTH,
    Member,
    Operator,
    Position,
    Statement,
    Term,
    Written,
)
from qns.errors import LanguageError, LimitExceeded, near_misses, shorten

COMPARISONS: Final = {
    "=": Operator.EQUALS,
    "≠": Operator.DIFFERS,
    "!=": Operator.DIFFERS,
    "<>": Operator.DIFFERS,
    "<": Operator.BELOW,
    "≤": Operator.AT_MOST,
    "<=": Operator.AT_MOST,
    ">": Operator.ABOVE,
    "≥": Operator.AT_LEAST,
    ">=": Operator.AT_LEAST,
}

_CLOSING_QUOTES = {'"': '"', "'": "'", "“": "”"}
_XML = re.compile(r"[\s\ufeff]*(<\?xml|<subscription\s+[\w:.-]+\s*=)")
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))"
)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"} | {c: c for c in "\"'“”\\/"}


def parse_subscription(text: str, schema: Schema) -> Subscription:
    """Returns the subscription of a text in a schema. Raises QnsError if the text is not valid."""
    return normal_form(parse_statement(text), schema, text)


def parse_statement(text: str) -> Statement:
    """Returns the statement of a text in either notation."""
    if len(text) > MAX_TEXT_LENGTH:
        raise LimitExceeded(
            f"a subscription of {len(text):,} characters", remedy=f"at most {MAX_TEXT_LENGTH:,}"
        )
    if xml := _XML.match(text):
        raise _error_at(
            xml.start(1),
            text,
            "this is the XML spelling of a subscription",
            "read it as XML, or write: Class from Organisation where condition",
        )
    try:
        statement = parser().parse(text)
    except UnexpectedInput as problem:
        raise _language_error(problem, text) from None
    assert isinstance(statement, Statement)
    return statement


@cache
def parser() -> Lark:
    """Returns the parser. It is made at the first use, because that takes about 50 ms."""
    return Lark.open("grammar.lark", rel_to=__file__, parser="lalr", transformer=_Reader())


# -- reading --------------------------------------------------------------------------------

_Subject = tuple[Token, bool]
_Item = Token | Term | Member
_PHRASES = {
    "STARTS": Operator.STARTS_WITH,
    "ENDS": Operator.ENDS_WITH,
    "CONTAINS": Operator.CONTAINS,
    "FALLS": Operator.FALLS_BELOW,
    "RISES": Operator.RISES_ABOVE,
    "CHANGES": Operator.CHANGES_BY,
}


@v_args(inline=True)
class _Reader(Transformer[Token, Statement]):
    """Has one method for each rule of the grammar. lark calls it with the results of the parts."""

    def readable(
        self, only: Token | None, name: Token, sources: list[Token] | None, terms: list[Term] | None
    ) -> Statement:
        return _statement(only, name, sources, terms or ())

    def thesis(
        self,
        only: Token | None,
        name: Token,
        sources: list[Token] | None,
        data: list[Term] | None,
        quality: list[Term] | None,
    ) -> Statement:
        terms = [replace(term, part="data") for term in data or ()]
        terms += [replace(term, part="quality") for term in quality or ()]
        return _statement(only, name, sources, terms)

    def part(self, terms: list[Term] | Token | None = None) -> list[Term]:
        return terms if isinstance(terms, list) else []

    def first(self, item: _Item) -> list[_Item]:
        return [item]

    def another(self, items: list[_Item], item: _Item) -> list[_Item]:
        if len(items) == MAX_TERMS:
            mark = _mark(item)
            raise LimitExceeded(
                f"a list of more than {MAX_TERMS:,} elements", remedy="split the subscription"
            ).at_mark(mark.line, mark.column)
        items.append(item)
        return items

    def now(self, name: Token) -> _Subject:
        return name, False

    def before(self, name: Token) -> _Subject:
        return name, True

    def compared(self, subject: _Subject, sign: Token, value: Token) -> Term:
        return _term(subject, COMPARISONS[sign.value], (_written(value),))

    def between(self, subject: _Subject, low: Token, high: Token) -> Term:
        return _term(subject, Operator.BETWEEN, (_written(low), _written(high)))

    def listed(self, subject: _Subject, members: list[Member]) -> Term:
        return _term(subject, Operator.IN, members=tuple(members))

    def exists(self, subject: _Subject) -> Term:
        return _term(subject, Operator.EXISTS)

    def phrase(self, word: Token) -> Operator:
        return _PHRASES[word.type]

    def phrased(self, name: Token, operator: Operator, value: Token) -> Term:
        return _term((name, False), operator, (_written(value),))

    def one(self, value: Token) -> Member:
        return Member(Operator.EQUALS, (_written(value),))

    def range(self, low: Token, high: Token) -> Member:
        return Member(Operator.BETWEEN, (_written(low), _written(high)))

    def bounded(self, sign: Token, value: Token) -> Member:
        return Member(COMPARISONS[sign.value], (_written(value),))


def _statement(
    only: Token | None, name: Token, sources: list[Token] | None, terms: Iterable[Term]
) -> Statement:
    return Statement(
        _name(name),
        only is not None,
        None if sources is None else tuple(_written(source).text for source in sources),
        tuple(terms),
        _mark(name),
        tuple(_mark(source) for source in sources or ()),
    )


def _term(
    subject: _Subject,
    operator: Operator,
    values: tuple[Written, ...] = (),
    members: tuple[Member, ...] = (),
) -> Term:
    name, previous = subject
    return Term(_name(name), operator, values, members, previous, mark=_mark(name))


def _written(token: Token) -> Written:
    if token[0] in _CLOSING_QUOTES:
        return Written(_unquoted(token), "quoted", _mark(token))
    return Written(_name(token), "bare", _mark(token))


def _name(token: Token) -> str:
    name: str = token.value
    return name.replace("`", "")


def _mark(item: _Item) -> Position:
    if isinstance(item, Token):
        return Position(item.line or 1, item.column)
    return item.mark if isinstance(item, Term) else item.values[0].mark


def _unquoted(token: Token) -> str:
    """Returns the text between the quotes, with the escapes of JSON resolved."""

    def character(escape: re.Match[str]) -> str:
        high, low, code, letter = escape.groups()
        if high:
            return chr(0x10000 + (int(high, 16) - 0xD800 << 10) + int(low, 16) - 0xDC00)
        if code:
            return chr(int(code, 16))
        if letter not in _ESCAPED:
            raise LanguageError(
                f"unknown escape {shorten(escape[0])}",
                line=token.line or 1,
                column=(token.column or 1) + 1 + escape.start(),
                remedy=r"a backslash is written \\; the others are \" \n \r \t \b \f \/ \u1234",
            )
        return _ESCAPED[letter]

    inside: str = token.value[1:-1]
    return _ESCAPE.sub(character, inside) if "\\" in inside else inside


# -- what does not parse --------------------------------------------------------------------

_PARTICLES = ("from", "where", "and", "to", "with", "below", "above", "by")
_WORDS = (*_PARTICLES, "only", "between", "in", "exists", "was")
_EXPECTED = {
    "CLASS": "a class",
    "ORGANISATION": "an organisation",
    "PROPERTY": "a property",
    "BOTTOM": "⊥",
    "VALUE": "a value",
    "COMPARISON": "an operator",
    **{f"_{word.upper()}": f"'{word}'" for word in _PARTICLES},
    "_COLON": "':'",
    "_LBRACE": "'{'",
    "_COMMA": "','",
    "_RBRACE": "'}'",
    "_MORE": "'>'",
    "_RIGHT_ANGLE": "'⟩'",
    "_RIGHT_CORNER": "'〉'",
    "$END": "the end",
}
"""Maps a terminal to its name in errors. Any other is expected only together with one of these."""

_HINTS = {
    "or": "conditions are joined by 'and'; make one subscription for each alternative",
    "not": "use the opposite operator, such as !=",
    "(": "there are no parentheses: sets stand in {…}, conditions are joined by 'and'",
    "&": "write and",
    "!": "write !=",
    "`": "a name in backticks has letters, digits, _ and -, then the second backtick",
    "==": "write a single =",
    "=<": "write <=",
    "=>": "write >=",
    "{}": "list at least one",
}


def _language_error(problem: UnexpectedInput, text: str) -> LanguageError:
    accepted = problem.interactive_parser.accepts()  # type: ignore[no-untyped-call]
    token = getattr(problem, "token", None)
    if token is None:
        position = problem.pos_in_stream or 0
        found = text[position]
    elif token.type == "$END":
        position, found = len(text.rstrip()), ""
    else:
        position, found = token.start_pos, token.value
    if token is None and found in _CLOSING_QUOTES:
        return _error_at(
            position,
            text,
            f"a string without its closing {_CLOSING_QUOTES[found]}",
            r"close it on the same line; a line break is written \n",
        )
    *others, last = (words for terminal, words in _EXPECTED.items() if terminal in accepted)
    wanted = f"{', '.join(others)} or {last}" if others else last
    return _error_at(
        position,
        text,
        f"expected {wanted}, found {shorten(found) if found else 'the end'}",
        _remedy(found, text[:position].rstrip()[-1:], accepted),
    )


def _remedy(found: str, before: str, accepted: set[str]) -> str:
    """Returns a remedy for a common mistake, or a similar word, or nothing."""
    if not found:
        return ""
    if hint := _HINTS.get(found.lower()) or _HINTS.get(before + found):
        return hint
    if found == "," and accepted <= {"_AND", "_MORE", "_RIGHT_ANGLE", "_RIGHT_CORNER"}:
        return "three parts at most: <class, data conditions, quality conditions>"
    words = {word: word for word in _WORDS if accepted & {word.upper(), f"_{word.upper()}"}}
    for terminal in accepted & _PHRASES.keys():
        words[terminal.lower()] = _PHRASES[terminal].name.lower().replace("_", " ")
    near = [words[word] for word in near_misses(found, words)]
    return f"did you mean {' or '.join(near)}?" if near else ""


def _error_at(position: int, text: str, problem: str, remedy: str) -> LanguageError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return LanguageError(problem, line=line, column=column, remedy=remedy)
