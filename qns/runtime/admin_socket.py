"""Sockets of the admin port: only the user of the peer, and root, can use one."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES
from pathlib import Path
from typing import Final

from qns.errors import QnsError

_MODE: Final = 0o600
_CREDENTIALS: Final = struct.Struct("iII")
"""The process, user and group of Linux's `struct ucred`."""
_CONNECT_WITHIN_S: Final = 2.0


def bind_socket(path: Path) -> socket.socket:
    """Returns a bound socket that does not listen yet.

    A socket that a killed peer has left is replaced. Raises QnsError as `check_socket` does.
    """
    is_stale = check_socket(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if is_stale:
            path.unlink(missing_ok=True)
        with _umask(0o777 & ~_MODE):  # a moment with other permissions would let others in
            sock.bind(str(path))
        path.chmod(_MODE)
    except OSError as error:
        sock.close()
        raise _unopened(path, error) from None
    except BaseException:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def check_socket(path: Path) -> bool:
    """Returns True if a killed peer has left a socket at this path. It changes nothing.

    Raises QnsError if a process uses the socket, or if it cannot be made at this path.
    """
    folder = path.parent
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise _unopened(path, error) from None
    if mode is not None and not stat.S_ISSOCK(mode):
        raise QnsError(
            "the admin port cannot be opened: this is a file of another kind",
            place=str(path),
            remedy="move it away, or set another path with admin",
        )
    if not folder.is_dir():
        raise QnsError(
            f"the admin port cannot be opened: there is no folder {folder}",
            place=str(path),
            remedy="create it, or set another path with admin",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unopened(path, PermissionError(EACCES, os.strerror(EACCES)))
    if mode is not None and _is_used(path):
        raise QnsError(
            "the admin port is in use by another process",
            place=str(path),
            remedy="stop that peer, or set another path with admin",
        )
    return mode is not None


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


def _is_used(path: Path) -> bool:
    """True if a process listens on the socket, or if it does not refuse the connection in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_WITHIN_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except TimeoutError:
            return True
        except OSError as error:
            raise _unopened(path, error) from None
    return True


def _unopened(path: Path, error: OSError) -> QnsError:
    return QnsError(
        f"the admin port cannot be opened: {error.strerror or error}",
        place=str(path),
        remedy="let this user write in the folder, or set another path with admin",
    )


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
