"""Running: finds the peer that runs on a store, wherever it listens."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from qns.errors import QnsError
from qns.runtime.admin.client import call
from qns.runtime.configuration import Configuration

_STATUS_WITHIN_S: Final = 5.0


def find_running(configuration: Configuration) -> str:
    """Returns the address of the peer that runs on this store, or "" if there is none."""
    try:
        state = call(configuration.admin, "status", {}, silent_s=_STATUS_WITHIN_S)
    except QnsError:
        return ""
    is_own = Path(state["store"]) == configuration.store.absolute()
    return str(state["listen"]) if is_own else ""
