"""Mutual TLS between peer processes: events arrive, and whoever is not the member is refused."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import pytest

from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Envelope,
    Fault,
    FetchDocument,
    Gossip,
    Hello,
    OfferDocument,
    Request,
    Standing,
)
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.iil.requests import Deliveries, PullDeliveries, Subscribe
from qns.runtime.causes import EXPIRED as HAS_EXPIRED
from qns.runtime.causes import NO_CERTIFICATE, NO_TLS_1_3, NOT_YET_VALID, UNKNOWN_CERTIFICATE
from qns.soap.parts import ViewPart
from qns.soap.peer_client import read_reply, write_call
from tests.certificates import certificate, expired, not_yet_valid
from tests.runtime.peers import (
    PeerProcess,
    agencies_over_tls,
    change,
    eventually,
    running,
    tls_files,
    tls_peer_in,
    wait_until_stable,
)

pytestmark = pytest.mark.slow

SOON_S = 5.0
ENDED = (OSError, http.client.HTTPException)
"""What a client gets whose connection the server has ended."""
EXPIRED, EARLY = expired("CoC"), not_yet_valid("CoC")
"""CoC has both, and INAIL its own."""


class Stage:
    """Two peers over TLS. CoC is no process: the tests call in its name, or pretend to."""

    def __init__(self, folder: Path) -> None:
        federation = agencies_over_tls()
        self.federation = federation.with_certificates(
            "CoC", tls=[certificate("CoC").certificate, EXPIRED.certificate]
        ).with_certificates("INAIL", tls=[certificate("INAIL").certificate, EARLY.certificate])
        self.folder = folder
        self.peers = {
            name: tls_peer_in(folder / name, self.federation, name) for name in ("INPS", "INAIL")
        }
        self.inps = self.peers["INPS"]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with TemporaryDirectory() as folder:
        found = Stage(Path(folder))
        with running(found.peers.values()):
            found.inps.ask(Subscribe("ada", "Enterprise/Holder", id="1"))
            yield found


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
    assert answer is not None
    return answer


def fetch(connection: http.client.HTTPConnection, sender: str) -> Envelope:
    return call(connection, Envelope(sender, 1, (), FetchDocument()))


# --- what works -----------------------------------------------------------------------------------


def test_member_may_call_in_its_own_name(stage: Stage) -> None:
    answer = fetch_once(stage.federation, stage.folder, certificate("CoC"))
    assert answer.sender == "INPS"
    assert not isinstance(answer.body, Fault)


def test_members_see_only_a_few_fields_of_the_health(stage: Stage) -> None:
    context = context_of(stage.folder, certificate("CoC"))
    with connected(address_of(stage.federation, "INPS"), context) as connection:
        connection.request("GET", "/health")
        state = json.loads(connection.getresponse().read())
        assert state.keys() == {"organisation", "federation", "document", "time"}
        for path in ("/metrics", "/local", "/local?wsdl"):
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            assert response.status == 404


def test_port_peer_is_not_served_beside_the_port_local(stage: Stage) -> None:
    body, action = write_call(Envelope("CoC", 1, (), FetchDocument()))
    headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
    status, words = stage.inps.http("POST", "/peer", body, **headers)
    assert status == 404
    assert b"mutual TLS" in words


# --- who is refused -------------------------------------------------------------------------------

STRANGERS: dict[str, tuple[NewCertificate | None, str]] = {
    "no certificate": (None, NO_CERTIFICATE),
    "unknown certificate with the name of a member": (
        new_certificate("CoC", 1.7e9, days=3_000),
        UNKNOWN_CERTIFICATE,
    ),
    "expired certificate of a member": (EXPIRED, HAS_EXPIRED),
    "certificate of a member that is not valid yet": (EARLY, NOT_YET_VALID),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_stranger_gets_no_answer_and_changes_nothing(stage: Stage, who: str) -> None:
    before = untouched(stage.inps)
    own, reason = STRANGERS[who]
    with pytest.raises(ENDED):
        fetch_once(stage.federation, stage.folder, own)
    assert untouched(stage.inps) == before
    logged(stage.inps, "a TLS handshake failed", reason)


def test_certificate_that_a_member_has_issued_is_refused(stage: Stage) -> None:
    """A key that the document does not name is no member, whoever has signed for it."""
    issued = issued_by(certificate("CoC"))
    with pytest.raises(ENDED):
        fetch_once(stage.federation, stage.folder, issued)


def test_older_tls_is_refused(stage: Stage) -> None:
    context = context_of(stage.folder, certificate("CoC"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        connected(address_of(stage.federation, "INPS"), context) as connection,
        pytest.raises(ENDED),
    ):
        fetch(connection, "CoC")
    logged(stage.inps, "a TLS handshake failed", NO_TLS_1_3)


def test_plain_http_is_refused(stage: Stage) -> None:
    plain = http.client.HTTPConnection(*address_of(stage.federation, "INPS"), timeout=SOON_S)
    with closing(plain) as connection, pytest.raises(ENDED):
        fetch(connection, "CoC")


STANDING = Standing(1, 1, 1, 1, 0)
FORGED: dict[str, Request] = {
    "fetchDocument": FetchDocument(),
    "offerDocument": OfferDocument(b"<federation/>"),
    "gossip": Gossip(),
    "hello": Hello(1, 7, 1, (), 0, 0, "", STANDING, 0, ""),
    "acknowledge": Acknowledge(STANDING),
    "changeSub": ChangeSub(1, 1, 1, None, 1, (), (), "0" * 64),
    "part of a view": ViewPart(1, 1, "0" * 64, 0, ("Enterprise",), ()),
}


@pytest.mark.parametrize("what", FORGED)
def test_member_may_not_call_in_the_name_of_another(stage: Stage, what: str) -> None:
    before = untouched(stage.inps)
    context = context_of(stage.folder, certificate("CoC"))
    with connected(address_of(stage.federation, "INPS"), context) as connection:
        answer = call(connection, Envelope("INAIL", 99, (), FORGED[what]))
    assert isinstance(answer.body, Fault)
    assert answer.body.permanent
    assert "the connection is that of CoC" in answer.body.reason
    assert untouched(stage.inps) == before
    (record, *_) = [
        each
        for each in reversed(stage.inps.records())
        if each["message"] == "a request was refused"
    ]
    assert record["member"] == "CoC"
    assert record["caller"] == "INAIL"


def logged(peer: PeerProcess, message: str, reason: str) -> None:
    """Waits until the log has a line with this message and a reason that begins so."""

    def found() -> bool:
        return any(
            each["message"] == message and str(each.get("reason")).startswith(reason)
            for each in peer.records()
        )

    eventually(found, f"the log has: {message}, {reason}")


def untouched(peer: PeerProcess) -> dict[str, object]:
    """Returns what a refused call must leave as it is."""
    state = peer.health()
    return {name: state[name] for name in ("document", "subscriptions", "epoch", "federation")}


def issued_by(member: NewCertificate) -> NewCertificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    own = new_certificate("CoC", 1.7e9, days=3_000)
    leaf = x509.load_pem_x509_certificate(own.certificate.encode())
    issuer = x509.load_pem_x509_certificate(member.certificate.encode())
    key = serialization.load_pem_private_key(member.key, None)
    signed = (
        x509.CertificateBuilder()
        .subject_name(leaf.subject)
        .issuer_name(issuer.subject)
        .public_key(leaf.public_key())
        .serial_number(7)
        .not_valid_before(leaf.not_valid_before_utc)
        .not_valid_after(leaf.not_valid_after_utc)
        .sign(key, None)  # type: ignore[arg-type]
    )
    return NewCertificate(own.key, signed.public_bytes(serialization.Encoding.PEM).decode())


# --- floods ---------------------------------------------------------------------------------------


def test_handshake_flood_of_one_address_is_bounded_and_others_are_served(stage: Stage) -> None:
    address = address_of(stage.federation, "INPS")
    with ExitStack() as stack:
        flood = [
            stack.enter_context(
                socket.create_connection(address, SOON_S, source_address=("127.0.0.9", 0))
            )
            for _ in range(64)
        ]
        assert fetch_once(stage.federation, stage.folder, certificate("CoC")).sender == "INPS"
        refused = sum(is_closed(each, 0.2) for each in flood[32:])
        assert refused == 32
        assert not any(is_closed(each, 0.0) for each in flood[:32])
        eventually(lambda: all(is_closed(each, 0.0) for each in flood), "handshakes time out")


def is_closed(connection: socket.socket, within_s: float) -> bool:
    connection.settimeout(within_s or 0.001)
    with suppress(TimeoutError):
        try:
            return connection.recv(1) == b""
        except ConnectionError:
            return True
    return False


# --- changes --------------------------------------------------------------------------------------


def arrived(peer: PeerProcess, number: int) -> Callable[[], bool]:
    def look() -> bool:
        answer = peer.ask(PullDeliveries("ada", "1", limit=500))
        assert isinstance(answer, Deliveries)
        return len(answer.deliveries) >= number

    return look


def install(peer: PeerProcess, federation: Federation) -> None:
    """Puts a document in force at a running peer."""
    (peer.configuration.parent / "federation.xml").write_bytes(write_federation(federation))
    assert peer.process is not None
    peer.process.send_signal(1)
    eventually(lambda: peer.health()["document"] == federation.version, "the document is in force")


def test_certificate_changes_under_traffic_and_no_event_is_lost(tmp_path: Path) -> None:
    federation = agencies_over_tls()
    names = list(federation.organisations)
    peers = {name: tls_peer_in(tmp_path / name, federation, name) for name in names}
    new = certificate("INPS", 2)
    with running(peers.values()):
        peers["CoC"].ask(Subscribe("ada", "Enterprise/Holder", id="1"))
        wait_until_stable(peers["CoC"], "ada")
        published = 0

        def publish(number: int) -> None:
            nonlocal published
            for _ in range(number):
                published += 1
                peers["INPS"].ask(change(f"e{published}"))

        publish(10)
        both = federation.with_certificates(
            "INPS", tls=[certificate("INPS").certificate, new.certificate]
        )
        install(peers["CoC"], both)
        publish(10)
        eventually(lambda: peers["INPS"].health()["document"] == 2, "the document spreads")
        tls_files(tmp_path / "INPS", "INPS", new)
        publish(10)
        eventually(
            lambda: "a new TLS certificate is in use" in peers["INPS"].log.read_text(), "the change"
        )
        publish(10)
        only_new = both.with_certificates("INPS", tls=[new.certificate])
        install(peers["INAIL"], only_new)
        publish(10)
        eventually(lambda: peers["CoC"].health()["document"] == 3, "the document spreads")
        publish(10)
        eventually(arrived(peers["CoC"], published), "every event arrives")
        answer = peers["CoC"].ask(PullDeliveries("ada", "1", limit=500))
        assert isinstance(answer, Deliveries)
        assert [each.event for each in answer.deliveries] == [f"e{n + 1}" for n in range(60)]

        # The former certificate opens no connection any more.
        with pytest.raises(ENDED):
            fetch_once(federation, tmp_path, certificate("INPS"), to="CoC")
        found = peers["INPS"].health()["details"]
        assert not [each for each in found if "certificate" in each["kind"]]


def test_open_connection_of_a_removed_certificate_is_closed(tmp_path: Path) -> None:
    federation = agencies_over_tls()
    inps = tls_peer_in(tmp_path / "INPS", federation, "INPS")
    context = context_of(tmp_path, certificate("CoC"))
    with (
        running([inps]),
        connected(address_of(federation, "INPS"), context) as connection,
    ):
        assert fetch(connection, "CoC").sender == "INPS"
        install(inps, federation.without("CoC"))
        with pytest.raises(ENDED):
            fetch(connection, "CoC")
        with pytest.raises(ENDED):
            fetch(connection, "CoC")  # http.client opens a new connection


def test_unusable_key_leaves_the_former_one_in_use_and_health_says_so(tmp_path: Path) -> None:
    federation = agencies_over_tls()
    inps = tls_peer_in(tmp_path / "INPS", federation, "INPS")
    with running([inps]):
        (tmp_path / "INPS" / "INPS.tls.key").write_bytes(certificate("CoC").key)
        eventually(
            lambda: [each for each in inps.health()["details"] if each["kind"] == "key_unusable"],
            "health names the key",
        )
        assert fetch_once(federation, tmp_path, certificate("CoC")).sender == "INPS"
        tls_files(tmp_path / "INPS", "INPS", certificate("INPS"))
        eventually(
            lambda: (
                not [each for each in inps.health()["details"] if each["kind"] == "key_unusable"]
            ),
            "health is well again",
        )
