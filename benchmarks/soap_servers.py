"""The servers that QNS is compared with: `python -m benchmarks.soap_servers bare|lean|spyne`.

`bare` parses the same envelopes with the same hardened parser and answers a constant, on aiohttp's
server. `lean` does so on the HTTP layer of QNS. `spyne` is the same contract served by spyne as it
comes, with its schema validation, on waitress. Each server prints its address and runs until it is
ended.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from email.message import Message
from typing import Any

import uvloop
from aiohttp import web

from qns.runtime.http import HttpServer, Respond
from qns.runtime.http_messages import Request, Response
from qns.soap.contract import _application as application
from qns.soap.hardening import parse_hostile
from qns.soap.shapes import NAMESPACE

CONSTANT = (
    b'<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>'
    b'<notifyResponse xmlns="urn:qns:peer:1"/></soap:Body></soap:Envelope>'
)


async def bare() -> None:
    async def answer(request: web.Request) -> web.Response:
        parse_hostile(await request.read())
        return web.Response(body=CONSTANT, content_type="text/xml", charset="utf-8")

    served = web.Application(client_max_size=1 << 22)
    served.router.add_post("/peer", answer)
    runner = web.AppRunner(served, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"bare listens on http://127.0.0.1:{runner.addresses[0][1]}/", flush=True)
    await asyncio.Event().wait()


async def lean() -> None:
    def answer(request: Request, respond: Respond) -> None:
        parse_hostile(request.body)
        respond(Response(200, CONSTANT, "text/xml; charset=utf-8"))

    server = HttpServer(
        answer,
        lambda _: 1 << 22,
        most_connections=1_000,
        body_within_s=15.0,
        is_own_host=lambda _: True,
    )
    sock = socket.create_server(("127.0.0.1", 0))
    await server.start(sock)
    print(f"lean listens on http://127.0.0.1:{sock.getsockname()[1]}/", flush=True)
    await asyncio.Event().wait()


def _parsed_header(line: str) -> tuple[str, dict[str, str]]:
    message = Message()
    message["content-type"] = line
    (kind, _), *rest = message.get_params() or [("", "")]
    return kind, dict(rest)


def spyne() -> None:
    from spyne.protocol.soap import soap11
    from spyne.server.wsgi import WsgiApplication  # after qns.soap, which makes spyne importable
    from waitress.server import create_server  # which only the extra bench has

    soap11.cgi.parse_header = _parsed_header  # gone in Python 3.13
    contract: Any = application()
    (notify,) = contract.interface.service_method_map[f"{{{NAMESPACE}}}notify"]
    reply = notify.out_message._type_info

    def take(_: Any, __: Any, notifications: Any, ___: Any) -> tuple[Any, Any, None]:
        origin = reply["origin"](organisation="Receiver", document=1, reachability=[])
        outcomes = [reply["outcome"](taken=True, permanent=False) for _ in notifications]
        return origin, outcomes, None

    notify.function = take
    server: Any = create_server(
        WsgiApplication(contract), host="127.0.0.1", port=0, threads=1, connection_limit=1000
    )
    print(f"spyne listens on http://127.0.0.1:{server.effective_port}/", flush=True)
    server.run()


if __name__ == "__main__":
    if sys.argv[1] == "spyne":
        spyne()
    else:
        uvloop.run(lean() if sys.argv[1] == "lean" else bare())
