"""Findings: what a check found out, with a remedy."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Verdict(Enum):
    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


class Finding(NamedTuple):
    verdict: Verdict
    what: str
    words: str
    remedy: str = ""
