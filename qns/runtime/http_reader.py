"""Request reader: turns the bytes of one connection into requests, without I/O.

It uses httptools, the parser of Node.js. Each request becomes a job. A request that is not valid,
too large or not meant for this server becomes a job with a refusal, or a request with a flaw; the
reader then ignores all further bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from qns.runtime.http_messages import (
    MALFORMED,
    Flaw,
    Request,
    Response,
    host_name,
    split_url,
    too_large,
)
from qns.runtime.peer_tls import Identity

MOST_HEAD_BYTES: Final = 32_768


class Job(NamedTuple):
    """A request that waits for the earlier requests of its connection."""

    request: Request | None
    """None if the head was rejected: then there is only the refusal."""
    version: str
    ends: bool
    """True if the connection closes after the response."""
    lingers: bool
    """True if more bytes of the request may be under way."""
    refusal: Response | None = None


class RequestReader:
    """The parser calls the methods `on_…`."""

    def __init__(
        self, most_bytes: Callable[[str], int], is_own_host: Callable[[str], bool], address: str
    ) -> None:
        self._most_bytes = most_bytes
        self._is_own_host = is_own_host
        self.address = address
        self.identity: Identity | None = None
        self.jobs: deque[Job] = deque()
        """The requests that have been read and not handled yet."""
        self.has_head = False
        """True while a request has a complete head and an incomplete body."""
        self.expects_continue = False
        """True if the client waits for `100 Continue` before it sends the body."""
        self.has_ended = False
        """True if further bytes are ignored."""
        self._begin_request()

    def _begin_request(self) -> None:
        self._parser = HttpRequestParser(self)
        self.has_head = False
        self._received = 0
        self.on_message_begin()

    @property
    def has_begun(self) -> bool:
        """True if some bytes of a request have arrived, and not all."""
        return self._received > 0

    def feed(self, data: bytes) -> None:
        while data and not self.has_ended:
            self._received += len(data)
            try:
                self._parser.feed_data(data)
                data = b""
            except HttpParserUpgrade as upgrade:  # the offer is declined; HTTP/1.1 continues
                parsed_bytes: int = upgrade.args[0]
                data = self._head_without_upgrade() + data[parsed_bytes:]
                self._begin_request()
            except HttpParserError:
                self.abandon(MALFORMED, Response(400, b"the request is not valid HTTP\n"))
            if not self.has_head and self._received > MOST_HEAD_BYTES:
                self._refuse(431, "the head of the request is too long")

    def end(self) -> None:
        """Drops the jobs and ignores further bytes."""
        self.has_ended = True
        self.jobs.clear()

    def abandon(self, flaw: Flaw, refusal: Response) -> None:
        """Ends an incomplete request: with the flaw if it has a head, or else with the refusal."""
        if self.has_ended:
            return
        if self.has_head:
            self._queue(ends=True, lingers=True, flaw=flaw)
        else:
            self._queue_refusal(refusal)

    # --- the parser -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._hosts: list[str] = []
        self._pieces: list[bytes] = []
        self._body_bytes = self._most_body_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.has_head:
            return  # a trailer after the last chunk
        self._head_bytes += len(name) + len(value)
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = text
        if key == "host":
            self._hosts.append(text)

    def on_headers_complete(self) -> None:
        if self.has_ended:
            return
        if len(self._url) + self._head_bytes > MOST_HEAD_BYTES:
            self._refuse(431, "the head of the request is too long")
            return
        self._version = self._parser.get_http_version()
        self._path, self._query, authority = split_url(self._url)
        if not self._is_for_this_server(authority):
            return
        if self._parser.should_upgrade():
            if self._parser.get_method() == b"CONNECT":
                self._refuse(405, "this server is no proxy")
            return
        self.has_head = True
        self._most_body_bytes = self._most_bytes(self._path)
        if int(self._headers.get("content-length", "0")) > self._most_body_bytes:
            self._queue(ends=True, lingers=True, flaw=too_large(self._most_body_bytes))
            return
        expects = self._headers.get("expect", "").lower() == "100-continue"
        self.expects_continue = expects and self._version == "1.1"

    def on_body(self, piece: bytes) -> None:
        if not self.has_ended:
            self._pieces.append(piece)
            self._body_bytes += len(piece)
            if self._body_bytes > self._most_body_bytes:
                self._queue(ends=True, lingers=True, flaw=too_large(self._most_body_bytes))

    def on_message_complete(self) -> None:
        if self.has_head and not self.has_ended:
            self._queue(ends=not self._parser.should_keep_alive())

    # --- the head ---------------------------------------------------------------------------------

    def _is_for_this_server(self, authority: str) -> bool:
        """Refuses a request that names another server; returns False if it did.

        A browser sends the name from its address bar. An attacker can make that name resolve to
        this computer, so only the names of this server are accepted.
        """
        hosts = [*self._hosts, authority] if authority else self._hosts
        if len(hosts) == 1 and self._is_own_host(host_name(hosts[0])) and not authority:
            return True  # the ordinary case, decided with few calls
        if len(self._hosts) > 1:
            self._refuse(400, "the request has more than one Host: send one")
        elif not self._hosts and self._version == "1.1":
            self._refuse(400, "the request has no Host, which HTTP/1.1 requires")
        elif any(not host_name(each) for each in hosts):
            self._refuse(400, "the Host of the request is no host name: send one such as 127.0.0.1")
        elif not all(self._is_own_host(host_name(each)) for each in hosts):
            self._refuse(421, "this server has another name: use the host of the peer's endpoint")
        return not self.has_ended

    def _head_without_upgrade(self) -> bytes:
        """Returns the head again without the offer to upgrade.

        After such an offer, the parser would take the body for data of the other protocol.
        """
        wanted = self._headers.pop("connection", "").lower()
        self._headers.pop("upgrade", None)
        if "close" in wanted:
            self._headers["connection"] = "close"
        first = f"{self._parser.get_method().decode()} {self._url.decode('latin-1')}"
        lines = [f"{name}: {value}\r\n" for name, value in self._headers.items()]
        return f"{first} HTTP/{self._version}\r\n{''.join(lines)}\r\n".encode("latin-1")

    # --- jobs -------------------------------------------------------------------------------------

    def _refuse(self, status: int, problem: str) -> None:
        self._queue_refusal(Response(status, f"{problem}\n".encode()))

    def _queue_refusal(self, refusal: Response) -> None:
        """Queues a job that rejects a request by its head; a connection has one at most."""
        if not self.has_ended:
            self.has_ended = True
            self.jobs.append(Job(None, "1.1", True, True, refusal))

    def _queue(self, *, ends: bool, lingers: bool = False, flaw: Flaw | None = None) -> None:
        self.has_head = self.expects_continue = False
        self._received = 0
        self.has_ended = ends
        method = self._parser.get_method().decode("latin-1")
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        request = Request(
            method,
            self._path,
            self._query,
            self._headers,
            body,
            flaw,
            self.address,
            self.identity,
        )
        self.jobs.append(Job(request, self._version, ends, lingers))
