"""Registry: all operations of the admin port. A new operation is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qns.runtime.admin.operation import Operation
from qns.runtime.admin.operations.backup import BACKUP
from qns.runtime.admin.operations.connections import CONNECTIONS
from qns.runtime.admin.operations.dead_letters import DEAD_LETTERS
from qns.runtime.admin.operations.document import DOCUMENT_INSTALL
from qns.runtime.admin.operations.drain import DRAIN, RESUME
from qns.runtime.admin.operations.evidence import EVIDENCE
from qns.runtime.admin.operations.report import REPORT
from qns.runtime.admin.operations.status import STATUS
from qns.runtime.admin.operations.tables import TABLES
from qns.runtime.admin.operations.why import WHY

_ALL: Final = (
    STATUS,
    TABLES,
    CONNECTIONS,
    WHY,
    EVIDENCE,
    *DEAD_LETTERS,
    DOCUMENT_INSTALL,
    DRAIN,
    RESUME,
    BACKUP,
    REPORT,
)

OPERATIONS: Final[Mapping[str, Operation]] = {each.name: each for each in _ALL}
