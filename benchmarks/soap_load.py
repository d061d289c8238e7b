"""A load of SOAP calls over kept-alive connections, one for each producer.

A producer's numbers must arrive in order, so each connection carries one stream, as between peers.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")


class Connection:
    """A minimal HTTP/1.1 client: a client library would cost more than the servers do."""

    def __init__(self, port: int, path: str, tls: ssl.SSLContext | None = None) -> None:
        self.port = port
        self.tls = tls
        self.head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/xml; charset=utf-8\r\n"
        )
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def call(self, body: bytes, action: str) -> bytes:
        if self.reader is None or self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port, ssl=self.tls
            )
        head = f"{self.head}SOAPAction: {action}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.partition(b"content-length:")[2].partition(b"\r\n")[0])
        content = await self.reader.readexactly(length)
        if not answer.startswith(b"http/1.1 200"):
            raise RuntimeError(f"{answer.decode()}{content.decode()}")
        return content

    async def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            await self.writer.wait_closed()


class Spent(NamedTuple):
    """The time that a load took."""

    seconds: float
    cpu_seconds: float
    """The CPU time of all threads of the server."""


async def run_load(pid: int, workers: Sequence[Callable[[], Awaitable[None]]]) -> Spent:
    """Runs the workers concurrently; returns the time that they took."""
    cpu, start = cpu_of(pid), time.perf_counter()
    await asyncio.gather(*(work() for work in workers))
    return Spent(time.perf_counter() - start, cpu_of(pid) - cpu)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
