"""Connections: every response is closed before its finalizer could do it."""

from __future__ import annotations

import threading
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest.mock import patch

from qns.client.address import Address
from qns.client.connections import Connections


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


def test_response_is_closed_explicitly_and_its_connection_is_kept() -> None:
    """A KeyboardInterrupt that arrives in the finalizer of a response would be lost."""
    responses: list[HTTPResponse] = []
    original = HTTPConnection.getresponse

    def recorded(connection: HTTPConnection) -> HTTPResponse:
        responses.append(original(connection))
        return responses[-1]

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        connections = Connections(Address.of(f"http://127.0.0.1:{server.server_port}/"))
        try:
            with patch.object(HTTPConnection, "getresponse", recorded):
                for _ in range(2):
                    assert connections.post(b"<x/>", {}, 5.0, new=False)[2] == b"ok"
            assert [response.closed for response in responses] == [True, True]
            assert len(connections._idle) == 1
        finally:
            connections.close()
            server.shutdown()
            thread.join()
