"""A peer process of INPS, for tests with independent SOAP stacks, in plain HTTP and over TLS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import new_certificate
from qns.federation.shipped import AGENCIES_FEDERATION
from tests.runtime.peers import free_ports

ROOT = Path(__file__).parents[3]
NOBODY_LISTENS = "{scheme}://127.0.0.1:{port}/"
TLS = """
[tls]
certificate = "INPS.tls.pem"
key = "INPS.tls.key"
"""


@dataclass(frozen=True)
class TlsPeer:
    """A peer that other peers call over mutual TLS."""

    members: str
    """Its address for other peers."""
    local: str
    """Its address for users: over TLS too, or in plain HTTP."""
    folder: Path
    """The folder with the certificates of INPS and CoC, and the keys of CoC."""


@contextmanager
def running(folder: Path, more: str) -> Iterator[str]:
    """Starts a new peer of INPS and yields the line that it prints; the others run no peers."""
    has_tls = "[tls]" in more
    federation = replace(
        AGENCIES_FEDERATION,
        organisations={
            name: replace(
                each,
                endpoint=NOBODY_LISTENS.format(scheme="https" if has_tls else "http", port=port),
                tls=(made(folder, name),) if has_tls else (),
            )
            for port, (name, each) in enumerate(AGENCIES_FEDERATION.organisations.items(), 1)
        },
    )
    listen = 0
    if has_tls:  # the WSDL for other peers has the endpoint of the document
        (listen,) = free_ports(1)
        federation = federation.with_endpoints({"INPS": f"https://127.0.0.1:{listen}/"})
    (folder / "federation.xml").write_bytes(write_federation(federation))
    configuration = folder / "inps.toml"
    configuration.write_text(
        'organisation = "INPS"\nfederation = "federation.xml"\n'
        f'listen = "127.0.0.1:{listen}"\n'
        'lineage = "INPS.db.lineage"\n'
        f"{more}"
        # The others never compare their views; they get only what they have asked for.
        "[tuning]\ncompare_within_s = 0.001\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "qns.cli", "peer", "run", str(configuration)]
    with (
        (folder / "inps.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=ROOT) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            assert line.startswith("INPS listens on http"), (folder / "inps.log").read_text()
            yield line
        finally:
            process.terminate()
            assert process.wait(30) == 0


def made(folder: Path, name: str) -> str:
    """Makes the key and the certificate of an organisation; returns the certificate."""
    new = new_certificate(name, 1.7e9, days=3_650, algorithm="ecdsa-p256")
    (folder / f"{name}.tls.pem").write_text(new.certificate)
    (folder / f"{name}.tls.key").write_bytes(new.key)
    (folder / f"{name}.both.pem").write_bytes(new.key + new.certificate.encode())  # for gSOAP
    return new.certificate


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[str]:
    """Yields the address of a peer in plain HTTP."""
    with running(tmp_path, "") as line:
        yield line.split()[-1]


@pytest.fixture
def tls_peer(tmp_path: Path) -> Iterator[TlsPeer]:
    """Yields a peer that serves other peers over mutual TLS, and users in plain HTTP."""
    yield from _tls_peer(tmp_path, "")


@pytest.fixture
def local_tls_peer(tmp_path: Path) -> Iterator[TlsPeer]:
    """Yields a peer that serves other peers over mutual TLS, and users over TLS."""
    yield from _tls_peer(tmp_path, TLS.replace("[tls]", "[local_tls]"))


def _tls_peer(folder: Path, more: str) -> Iterator[TlsPeer]:
    local = f"127.0.0.1:{free_ports(1)[0]}"
    with running(folder, f'local = "{local}"\n{TLS}{more}') as line:
        members = line.split()[3]
        scheme = "https" if more else "http"
        yield TlsPeer(members, f"{scheme}://{local}/", folder)
