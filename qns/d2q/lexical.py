"""Lexical forms: how a value of each domain is written, in XML and in the language.

The forms are those of XML Schema's types. A string is written as it is.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from qns.cbr.domains import BOOLEAN, DATE, DATETIME, DECIMAL, INTEGER, QUALITY, STRING, Domain, Key
from qns.errors import ValueRefused, shorten, show

INTEGER_FORM = r"[+-]?[0-9]+"
DECIMAL_FORM = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
DATE_FORM = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
DATETIME_FORM = (
    DATE_FORM + r"T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,20})?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)

_FORMS = {
    INTEGER: (re.compile(INTEGER_FORM + r"\Z"), "an integer such as 42"),
    DECIMAL: (re.compile(DECIMAL_FORM + r"\Z"), "a decimal such as 12.5"),
    QUALITY: (re.compile(DECIMAL_FORM + r"\Z"), "a number from 0 to 1"),
    BOOLEAN: (re.compile(r"(?:true|false)\Z"), "true or false"),
    DATE: (re.compile(DATE_FORM + r"\Z"), "a date such as 2024-01-31"),
    DATETIME: (re.compile(DATETIME_FORM + r"\Z"), "a dateTime such as 2024-01-31T12:00:00Z"),
}
_MAX_DIGITS = 400
_MAX_PLAIN = 24
WHITE_SPACE: Final = " \t\r\n"


def read_value(domain: Domain, text: str) -> Key:
    """Returns the key of the value in `text`. Raises ValueRefused if it is not of the domain."""
    if domain is STRING:
        return STRING.key(text)
    form, wanted = _FORMS[domain]
    if len(text) > _MAX_DIGITS or not form.match(text):
        raise ValueRefused(f"{shorten(text)} is not {wanted}", remedy=f"give {wanted}")
    if domain is INTEGER:
        return INTEGER.key(int(text))
    if domain is DECIMAL:
        return DECIMAL.key(Decimal(text))
    if domain is QUALITY:
        return QUALITY.key(float(text))
    if domain is BOOLEAN:
        return BOOLEAN.key(text == "true")
    try:
        if domain is DATE:
            return DATE.key(date.fromisoformat(text))
        return DATETIME.key(_read_datetime(text))
    except ValueError as problem:
        raise ValueRefused(f"{shorten(text)} is not {wanted}: {problem}") from None


def write_value(domain: Domain, key: Key) -> str:
    """Returns the shortest form that reads back to the same key."""
    value = domain.value(key)
    if domain is BOOLEAN:
        return "true" if value else "false"
    if isinstance(value, float):
        return write_number(value)
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def write_number(number: float) -> str:
    """Writes a double without `.0`, and with an exponent only if it is long without one."""
    exact = Decimal(repr(number)).normalize()
    plain = f"{exact:f}"
    return plain if len(plain) <= _MAX_PLAIN else f"{exact:e}".replace("e+", "e")


def key_text(domain: Domain, key: Key) -> str:
    """Returns the text of a key. Raises ValueRefused if the domain has no such key."""
    if domain is STRING:
        STRING.key(key)
    elif type(key) is not int or not domain.lo <= key <= domain.hi:
        raise ValueRefused(f"{show(key)} is no key of the type {domain.name}")
    return write_value(domain, key)


def value_key(domain: Domain, text: str) -> Key:
    """Returns the key of a text in XML. White space is significant only in strings."""
    return read_value(domain, text if domain is STRING else text.strip(WHITE_SPACE))


def checked_name(kind: str, text: str) -> str:
    """Returns an identifier or a name outside the schema if it is a valid text and not empty."""
    if not text:
        raise ValueRefused(f"{kind} is empty", remedy=f"give {kind}")
    STRING.key(text)
    return text


def checked_organisation(text: str) -> str:
    """Returns the name of an organisation if it has no blanks around it."""
    if text != text.strip():
        raise ValueRefused(
            f"{shorten(text)} is not an organisation's name", remedy="remove the blanks around it"
        )
    return checked_name("an organisation's name", text)


def _read_datetime(text: str) -> datetime:
    date_time, dot, rest = text.partition(".")
    if not dot:
        return datetime.fromisoformat(text)
    digits = rest.rstrip("Z").partition("+")[0].partition("-")[0]
    zone = rest[len(digits) :]
    exact = digits.rstrip("0")
    if len(exact) > 6:
        raise ValueError("finer than a microsecond")
    return datetime.fromisoformat(f"{date_time}.{exact.ljust(6, '0')}{zone}")
