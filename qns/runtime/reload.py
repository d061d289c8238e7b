"""Reload: applies a changed configuration to a running peer, as far as that is possible.

The federation document and the log settings take effect at once. All other settings need a restart.
If anything is invalid, nothing changes.
"""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

from qns.errors import QnsError
from qns.runtime.configuration import Configuration, read_configuration
from qns.runtime.documents import install_configured
from qns.runtime.driver import Driver
from qns.runtime.logs import configure_logs, log_event

_APPLIED: Final = ("federation", "document", "log_level", "log_format")


async def reload(driver: Driver, running: Configuration, path: Path) -> Configuration:
    """Applies the file to a peer that runs with `running`; returns what is in effect then.

    An invalid file or a refused document is logged, and nothing changes.
    """
    try:
        new = read_configuration(path)
        await install_configured(driver, new.document, has_tls=running.has_tls)
    except QnsError as error:
        log_event(logging.ERROR, "the configuration was not reloaded", reason=str(error))
        return running
    configure_logs(new.log_level, new.log_format)
    for name in _unapplied(running, new):
        log_event(logging.WARNING, "restart needed", setting=name)
    log_event(
        logging.INFO, "the configuration was reloaded", document=driver.status.federation.version
    )
    return replace(running, **{name: getattr(new, name) for name in _APPLIED})


def _unapplied(running: Configuration, new: Configuration) -> list[str]:
    """Returns the settings that differ and cannot change while the peer runs."""
    found = [
        each.name
        for each in fields(Configuration)
        if each.name not in (*_APPLIED, "tuning")
        and getattr(running, each.name) != getattr(new, each.name)
    ]
    return found + [
        f"tuning.{each.name}"
        for each in fields(running.tuning)
        if getattr(running.tuning, each.name) != getattr(new.tuning, each.name)
    ]
