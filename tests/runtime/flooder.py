"""A member gone bad, as a process of its own: sends one request again and again over mutual TLS.

python -m tests.runtime.flooder HOST:PORT CERTIFICATE KEY REQUEST SECONDS [CONNECTIONS]

REQUEST is a file with the bytes of one HTTP request. It heeds no Retry-After. At the end it prints,
as JSON, how many answers of each HTTP status it got.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections import Counter
from pathlib import Path

PIPELINED = 4
"""Requests that are under way on each connection."""


async def flood(
    host: str, port: int, tls: ssl.SSLContext, request: bytes, seconds: float, connections: int
) -> Counter[str]:
    found: Counter[str] = Counter()
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds

    async def one() -> None:
        while loop.time() < until:
            try:
                reader, writer = await asyncio.open_connection(host, port, ssl=tls)
            except OSError:
                found["not connected"] += 1
                await asyncio.sleep(0.05)
                continue
            try:
                writer.write(request * PIPELINED)
                while loop.time() < until:
                    head = (await reader.readuntil(b"\r\n\r\n")).lower()
                    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                    await reader.readexactly(length)
                    found[head.split(b" ", 2)[1].decode()] += 1
                    writer.write(request)
                    await writer.drain()
            except (OSError, asyncio.IncompleteReadError):
                found["closed"] += 1
            finally:
                writer.close()

    tasks = [asyncio.create_task(one()) for _ in range(connections)]
    await asyncio.wait(tasks, timeout=seconds + 1.0)
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def main(address: str, certificate: str, key: str, request: str, seconds: str, many: str) -> None:
    host, _, port = address.partition(":")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.load_cert_chain(certificate, key)
    content = Path(request).read_bytes()
    found = asyncio.run(flood(host, int(port), tls, content, float(seconds), int(many)))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
