"""Clients of a peer over TLS, and what its operator sees, for the tests of mutual TLS."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from qns.edl.messages import (
    Envelope,
    FetchDocument,
)
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import NewCertificate
from qns.soap.peer_client import read_reply, write_call
from tests.runtime.peers import (
    WITHOUT_NUMBA,
    PeerProcess,
    eventually,
    tls_files,
)

SOON_S = 5.0
ENDED = (OSError, http.client.HTTPException)
"""What a client gets whose connection the server has ended."""


def address_of(federation: Federation, name: str) -> tuple[str, int]:
    parts = urlsplit(federation[name].endpoint)
    assert parts.port is not None
    return "127.0.0.1", parts.port


def context_of(folder: Path, own: NewCertificate | None) -> ssl.SSLContext:
    """Returns the context of a client that trusts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if own is not None:
        tls_files(folder, "client", own)
        context.load_cert_chain(folder / "client.tls.pem", folder / "client.tls.key")
    return context


@contextmanager
def connected(
    address: tuple[str, int], context: ssl.SSLContext
) -> Iterator[http.client.HTTPSConnection]:
    """Yields a connection that opens with the first request."""
    connection = http.client.HTTPSConnection(*address, context=context, timeout=SOON_S)
    with closing(connection):
        yield connection


def fetch_once(
    federation: Federation, folder: Path, own: NewCertificate | None, to: str = "INPS"
) -> Envelope:
    """Fetches the document in the name of CoC, over a connection of its own."""
    with connected(address_of(federation, to), context_of(folder, own)) as connection:
        return fetch(connection, "INPS" if to == "CoC" else "CoC")


def call(connection: http.client.HTTPConnection, envelope: Envelope) -> Envelope:
    body, action = write_call(envelope)
    headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
    connection.request("POST", "/peer", body, headers)
    response = connection.getresponse()
    answer = read_reply(envelope, response.status, response.read())
    assert isinstance(answer, Envelope), answer
    return answer


def fetch(connection: http.client.HTTPConnection, sender: str) -> Envelope:
    return call(connection, Envelope(sender, 1, (), FetchDocument()))


def logged(peer: PeerProcess, message: str, reason: str) -> None:
    """Waits until the log has a line with this message and a reason that begins so."""

    def found() -> bool:
        return any(
            each["message"] == message and str(each.get("reason")).startswith(reason)
            for each in peer.records()
        )

    eventually(found, f"the log has: {message}, {reason}")


def install(peer: PeerProcess, federation: Federation) -> None:
    """Puts a document in force at a running peer."""
    (peer.configuration.parent / "federation.xml").write_bytes(write_federation(federation))
    assert peer.process is not None
    peer.process.send_signal(1)
    eventually(lambda: peer.health()["document"] == federation.version, "the document is in force")


def words_of(peer: PeerProcess, *command: str) -> list[str]:
    """Returns the findings of a command for a peer, each as one line."""
    done = subprocess.run(
        [sys.executable, "-m", "qns.cli", "peer", *command, str(peer.configuration), "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **WITHOUT_NUMBA},
        timeout=60,
        check=False,
    )
    found = map(json.loads, done.stdout.splitlines())
    lines = [each for row in found for each in row.get("findings", [row])]
    return [f"{each['verdict']} {each['what']}: {each['words']}" for each in lines]
