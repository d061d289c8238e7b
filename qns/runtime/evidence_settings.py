"""Evidence settings: the section [evidence] of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from qns.errors import QnsError, ValueRefused, show
from qns.evidence.timestamps import (
    MAX_AUTHORITY_BYTES,
    Authority,
    read_authority,
    require_library,
)
from qns.runtime.toml_tables import content_of, refuse_unknown, text_of

SECTION: Final = "evidence"
MOST_DAYS: Final = 36_525
EVERY_S: Final = 60.0
_KEYS: Final = ("keep_days", "timestamps", "timestamp_authority", "timestamp_every_s")
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class TimestampSettings:
    url: str
    """Where the authority answers requests (RFC 3161)."""
    authority: Authority
    every_s: float = EVERY_S
    """The pause between two timestamps; each is for all roots that have come since."""


@dataclass(frozen=True, slots=True)
class EvidenceSettings:
    keep_days: float
    timestamps: TimestampSettings | None = None

    @property
    def keep_s(self) -> float:
        return self.keep_days * _DAY_S


def read_settings(section: Mapping[str, Any] | None, folder: Path) -> EvidenceSettings | None:
    """Reads the section; raises QnsError for a wrong one."""
    if section is None:
        return None
    try:
        refuse_unknown(section, _KEYS, f"key of [{SECTION}]")
        keep_days = _number(section, "keep_days", 3_650, MOST_DAYS)
        return EvidenceSettings(keep_days, _timestamps(section, folder))
    except QnsError as error:
        raise error.at(SECTION) from None


def _timestamps(section: Mapping[str, Any], folder: Path) -> TimestampSettings | None:
    if not set(_KEYS[1:]) & section.keys():
        return None
    url = text_of(section, "timestamps", "https://tsa.example/tsr", required=True)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueRefused(
            f"{show(url)} is no URL of a timestamping authority",
            place="timestamps",
            remedy='write a line such as timestamps = "https://tsa.example/tsr"',
        )
    file = folder / text_of(section, "timestamp_authority", "tsa.pem", required=True)
    every_s = EVERY_S
    if "timestamp_every_s" in section:
        every_s = _number(section, "timestamp_every_s", EVERY_S, _DAY_S)
    require_library()
    try:
        authority = read_authority(content_of(file, MAX_AUTHORITY_BYTES, "certificate"))
    except QnsError as error:
        raise (error if error.place else error.at(str(file))).at("timestamp_authority") from None
    return TimestampSettings(url, authority, every_s)


def _number(section: Mapping[str, Any], key: str, example: float, most: float) -> float:
    value = section.get(key)
    remedy = f"write a line such as {key} = {example:g}; it is at most {most:,.0f}"
    if value is None:
        raise ValueRefused(f"{key} is missing", remedy=remedy)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and not isnan(value)
    if not is_number or not 0 < value <= most:
        raise ValueRefused(f"{show(value)} is not in range", place=key, remedy=remedy)
    return float(value)
