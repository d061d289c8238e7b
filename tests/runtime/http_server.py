"""An HTTP server with a handler of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from qns.runtime.addresses import host_names
from qns.runtime.http import Handle, HttpServer, Respond
from qns.runtime.http_messages import Request, Response
from tests.runtime.test_server import Address

MOST = 1_000
HEAD = b"POST /peer HTTP/1.1\r\nHost: 127.0.0.1\r\n"


async def echo(request: Request) -> Response:
    words = f"{request.method} {request.path}?{request.query} {request.body!r} {request.flaw}"
    return Response(200, words.encode())


@asynccontextmanager
async def serving(
    handle: Callable[[Request], Awaitable[Response]] = echo, **settings: Any
) -> AsyncIterator[tuple[HttpServer, Address]]:
    """Serves with a handler that runs in a task for each request."""

    def in_task(request: Request, respond: Respond) -> asyncio.Task[None]:
        async def answered() -> None:
            respond(await handle(request))

        return asyncio.get_running_loop().create_task(answered())

    async with serving_with(in_task, **settings) as served:
        yield served


@asynccontextmanager
async def serving_with(
    handle: Handle, **settings: Any
) -> AsyncIterator[tuple[HttpServer, Address]]:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    address: Address = sock.getsockname()
    bounds = {"most_connections": 10, "body_within_s": 5.0} | settings
    names = host_names("http://127.0.0.1/")
    server = HttpServer(handle, lambda _: MOST, is_own_host=names.__contains__, **bounds)
    await server.start(sock)
    try:
        yield server, address
    finally:
        await server.stop(1.0)


def post(body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(each + b"\r\n" for each in headers)
    return HEAD + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body
