"""Layout: what the pages of a store's file have beside the rows.

Every page has room for a checksum, and pages that become free can be given back to the disk. The
stores of QNS 0.2.0 have neither; they are rewritten once when they are opened.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

import apsw

from qns.store.checksums import RESERVED_BYTES, check_structure, has_checksums

CHECKED_ID: Final = 0x514E5332  # 'QNS2'
"""The `application_id` of a store whose pages have checksums."""
UNCHECKED_ID: Final = 0x514E5331  # 'QNS1'
"""The `application_id` of a store of QNS 0.2.0, and of a store in memory."""
_ROOM: Final = 3
"""How many times its size a store needs as free space in order to be rewritten."""
_LOG: Final = logging.getLogger(__name__)


def lay_out(connection: apsw.Connection) -> None:
    """Sets the layout of an empty file; other files get it when they are rewritten."""
    connection.reserve_bytes("main", RESERVED_BYTES)
    connection.pragma("auto_vacuum", "incremental")


def rewrite(connection: apsw.Connection, path: Path) -> None:
    """Gives a store of QNS 0.2.0 the layout of new stores, if there is enough free space.

    A crash leaves the old file or the new one. The mark that follows is not needed before.
    """
    if not has_checksums(connection):
        check_structure(connection, str(path))
        size, free = path.stat().st_size, _free_bytes(path)
        if free < _ROOM * size:
            _LOG.warning(
                "%s stays without checksums: %s bytes are free, and to rewrite it takes %s",
                path,
                f"{free:,}",
                f"{_ROOM * size:,}",
            )
            return
        _LOG.info("%s is being rewritten with checksums (%s bytes)", path, f"{size:,}")
        lay_out(connection)
        connection.execute("VACUUM")
    connection.pragma("application_id", CHECKED_ID)


def _free_bytes(path: Path) -> int:
    disk = os.statvfs(path.absolute().parent)
    return disk.f_bavail * disk.f_frsize
