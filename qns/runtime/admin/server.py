"""Server of the admin port: reads one request from each connection and runs its operation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from qns import __version__
from qns.errors import Busy, DocumentError, NameNotKnown, NotAllowed, QnsError
from qns.runtime.admin.operation import Context, Operation, Result
from qns.runtime.admin.protocol import (
    MOST_REQUEST_BYTES,
    AdminRequest,
    read_request,
    write_error,
    write_line,
)
from qns.runtime.admin.registry import OPERATIONS
from qns.runtime.admin_socket import bind_socket, is_permitted, user_of
from qns.runtime.logs import log_event, log_exception

MOST_CONNECTIONS: Final = 16
REQUEST_WITHIN_S: Final = 15.0
_LINGER_S: Final = 2.0


@dataclass(slots=True, eq=False)
class AdminServer:
    path: Path
    context: Context
    operations: Mapping[str, Operation] = field(default_factory=lambda: OPERATIONS)
    request_within_s: float = REQUEST_WITHIN_S
    _listener: asyncio.Server | None = None
    _inode: int = 0
    """Identifies the socket file, so that the file of another peer is never removed."""
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        """Raises QnsError if the socket cannot be opened."""
        sock = bind_socket(self.path)
        try:
            self._inode = self.path.stat().st_ino
            self._listener = await asyncio.start_unix_server(
                self._connected, sock=sock, limit=MOST_REQUEST_BYTES
            )
        except BaseException:
            sock.close()
            self._remove_socket()
            raise

    async def stop(self) -> None:
        """Cancels the operations that run, and removes the socket."""
        if self._listener is None:
            return
        self._listener.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._listener.wait_closed()
        self._remove_socket()

    def _remove_socket(self) -> None:
        with suppress(OSError):
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()

    # --- one connection ---------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._answer(reader, writer)
        except asyncio.CancelledError:
            stopping = Busy("the peer is stopping", remedy="try again when it runs again")
            writer.write(write_error(stopping))
        except ConnectionError:  # the operator has disconnected
            pass
        except Exception:
            log_exception("a command of the operator failed")
            writer.write(write_error(QnsError("an unexpected error", remedy="see the peer's log")))
        else:
            await _linger(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        user = user_of(writer.get_extra_info("socket").fileno())
        name = ""
        try:
            if not is_permitted(user):
                raise NotAllowed(
                    f"the user {user} may not use the admin port of this peer",
                    remedy="run the command as the user of the peer, or as root",
                )
            if len(self._connections) > MOST_CONNECTIONS:
                raise Busy(
                    f"{MOST_CONNECTIONS} commands are running already", remedy="try again later"
                )
            request = read_request(await self._line(reader))
            name = request.operation
            operation = self._operation(request)
            operation.check(request.arguments)
            result = await self._run(operation, request, reader, writer)
        except QnsError as error:
            log_event(
                logging.WARNING,
                "a command of the operator was refused",
                operation=name,
                user=user,
                reason=str(error),
            )
            writer.write(write_error(error))
        else:
            if result is None:
                log_event(logging.INFO, "a command was given up", operation=name, user=user)
                return
            log_event(logging.INFO, "a command of the operator ran", operation=name, user=user)
            writer.write(write_line({"result": result}))
        await writer.drain()

    async def _line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(self.request_within_s):
                return await reader.readuntil(b"\n")
        except TimeoutError:
            raise DocumentError(
                f"the request did not arrive within {self.request_within_s:g} s"
            ) from None
        except asyncio.LimitOverrunError:
            raise DocumentError(
                f"the request is larger than {MOST_REQUEST_BYTES:,} bytes"
            ) from None
        except asyncio.IncompleteReadError:
            raise DocumentError("the request does not end with a line break") from None

    def _operation(self, request: AdminRequest) -> Operation:
        found = self.operations.get(request.operation)
        if found is not None:
            return found
        if request.version != __version__:
            raise QnsError(
                f"the peer is of QNS {__version__} and has no operation {request.operation:.40}",
                remedy=f"restart it with QNS {request.version:.40}, as the command",
            )
        raise NameNotKnown("operation", request.operation, self.operations)

    async def _run(
        self,
        operation: Operation,
        request: AdminRequest,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> Result | None:
        """Runs the operation; returns None if the operator disconnects before its end."""

        async def report(progress: Result) -> None:
            writer.write(write_line({"progress": progress}))
            await writer.drain()

        work = asyncio.ensure_future(operation.run(self.context, request.arguments, report))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return None
            return work.result()
        finally:
            for task in (gone, work):
                task.cancel()
            await asyncio.gather(gone, work, return_exceptions=True)


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads the rest of the input, because closing a socket with unread input loses the answer."""
    with suppress(TimeoutError, OSError, asyncio.CancelledError):  # the task ends here
        writer.write_eof()
        async with asyncio.timeout(_LINGER_S):
            while await reader.read(65_536):
                pass
