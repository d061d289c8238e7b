"""Connections: kept-alive HTTP connections to one peer, for any number of threads."""

from __future__ import annotations

import socket
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from threading import Lock
from typing import NamedTuple

from qns.client.address import Address, PeerUnreachable


class Reply(NamedTuple):
    status: int
    content_type: str
    body: bytes


class Connections:
    """A thread that asks takes an idle connection or opens one: nobody waits for another's pull."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.is_closed = False
        self._idle: list[HTTPConnection] = []
        self._busy: set[HTTPConnection] = set()
        self._lock = Lock()

    def post(self, body: bytes, headers: dict[str, str], timeout_s: float, *, new: bool) -> Reply:
        """What the peer answers; PeerUnreachable says whether it may have got the request.

        A `new` connection cannot turn out to have been closed while it was idle.
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
        """Ends whatever is under way, in other threads too."""
        with self._lock:
            self.is_closed = True
            idle, busy = self._idle, list(self._busy)
            self._idle = []
        for connection in idle:
            connection.close()
        for connection in busy:
            with suppress(OSError, AttributeError):  # it may end by itself meanwhile
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
        """An idle connection that the peer has not closed meanwhile, as far as one can see."""
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
            response = connection.getresponse()
            content_type = response.getheader("Content-Type", "")
            return Reply(response.status, content_type, response.read())
        except (OSError, HTTPException) as problem:
            raise self.address.unreachable(problem, may_be_done=True) from None


def _is_closed(connection: HTTPConnection) -> bool:
    """Nothing can be read from an idle connection unless its other end has gone."""
    if connection.sock is None:  # the peer asked for it: it is opened again
        return False
    connection.sock.settimeout(0)
    try:
        connection.sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
