"""Cost: the row of the table COST that a job writes at each checkpoint."""

from __future__ import annotations

import resource
import sys
from typing import Any


def cost_row(columns: dict[str, Any], job: str, arrived: int, seconds: float) -> dict[str, Any]:
    """`columns` describe the scenario and the organisation; `seconds` have passed so far."""
    return {
        **columns,
        "job": job,
        "arrived": arrived,
        "peak_bytes": _peak_bytes(),
        "seconds": seconds,
    }


def _peak_bytes() -> int:
    """Returns the peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
