"""Describes the machine and the versions of a measurement; nothing in it names the owner."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = (
    "qns",
    "numpy",
    "numba",
    "orjson",
    "rtree",
    "rule-engine",
    "duckdb",
    "polars",
)


def describe() -> dict[str, str]:
    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "CPU": cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "load at the start": load(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    for library in LIBRARIES:
        try:
            facts[library] = version(library)
        except PackageNotFoundError:
            facts[library] = "not installed"
    return facts


def cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def memory() -> str:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{total / 2**30:.0f} GiB"


def resident_bytes() -> int | None:
    """Returns the resident memory of this process, or None if the system does not provide it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
