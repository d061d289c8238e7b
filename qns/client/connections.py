"""Connections: kept-alive HTTP connections to one peer, for any number of threads."""

from __future__ import annotations

import socket
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from threading import Lock
from typing import NamedTuple

from qns.client.address import Address, PeerUnreachable
from qns.soap.retry_after import RETRY_AFTER


class Reply(NamedTuple):
    """An HTTP response."""

    status: int
    content_type: str
    body: bytes
    retry_after: str | None = None


class Connections:
    """Idle connections. A thread takes one or opens a new one, so no thread waits for another."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.is_closed = False
        self._idle: list[HTTPConnection] = []
        self._busy: set[HTTPConnection] = set()
        self._lock = Lock()

    def post(self, body: bytes, headers: dict[str, str], timeout_s: float, *, new: bool) -> Reply:
        """Sends a request and returns the response.

        Raises PeerUnreachable with `may_be_done`. A request that must not be repeated asks for a
        `new` connection, because an idle one may have been closed by the peer.
        """
        connection = self._take(timeout_s, new=new)
        try:
            self._connect(connection, timeout_s)
            reply = self._exchange(connection, body, headers)
        except BaseException:
            connection.close()
            raise
        else:
            self._give_back(connection)
            return reply
        finally:
            with self._lock:
                self._busy.discard(connection)

    def close(self) -> None:
        """Closes all connections. Requests under way in other threads fail."""
        with self._lock:
            self.is_closed = True
            idle, busy = self._idle, list(self._busy)
            self._idle = []
        for connection in idle:
            connection.close()
        for connection in busy:
            with suppress(OSError, AttributeError):  # it may end at the same time
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _take(self, timeout_s: float, *, new: bool) -> HTTPConnection:
        with self._lock:
            if self.is_closed:
                raise PeerUnreachable("this client is closed", remedy="make a new one")
            connection = None if new else self._usable()
            if connection is None:
                host, port = self.address.host, self.address.port
                connection = HTTPConnection(host, port, timeout=timeout_s)
            self._busy.add(connection)
        return connection

    def _usable(self) -> HTTPConnection | None:
        """Returns an idle connection that the peer has not closed, as far as it is visible."""
        while self._idle:
            connection = self._idle.pop()
            if not _is_closed(connection):
                return connection
            connection.close()
        return None

    def _give_back(self, connection: HTTPConnection) -> None:
        with self._lock:
            if not self.is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self, connection: HTTPConnection, timeout_s: float) -> None:
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
            return
        try:
            connection.connect()
        except OSError as problem:
            raise self.address.unreachable(problem, may_be_done=False) from None
        if self.is_closed:
            raise PeerUnreachable("this client is closed", remedy="make a new one")

    def _exchange(self, connection: HTTPConnection, body: bytes, headers: dict[str, str]) -> Reply:
        try:
            connection.request("POST", self.address.path, body, headers)
            # Closed explicitly: a KeyboardInterrupt that arrives while a response is closed by its
            # finalizer is lost, because Python ignores exceptions there.
            with closing(connection.getresponse()) as response:
                content_type = response.getheader("Content-Type", "")
                retry_after = response.getheader(RETRY_AFTER)
                return Reply(response.status, content_type, response.read(), retry_after)
        except (OSError, HTTPException) as problem:
            raise self.address.unreachable(problem, may_be_done=True) from None


def _is_closed(connection: HTTPConnection) -> bool:
    """True if the other end has closed the connection: only then an idle one is readable."""
    if connection.sock is None:  # closed at the peer's request; it is opened again
        return False
    connection.sock.settimeout(0)
    try:
        connection.sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
