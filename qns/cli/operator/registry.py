"""Registry: the commands of `qns peer` that a running peer obeys; one file and one line for each.

Each has a function `add`, which adds the command to the parser of `qns peer`.
"""

from __future__ import annotations

from typing import Final

from qns.cli.operator import (
    backup,
    backup_key,
    connections,
    dead_letters,
    document,
    drain,
    report,
    restore,
    resume,
    status,
    tables,
)

OPERATOR_COMMANDS: Final = (
    status,
    tables,
    connections,
    dead_letters,
    document,
    drain,
    resume,
    backup,
    backup_key,
    restore,
    report,
)
