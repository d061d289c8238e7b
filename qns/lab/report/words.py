"""Words: phrases and number formats that several sections share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from qns.report.statistics import Estimate

INTERVALS: Final = "Shaded: 95 % confidence interval over seeds."
MEAN: Final = "mean ± half the 95 % interval over seeds"


def exactly(values: Iterable[tuple[float, float]]) -> tuple[tuple[float, Estimate], ...]:
    """Points of a formula, without an interval."""
    return tuple((float(x), Estimate(y, None, 1)) for x, y in values)


def number_text(value: Estimate, digits: int = 2) -> str:
    half = f" ± {value.half:,.{digits}f}" if value.half else ""
    return f"{value.mean:,.{digits}f}{half}".replace("-", "−")


def signed(value: float, digits: int = 1) -> str:
    return f"{value:+,.{digits}f}".replace("-", "−")


def signed_text(value: Estimate) -> str:
    half = f" ± {value.half:,.1f}" if value.half else ""
    return f"{signed(value.mean)} %{half}"


def capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
