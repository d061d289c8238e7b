"""File limit: how many connections the operating system allows this process."""

from __future__ import annotations

import sys
from typing import Final

if sys.platform != "win32":
    import resource

_OTHER_FILES: Final = 256
"""Open files besides connections: the store, the log, calls to other peers."""


def connections_within_limit(most: int) -> int:
    """Raises the limit of open files for `most` connections; returns how many it allows."""
    if sys.platform == "win32":
        return most
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return most
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(most, soft - _OTHER_FILES))
