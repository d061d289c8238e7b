"""Other program: a server in place of a peer, whose `/health` has any content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread


@dataclass
class OtherProgram:
    state: object
    """The answer to `/health`."""
    endpoint: str = ""


@contextmanager
def other_program(state: object = None) -> Iterator[OtherProgram]:
    """Starts the server, and stops it at the end of the block."""
    program = OtherProgram(state)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(program.state).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        program.endpoint = f"http://127.0.0.1:{server.server_port}/"
        try:
            yield program
        finally:
            server.shutdown()
            thread.join()
