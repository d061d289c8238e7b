"""Domains: the values that an attribute can take. Each value is represented by one **key**.

A key is a string for strings and a whole number for everything else. Keys are ordered as the values
are, and neighbouring keys are neighbouring values. So every ordered domain is a range of integers,
`> 3` is `>= 4` in each of them, every interval is closed, and one implementation of sets
(`intervals.py`) decides containment exactly in each domain (semantics §1, §5).

    integer    the number itself, within ±2^53
    decimal    its place among all numbers of at most 15 significant digits
    boolean    0, 1
    date       its proleptic Gregorian day
    dateTime   microseconds since 1970 in UTC
    quality    multiples of 10^-15 from 0 to 1, so that differences of two values are exact
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Final

from qns.errors import LimitExceeded, ValueRefused, show

Key = int | str
Value = str | int | float | bool | date | datetime

MAX_STRING_LENGTH: Final = 65_536
QUALITY_ONE: Final = 10**15

_INTEGER_BOUND = 2**53
_COEFFICIENT_FIRST = 10**14  # smallest coefficient of 15 digits
_PER_EXPONENT = 9 * 10**14  # how many coefficients of 15 digits there are
_EXPONENT_BOUND = 290  # of the leading digit's exponent; every such decimal is a normal double
_SMALLEST, _TOO_LARGE = 1e-290, 1e291
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Domain:
    """A named set of values. `lo` and `hi` bound the keys of an ordered domain."""

    name: str
    key: Callable[[object], Key]
    value: Callable[[Key], Value]
    lo: int = 0
    hi: int = -1

    @property
    def ordered(self) -> bool:
        return self.lo <= self.hi

    def __repr__(self) -> str:
        return f"<{self.name}>"


@lru_cache(maxsize=1 << 16)  # measured values repeat, and this key is the slowest to compute
def decimal_key(value: float) -> int:
    """Returns the place of a double among the numbers of at most 15 significant digits.

    Raises ValueError for any other double. Each such number is exactly one double, so the inverse
    loses nothing.
    """
    if value == 0:
        return 0
    text = f"{value:.14e}"
    if float(text) != value:
        raise ValueError("more than 15 significant digits")
    mantissa, _, exponent_text = text.lstrip("-").partition("e")
    exponent = int(exponent_text)
    if abs(exponent) > _EXPONENT_BOUND:
        raise ValueError("magnitude out of range")
    coefficient = int(mantissa[0] + mantissa[2:])
    key = (exponent + _EXPONENT_BOUND) * _PER_EXPONENT + coefficient - _COEFFICIENT_FIRST + 1
    return key if value > 0 else -key


def decimal_value(key: int) -> float:
    """Returns the double at this place. It is the inverse of `decimal_key`."""
    if key == 0:
        return 0.0
    exponent, offset = divmod(abs(key) - 1, _PER_EXPONENT)
    coefficient = offset + _COEFFICIENT_FIRST
    magnitude = float(f"{coefficient}e{exponent - _EXPONENT_BOUND - 14}")
    return magnitude if key > 0 else -magnitude


def _string_key(value: object) -> str:
    if type(value) is not str:
        raise _wrong_type(value, "a string")
    if len(value) > MAX_STRING_LENGTH:
        raise LimitExceeded(
            f"a string of {len(value):,} characters", remedy=f"at most {MAX_STRING_LENGTH:,}"
        )
    if not value.isprintable() and (bad := _unsendable(value)):
        raise ValueRefused(
            f"character U+{ord(bad):04X} in a string", remedy="XML cannot carry it: remove it"
        )
    return value


def _integer_key(value: object) -> int:
    if type(value) is not int:
        raise _wrong_type(value, "an integer")
    if not -_INTEGER_BOUND <= value <= _INTEGER_BOUND:
        raise ValueRefused("integer out of range", remedy="integers lie within ±2^53")
    return value


def _decimal_key(value: object) -> int:
    if type(value) is float:
        try:
            return decimal_key(value)
        except ValueError:
            pass  # the checks below find out what is wrong
    number = _number(value, "a decimal")
    if value and not _SMALLEST <= abs(number) < _TOO_LARGE:
        raise ValueRefused(
            f"decimal {show(value)} is out of range",
            remedy="give 0, or a magnitude from 1e-290 to below 1e291",
        )
    try:
        return decimal_key(number)
    except ValueError:
        raise _too_many_digits(value) from None


def _quality_key(value: object) -> int:
    if type(value) is float and 0.0 <= value <= 1.0:
        return int(value * QUALITY_ONE + 0.5)
    number = _number(value, "a quality value")
    if not 0.0 <= number <= 1.0:
        raise ValueRefused(
            f"quality value {show(value)} is outside [0, 1]", remedy="give a number from 0 to 1"
        )
    return int(number * QUALITY_ONE + 0.5)


def _boolean_key(value: object) -> int:
    if type(value) is not bool:
        raise _wrong_type(value, "true or false")
    return int(value)


def _date_key(value: object) -> int:
    if type(value) is not date:
        raise _wrong_type(value, "a date such as 2024-01-31")
    return value.toordinal()


def _datetime_key(value: object) -> int:
    if type(value) is not datetime:
        raise _wrong_type(value, "a dateTime such as 2024-01-31T12:00:00Z")
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueRefused(
            f"dateTime {value.isoformat()} has no zone", remedy="end it with Z or an offset"
        )
    key = (value - _EPOCH) // _MICROSECOND
    if not DATETIME.lo <= key <= DATETIME.hi:
        raise ValueRefused(f"dateTime {value.isoformat()} leaves the years 1 … 9999 in UTC")
    return key


def _number(value: object, wanted: str) -> float:
    if type(value) is float:
        number = value
    elif type(value) is int or type(value) is Decimal:
        try:
            number = float(value)
        except (OverflowError, ValueError):  # too large, or a signalling NaN
            number = math.inf
    else:
        raise _wrong_type(value, wanted)
    if not math.isfinite(number):
        raise ValueRefused(f"{show(value)} is too large, or no number", remedy=f"give {wanted}")
    if type(value) is int and number != value:
        raise ValueRefused(f"number {show(value)} is not exact", remedy="at most 15 digits")
    if type(value) is Decimal and _significant_digits(value) > 15:
        raise _too_many_digits(value)
    return number


def _significant_digits(number: Decimal) -> int:
    return len("".join(map(str, number.as_tuple().digits)).strip("0"))


def _too_many_digits(value: object) -> ValueRefused:
    return ValueRefused(
        f"decimal {show(value)} has more than 15 significant digits",
        remedy="decimals have at most 15 significant digits",
    )


def _wrong_type(value: object, wanted: str) -> ValueRefused:
    return ValueRefused(f"{show(value)} is not {wanted}", remedy=f"give {wanted}")


def _unsendable(text: str) -> str:
    """Returns the first character that XML 1.0 cannot carry, or an empty string."""
    for character in text:
        point = ord(character)
        if point < 0x20:
            if character not in "\t\n\r":
                return character
        elif 0xD800 <= point <= 0xDFFF or point in (0xFFFE, 0xFFFF):
            return character
    return ""


def _int(key: Key) -> int:
    assert isinstance(key, int)
    return key


STRING = Domain("string", _string_key, lambda key: key)
INTEGER = Domain("integer", _integer_key, lambda key: key, -_INTEGER_BOUND, _INTEGER_BOUND)
DECIMAL = Domain(
    "decimal",
    _decimal_key,
    lambda key: decimal_value(_int(key)),
    -(2 * _EXPONENT_BOUND + 1) * _PER_EXPONENT,
    (2 * _EXPONENT_BOUND + 1) * _PER_EXPONENT,
)
BOOLEAN = Domain("boolean", _boolean_key, lambda key: bool(key), 0, 1)
DATE = Domain(
    "date",
    _date_key,
    lambda key: date.fromordinal(_int(key)),
    date.min.toordinal(),
    date.max.toordinal(),
)
DATETIME = Domain(
    "dateTime",
    _datetime_key,
    lambda key: _EPOCH + timedelta(microseconds=_int(key)),
    (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND,
    (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND,
)
QUALITY = Domain("quality", _quality_key, lambda key: _int(key) / QUALITY_ONE, 0, QUALITY_ONE)

DATA_DOMAINS: Final = {
    domain.name: domain for domain in (STRING, INTEGER, DECIMAL, BOOLEAN, DATE, DATETIME)
}
