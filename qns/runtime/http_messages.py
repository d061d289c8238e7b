"""Requests and responses of HTTP/1.1, as they are understood and written here."""

from __future__ import annotations

from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit


class Flaw(NamedTuple):
    """Why the body of a request is not whole, and the status to say so with."""

    status: int
    problem: str


TOO_SLOW: Final = Flaw(408, "its body took too long to arrive")
NOT_WHOLE: Final = Flaw(400, "its body did not arrive whole")


class Request(NamedTuple):
    method: str
    path: str
    query: str
    headers: dict[str, str]
    """Names in small letters."""
    body: bytes
    """Of one that is too long only so much that it can be seen to be."""
    flaw: Flaw | None = None


class Response(NamedTuple):
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    more: tuple[tuple[str, str], ...] = ()
    """Further headers."""


def parted(url: bytes) -> tuple[str, str]:
    """Path and query."""
    text = url.decode("latin-1")
    if not text.startswith("/"):  # to a proxy one gives the whole URL
        try:
            text = urlsplit(text)._replace(scheme="", netloc="").geturl()
        except ValueError:
            return "", ""
    path, _, query = text.partition("?")
    return unquote(path) if "%" in path else path, query


def written(response: Response, version: str, *, ends: bool, is_head: bool = False) -> bytes:
    """As bytes for the connection, which may end with it; what HEAD asks for has no body."""
    status, body, content_type, more = response
    head = (
        f"HTTP/{version} {_STATUSES.get(status, status)}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nDate: {_date(int(time()))}\r\n"
    )
    for name, value in more:
        head += f"{name}: {value}\r\n"
    if ends and version == "1.1":
        head += "Connection: close\r\n"
    elif not ends and version != "1.1":
        head += "Connection: keep-alive\r\n"
    if is_head:
        body = b""
    return f"{head}\r\n".encode("latin-1") + body


_STATUSES: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
