"""Splits the bytes of a persistent HTTP/1.1 connection into messages, and finds their senders."""

from __future__ import annotations

import re
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from dataclasses import dataclass
from typing import Final

_LENGTH: Final = re.compile(rb"^content-length:[ \t]*(\d+)[ \t]*\r$", re.IGNORECASE | re.MULTILINE)
_CHUNKED: Final = re.compile(rb"^transfer-encoding:.*\r$", re.IGNORECASE | re.MULTILINE)
_CLOSES: Final = re.compile(rb"^connection:[ \t]*close[ \t]*\r$", re.IGNORECASE | re.MULTILINE)
_SENDER: Final = re.compile(rb"<(?:\w+:)?organisation>([^<]+)<")


class NotUnderstood(Exception):
    """Raised for bytes that are not a message with a Content-Length."""


@dataclass(frozen=True, slots=True)
class Message:
    """The exact bytes of a request or a response."""

    head: bytes
    body: bytes

    @property
    def whole(self) -> bytes:
        return self.head + self.body

    @property
    def is_last(self) -> bool:
        """True if the connection closes after the message."""
        return _CLOSES.search(self.head) is not None

    @property
    def sender(self) -> str:
        """Returns the first organisation in the body, or ""."""
        found = _SENDER.search(self.body)
        return "" if found is None else found[1].decode("utf-8", "replace")


async def read_message(reader: StreamReader) -> Message | None:
    """Returns the next message, or None if the connection was closed before its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if _CHUNKED.search(head) or (length is None and not head.startswith(b"GET ")):
            raise NotUnderstood(head.decode("latin-1"))
        body = await reader.readexactly(int(length[1])) if length else b""
    except (IncompleteReadError, ConnectionError):
        return None
    except LimitOverrunError as problem:
        raise NotUnderstood("the head is too long") from problem
    return Message(head, body)
