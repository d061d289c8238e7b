"""Requests and responses of HTTP/1.1, and the bytes of responses."""

from __future__ import annotations

from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from qns.runtime.peer_tls import Identity


class Flaw(NamedTuple):
    """Why the body of a request cannot be used, and the status of the response."""

    status: int
    problem: str
    remedy: str


TOO_SLOW: Final = Flaw(
    408, "the body took too long to arrive", "send the whole body right after the head"
)
MALFORMED: Final = Flaw(
    400, "the body is malformed: its chunks have wrong lengths", "send it with Content-Length"
)


def too_large(most_bytes: int) -> Flaw:
    return Flaw(
        413,
        f"the body has more than {most_bytes:,} bytes",
        f"send at most {most_bytes:,} bytes in one request",
    )


class Request(NamedTuple):
    method: str
    path: str
    query: str
    headers: dict[str, str]
    """The names are in lower case."""
    body: bytes
    """A body that has a flaw is incomplete."""
    flaw: Flaw | None = None
    address: str = ""
    """The address of the client, such as 127.0.0.1:40312."""
    identity: Identity | None = None
    """The member whose connection it is; None if connections are not authenticated."""


class Response(NamedTuple):
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    more: tuple[tuple[str, str], ...] = ()
    """Additional headers."""


def split_url(url: bytes) -> tuple[str, str, str]:
    """Returns the path, the query and the authority of a URL; most URLs have no authority."""
    text, authority = url.decode("latin-1"), ""
    if not text.startswith("/"):  # clients send the complete URL to a proxy
        try:
            parts = urlsplit(text)
            authority, text = parts.netloc, parts._replace(scheme="", netloc="").geturl()
        except ValueError:
            return "", "", ""
    path, _, query = text.partition("?")
    return unquote(path) if "%" in path else path, query, authority


@lru_cache(maxsize=64)  # most clients send the same Host in every request
def host_name(host: str) -> str:
    """Returns the name in a Host header without its port, in lower case; empty if it is invalid."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname or "", parts.port
    except ValueError:
        return ""
    is_plain = parts.netloc == host and "@" not in host
    return name.removesuffix(".") if is_plain else ""


def response_bytes(response: Response, version: str, *, ends: bool, is_head: bool = False) -> bytes:
    """Returns the bytes of a response.

    `ends` announces that the connection closes. A response to HEAD has no body.
    """
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
