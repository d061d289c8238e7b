"""Certificates that change while peers run, and what operators see of mutual TLS."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from qns.federation.document_xml import write_federation
from qns.iil.requests import Deliveries, PullDeliveries, Subscribe
from qns.runtime.causes import (
    TLS_BROKEN_OFF,
    TLS_REFUSED,
    UNKNOWN_CERTIFICATE,
)
from tests.certificates import certificate
from tests.runtime.peers import (
    PeerProcess,
    agencies_over_tls,
    change,
    eventually,
    free_ports,
    running,
    tls_files,
    tls_peer_in,
    wait_until_stable,
)
from tests.runtime.tls_stage import (
    ENDED,
    address_of,
    connected,
    context_of,
    fetch,
    fetch_once,
    install,
    logged,
    words_of,
)

pytestmark = pytest.mark.slow


# --- changes --------------------------------------------------------------------------------------


def arrived(peer: PeerProcess, number: int) -> Callable[[], bool]:
    def look() -> bool:
        answer = peer.ask(PullDeliveries("ada", "1", limit=500))
        assert isinstance(answer, Deliveries)
        return len(answer.deliveries) >= number

    return look


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


# --- the operator ---------------------------------------------------------------------------------


def test_check_and_connections_understand_tls(tmp_path: Path) -> None:
    federation = agencies_over_tls()
    peers = [tls_peer_in(tmp_path / name, federation, name) for name in ("INPS", "INAIL")]
    inps, inail = peers[0], federation["INAIL"].endpoint
    with running(peers):
        _check_both(inps, inail)


def _check_both(inps: PeerProcess, inail: str) -> None:
    for command in ("check", "connections"):
        found = words_of(inps, command)
        assert any(each.startswith(f"OK INAIL: {inail} answers in") for each in found), found
        assert any(
            each.startswith("WARN CoC:") and each.endswith("nobody listens there") for each in found
        )
    found = words_of(inps, "check")
    assert any(each.startswith("OK tls: the certificate") for each in found)
    assert any("INPS is running" in each for each in found)


def test_second_peer_of_an_organisation_does_not_start(tmp_path: Path) -> None:
    federation = agencies_over_tls()
    with running([tls_peer_in(tmp_path / "INPS", federation, "INPS")]):
        _refuse_a_copy(tls_peer_in(tmp_path / "copy", federation, "INPS"))


def _refuse_a_copy(copy: PeerProcess) -> None:
    other = free_ports(1)[0]
    text = copy.configuration.read_text("utf-8")
    copy.configuration.write_text(f'listen = "127.0.0.1:{other}"\n{text}', "utf-8")
    found = words_of(copy, "check")
    assert any("a peer of INPS runs already" in each for each in found), found
    with pytest.raises(AssertionError, match="a peer of INPS runs already"):
        copy.start()
    assert copy.process is not None
    assert copy.process.wait(10) != 0
    copy.process.stdout.close()  # type: ignore[union-attr]


def test_connections_name_a_certificate_that_the_document_does_not(tmp_path: Path) -> None:
    federation = agencies_over_tls()
    inps = tls_peer_in(tmp_path / "INPS", federation, "INPS")
    wrong = tls_peer_in(tmp_path / "CoC", federation, "CoC", own=certificate("CoC", 2))
    with running([inps, wrong]):
        found = words_of(inps, "connections")
        assert any(
            each.startswith("WARN CoC:") and each.endswith(UNKNOWN_CERTIFICATE) for each in found
        ), found
        found = words_of(wrong, "connections")
        assert any(
            each.startswith("WARN INPS:") and each.endswith((TLS_REFUSED, TLS_BROKEN_OFF))
            for each in found
        ), found
        kinds = [each["kind"] for each in wrong.health()["details"]]
        assert "certificate_unnamed" in kinds
        logged(inps, "a TLS handshake failed", UNKNOWN_CERTIFICATE)


def test_users_can_be_served_over_tls(tmp_path: Path) -> None:
    federation = agencies_over_tls()
    inps = tls_peer_in(tmp_path / "INPS", federation, "INPS")
    text = inps.configuration.read_text("utf-8")
    section = '\n[local_tls]\ncertificate = "INPS.tls.pem"\nkey = "INPS.tls.key"\n'
    inps.configuration.write_text(text + section, "utf-8")
    with running([inps]):
        port = urlsplit(inps.endpoint).port
        assert port is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(cadata=certificate("INPS").certificate)
        with connected(("127.0.0.1", port), context) as connection:
            connection.request("GET", "/health")
            assert json.loads(connection.getresponse().read())["organisation"] == "INPS"
        found = words_of(inps, "check")
        assert any("INPS is running" in each for each in found), found


def test_operator_installs_a_document_with_https_endpoints(tmp_path: Path) -> None:
    federation = agencies_over_tls()
    inps = tls_peer_in(tmp_path / "INPS", federation, "INPS")
    file = tmp_path / "next.xml"
    file.write_bytes(write_federation(federation.without("CoC")))
    with running([inps]):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "qns.cli",
                "peer",
                "document",
                "install",
                inps.configuration,
                file,
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert inps.health()["document"] == 2
