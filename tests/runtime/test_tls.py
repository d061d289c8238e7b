"""Mutual TLS between peer processes: whoever is not the member is refused."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

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
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.iil.requests import Subscribe
from qns.runtime.causes import EXPIRED as HAS_EXPIRED
from qns.runtime.causes import (
    NO_CERTIFICATE,
    NO_TLS_1_3,
    NOT_YET_VALID,
    UNKNOWN_CERTIFICATE,
)
from qns.runtime.server import BODY_WITHIN_S
from qns.soap.parts import ViewPart
from qns.soap.peer_client import write_call
from tests.certificates import authority, certificate, expired, issued_by, not_yet_valid
from tests.runtime.peers import (
    PeerProcess,
    agencies_over_tls,
    eventually,
    running,
    tls_peer_in,
)
from tests.runtime.tls_stage import (
    ENDED,
    SOON_S,
    address_of,
    call,
    connected,
    context_of,
    fetch,
    fetch_once,
    logged,
)

pytestmark = pytest.mark.slow

EXPIRED, EARLY = expired("CoC"), not_yet_valid("CoC")
"""Certificates of CoC and, because an organisation has two at most, of INAIL."""
AUTHORITY = authority("INPS")
"""A certificate of INPS with which it can issue others."""


class Stage:
    """Two peers over TLS. CoC is no process: the tests call in its name, or pretend to."""

    def __init__(self, folder: Path) -> None:
        federation = agencies_over_tls()
        self.federation = federation.with_certificates(
            "CoC", tls=[certificate("CoC").certificate, EXPIRED.certificate]
        ).with_certificates("INAIL", tls=[certificate("INAIL").certificate, EARLY.certificate])
        self.federation = self.federation.with_certificates(
            "INPS", tls=[certificate("INPS").certificate, AUTHORITY.certificate]
        )
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


def test_wsdl_for_members_has_the_endpoint_of_the_document(stage: Stage) -> None:
    context = context_of(stage.folder, certificate("CoC"))
    with connected(address_of(stage.federation, "INPS"), context) as connection:
        connection.request("GET", "/peer?wsdl")
        wsdl = connection.getresponse().read().decode()
    assert f'location="{stage.federation["INPS"].endpoint}peer"' in wsdl
    assert stage.inps.endpoint not in wsdl


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
    issued = issued_by(AUTHORITY)
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


def untouched(peer: PeerProcess) -> dict[str, object]:
    """Returns what a refused call must leave as it is."""
    state = peer.health()
    return {name: state[name] for name in ("document", "subscriptions", "epoch", "federation")}


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


def test_request_that_trickles_inside_tls_is_ended(stage: Stage) -> None:
    context = context_of(stage.folder, certificate("CoC"))
    started = monotonic()
    with connected(address_of(stage.federation, "INPS"), context) as slow:
        slow.timeout = 3 * BODY_WITHIN_S
        slow.putrequest("POST", "/peer")
        slow.putheader("Content-Type", "text/xml; charset=utf-8")
        slow.putheader("Content-Length", "1000")
        slow.endheaders(b"<")
        answer = fetch_once(stage.federation, stage.folder, certificate("CoC"))
        assert answer.sender == "INPS"
        assert slow.getresponse().status == 408
    assert monotonic() - started < 2 * BODY_WITHIN_S
