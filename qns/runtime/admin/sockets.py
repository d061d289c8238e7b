"""Sockets of the admin port: only the user of the peer, and root, can use one."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from qns.errors import QnsError

_MODE: Final = 0o600
_CREDENTIALS: Final = struct.Struct("iII")
"""The process, user and group of Linux's `struct ucred`."""
_CONNECT_WITHIN_S: Final = 2.0


def bind_socket(path: Path) -> socket.socket:
    """Returns a bound socket that does not listen yet.

    A socket that a killed peer has left is replaced. Raises QnsError if a process uses the socket,
    or if the path is another file.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        with _umask(0o777 & ~_MODE):  # a moment with other permissions would let others in
            sock.bind(str(path))
        path.chmod(_MODE)
    except OSError as error:
        sock.close()
        raise QnsError(
            f"the admin port cannot be opened: {error.strerror or error}",
            place=str(path),
            remedy="let this user write in the folder, or set another path with admin",
        ) from None
    except BaseException:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def user_of(descriptor: int) -> int | None:
    """Returns the user at the other end of a connection, or None if the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    # The event loop's own socket object does not offer getsockopt.
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        found = copy.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(found)
    return int(user)


def is_permitted(user: int | None) -> bool:
    """True for the user of this process and for root; where the user is unknown, the mode rules."""
    return user is None or user in (0, os.geteuid())


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise QnsError(
            "the admin port cannot be opened: this is a file of another kind",
            place=str(path),
            remedy="move it away, or set another path with admin",
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_WITHIN_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except TimeoutError:
            pass
    raise QnsError(
        "the admin port is in use by another process",
        place=str(path),
        remedy="stop that peer, or set another path with admin",
    )


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
