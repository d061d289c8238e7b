"""A real timestamping authority for tests: `openssl ts` behind a small HTTP server."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from qns.evidence.timestamps import Authority, read_authority

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(
    OPENSSL is None, reason="the command openssl is absent: no timestamping authority"
)

_CONFIGURATION = """
[req]
distinguished_name = name
prompt = no
[name]
CN = {name}
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[signer]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[tsa]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
"""


@dataclass
class TimestampingAuthority:
    folder: Path
    authority: Authority
    certificate: Path
    """The root certificate."""
    fails: bool = False
    """True if requests are answered with status 500."""
    requests: list[bytes] = field(default_factory=list)
    url: str = ""

    def answer(self, request: bytes) -> bytes:
        """Returns the response to a request, both in DER."""
        query, reply = self.folder / "query", self.folder / "reply"
        query.write_bytes(request)
        _openssl(
            *("ts", "-reply", "-config", self.folder / "tsa.cnf", "-section", "tsa"),
            *("-queryfile", query, "-signer", self.folder / "tsa.pem"),
            *("-inkey", self.folder / "tsa.key"),
            *("-out", reply),
        )
        return reply.read_bytes()


def _openssl(*arguments: object) -> None:
    assert OPENSSL is not None
    done = subprocess.run(
        [OPENSSL, *map(str, arguments)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr


def new_authority(folder: Path, name: str = "Test TSA") -> TimestampingAuthority:
    """Makes a root, and a signer whose certificate it has issued."""
    folder.mkdir(exist_ok=True)
    configuration = folder / "tsa.cnf"
    configuration.write_text(_CONFIGURATION.format(name=name, folder=folder))
    (folder / "serial").write_text("01")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    request = ("req", "-new", *curve, "-config", configuration)
    _openssl(
        *(*request, "-x509", "-days", "30", "-extensions", "root"),
        *("-keyout", folder / "root.key", "-out", folder / "root.pem"),
    )
    _openssl(
        *(*request, "-subj", f"/CN={name} signer"),
        *("-keyout", folder / "tsa.key", "-out", folder / "tsa.csr"),
    )
    _openssl(
        *("x509", "-req", "-in", folder / "tsa.csr", "-days", "30", "-set_serial", "2"),
        *("-CA", folder / "root.pem", "-CAkey", folder / "root.key"),
        *("-extfile", configuration, "-extensions", "signer", "-out", folder / "tsa.pem"),
    )
    root = folder / "root.pem"
    return TimestampingAuthority(folder, read_authority(root.read_bytes()), root)


@contextmanager
def serving(made: TimestampingAuthority) -> Iterator[TimestampingAuthority]:
    """Serves the authority over HTTP on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = self.rfile.read(int(self.headers["Content-Length"]))
            made.requests.append(request)
            content = b"" if made.fails else made.answer(request)
            self.send_response(500 if made.fails else 200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        made.url = f"http://127.0.0.1:{server.server_port}/tsr"
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def authority_in_temporary_folder() -> Iterator[TimestampingAuthority]:
    with tempfile.TemporaryDirectory() as folder:
        yield new_authority(Path(folder))
