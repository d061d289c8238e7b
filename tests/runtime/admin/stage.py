"""A peer with an admin port in this process, for tests, and raw requests to it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from qns.runtime.admin.operation import Operation
from qns.runtime.admin.protocol import write_request
from qns.runtime.configuration import read_configuration
from qns.runtime.process import Running
from tests.runtime.peers import agencies_on_loopback, configure


@asynccontextmanager
async def running_peer(
    folder: Path, more: str = "", operations: Mapping[str, Operation] | None = None
) -> AsyncIterator[Running]:
    """Runs the peer of INPS; `operations` replace those of the admin port."""
    configuration = read_configuration(configure(folder, agencies_on_loopback(), "INPS", more))
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    running = await Running.start(configuration, sock, "http://127.0.0.1/")
    if operations is not None:
        running.admin.operations = operations
    try:
        yield running
    finally:
        await running.stop()


async def send(path: Path, data: bytes) -> list[dict[str, Any]]:
    """Sends bytes to an admin port and returns the lines of the answer."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return [json.loads(line) for line in answer.splitlines()]


async def ask(running: Running, operation: str, **arguments: Any) -> list[dict[str, Any]]:
    """Sends a request to the peer and returns the lines of the answer."""
    return await send(running.admin.path, write_request(operation, arguments))
