"""Protocol of the admin port: one JSON object per line, one request per connection.

The request is `{"protocol": 1, "version": …, "operation": …, "arguments": {…}}`. The peer answers
with any number of lines `{"progress": {…}}` and then with one line `{"result": {…}}` or
`{"error": {"problem": …, "place": …, "remedy": …}}`.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from qns import __version__
from qns.errors import DocumentError, QnsError, shorten, show

PROTOCOL: Final = 1
MOST_REQUEST_BYTES: Final = 8 * 2**20
"""A federation document of the largest size fits, as JSON."""
MOST_ANSWER_BYTES: Final = 256 * 2**20


class AdminRequest(NamedTuple):
    operation: str
    arguments: dict[str, Any]
    version: str
    """The version of QNS that sends the request."""


def write_line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def write_request(operation: str, arguments: dict[str, Any]) -> bytes:
    return write_line(
        {
            "protocol": PROTOCOL,
            "version": __version__,
            "operation": operation,
            "arguments": arguments,
        }
    )


def write_error(error: QnsError) -> bytes:
    fields = {"problem": error.problem, "place": error.place, "remedy": error.remedy}
    return write_line({"error": fields})


def read_request(line: bytes) -> AdminRequest:
    """Raises DocumentError if the line is no request of this protocol."""
    fields = _object(line)
    protocol = fields.get("protocol")
    version = fields.get("version")
    if not isinstance(version, str):
        version = "an unknown version"
    if protocol != PROTOCOL:
        raise DocumentError(
            f"the command is of QNS {version:.40} and uses protocol {show(protocol)}; the peer is "
            f"of QNS {__version__} and uses protocol {PROTOCOL}",
            remedy="restart the peer with the QNS of the command, or use the peer's own qns",
        )
    operation, arguments = fields.get("operation"), fields.get("arguments", {})
    if not isinstance(operation, str):
        raise _malformed("operation is not a text")
    if not isinstance(arguments, dict):
        raise _malformed("arguments is not an object")
    unknown = fields.keys() - {"protocol", "version", "operation", "arguments"}
    if unknown:
        raise _malformed(f"there is no key {shorten(min(unknown))}")
    return AdminRequest(operation, arguments, version)


def read_answer(line: bytes) -> dict[str, Any]:
    return _object(line)


def _object(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise _malformed("it is not JSON") from None
    if not isinstance(fields, dict):
        raise _malformed("it is not an object")
    return fields


def _malformed(problem: str) -> DocumentError:
    return DocumentError(
        f"a line of the admin port is malformed: {problem}",
        remedy="use the commands of qns peer: docs/operations.md",
    )
