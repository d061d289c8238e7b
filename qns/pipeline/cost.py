"""Cost: CPU time and peak memory of the work on one part of a workload."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any, Final

_STATUS: Final = Path("/proc/self/status")
_RESET: Final = Path("/proc/self/clear_refs")


class Meter:
    """Measures this process from its creation on."""

    def __init__(self) -> None:
        with suppress(OSError):  # Linux only; elsewhere the peak is that of the whole process
            _RESET.write_text("5", encoding="ascii")
        self._started = process_time()

    def seconds(self) -> float:
        """Returns the CPU seconds so far."""
        return process_time() - self._started

    def lap(self) -> float:
        """Returns the CPU seconds since the creation or the lap before."""
        now = process_time()
        passed, self._started = now - self._started, now
        return passed

    def peak_bytes(self) -> int:
        """Returns the peak resident memory so far."""
        with suppress(OSError, ValueError, IndexError):
            text = _STATUS.read_text(encoding="ascii")
            return 1024 * int(text.partition("VmHWM:")[2].split()[0])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


def cost_row(columns: dict[str, Any], job: str, arrived: int, meter: Meter) -> dict[str, Any]:
    """A row of COST; `columns` describe the scenario and the organisation."""
    return {
        **columns,
        "job": job,
        "arrived": arrived,
        "peak_bytes": meter.peak_bytes(),
        "seconds": meter.seconds(),
    }
