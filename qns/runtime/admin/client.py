"""Client of the admin port: runs one operation at a running peer, for the command line."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from qns.errors import QnsError
from qns.runtime.admin.protocol import MOST_ANSWER_BYTES, read_answer, write_request

SILENT_S: Final = 120.0
"""How long the peer may send nothing; long operations report their progress more often."""

OnProgress = Callable[[dict[str, Any]], None]
"""Callback that receives each report of progress."""


def call(
    path: Path,
    operation: str,
    arguments: dict[str, Any],
    on_progress: OnProgress = lambda _: None,
    *,
    silent_s: float = SILENT_S,
) -> dict[str, Any]:
    """Returns the result of the operation, or raises the QnsError that the peer answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(silent_s)
        _connect(sock, path)
        try:
            sock.sendall(write_request(operation, arguments))
            with sock.makefile("rb") as lines:
                while line := lines.readline(MOST_ANSWER_BYTES):
                    answer = read_answer(line)
                    if "error" in answer:
                        raise _error(answer["error"])
                    if "result" in answer:
                        result: dict[str, Any] = answer["result"]
                        return result
                    on_progress(answer.get("progress", {}))
        except TimeoutError:
            raise QnsError(
                f"the peer has not answered for {silent_s:g} s", place=str(path), remedy=_LOOK
            ) from None
        except OSError as error:
            raise _ended(path, error.strerror or str(error)) from None
    raise _ended(path, "it closed the connection")


_LOOK: Final = "see the log of the peer"


def _connect(sock: socket.socket, path: Path) -> None:
    try:
        sock.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        raise QnsError(
            "the peer is not running",
            place=str(path),
            remedy="start it with qns peer run CONFIG.toml, from the same configuration",
        ) from None
    except PermissionError:
        raise QnsError(
            "this user may not use the admin port of the peer",
            place=str(path),
            remedy="run the command as the user of the peer, or as root",
        ) from None
    except OSError as error:
        raise QnsError(
            f"the admin port cannot be used: {error.strerror or error}",
            place=str(path),
            remedy="check the setting admin of the configuration",
        ) from None


def _ended(path: Path, reason: str) -> QnsError:
    return QnsError(f"the peer gave no answer: {reason}", place=str(path), remedy=_LOOK)


def _error(fields: object) -> QnsError:
    if not isinstance(fields, dict):
        return QnsError("the peer answered an unknown error", remedy=_LOOK)
    problem, place, remedy = (str(fields.get(key, "")) for key in ("problem", "place", "remedy"))
    return QnsError(problem, place=place, remedy=remedy)
