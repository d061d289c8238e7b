"""zeep signs its requests with xmlsec, and a peer that requires signatures accepts only these."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any

import pytest
from zeep import Client
from zeep.exceptions import Fault
from zeep.transports import Transport

from qns.federation.document import Federation
from qns.federation.new_certificate import new_certificate
from tests.certificates import certificate
from tests.runtime.peers import PeerProcess, agencies_over_tls, running, tls_files, tls_peer_in
from tests.soap.foreign.test_zeep import HELLO, ORIGIN, fault_fields
from tests.soap.foreign.zeep_signer import Addressing, Signer

SIGNED = '\n[ws_security]\nrequired_of = ["CoC"]\n'


class Federated:
    """A peer of INPS over mutual TLS, and what CoC needs to call it with zeep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        made = new_certificate("CoC", time(), algorithm="rsa-3072", is_tls=False)
        self.files = folder / "calls.key", folder / "calls.pem"
        self.files[0].write_bytes(made.key)
        self.files[1].write_text(made.certificate, encoding="ascii")
        self.federation = agencies_over_tls()
        coc = replace(self.federation["CoC"], seals=(made.certificate,))
        others = {**self.federation.organisations, "CoC": coc}
        self.federation: Federation = replace(self.federation, organisations=others)
        tls_files(folder, "CoC", certificate("CoC"))
        self.peer: PeerProcess = tls_peer_in(folder / "INPS", self.federation, "INPS", SIGNED)

    @property
    def address(self) -> str:
        return f"{self.federation['INPS'].endpoint}peer"

    def service(self, **how: Any) -> Any:
        """Returns the port Peer of INPS for zeep, with the TLS certificate of CoC."""
        transport = Transport()
        transport.session.cert = (
            str(self.folder / "CoC.tls.pem"),
            str(self.folder / "CoC.tls.key"),
        )
        trusted = self.folder / "inps.pem"
        trusted.write_text(certificate("INPS").certificate, encoding="ascii")
        transport.session.mount("https://", _ByCertificate(trusted))
        client = Client(f"{self.address}?wsdl", transport=transport, **how)
        return client.create_service(client.service._binding.name, self.address)


class _ByCertificate:
    """Makes requests trust one certificate, whatever the host name."""

    def __new__(cls, trusted: Path) -> Any:
        from requests.adapters import HTTPAdapter

        context = ssl.create_default_context(cafile=str(trusted))
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN

        class Adapter(HTTPAdapter):
            def init_poolmanager(self, *args: Any, **given: Any) -> None:
                super().init_poolmanager(*args, **given, ssl_context=context, assert_hostname=False)

            def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
                super().cert_verify(conn, url, str(trusted), cert)

        return Adapter()


@pytest.fixture
def federated(tmp_path: Path) -> Federated:
    return Federated(tmp_path)


def test_signed_request_of_zeep_is_accepted_and_an_unsigned_one_refused(
    federated: Federated,
) -> None:
    with running([federated.peer]):
        plain = federated.service(plugins=[Addressing(federated.address)])
        with pytest.raises(Fault) as caught:
            plain.hello(origin=ORIGIN, hello=HELLO)
        assert fault_fields(caught.value)["kind"] == "RefusedFault"
        assert "must be signed" in fault_fields(caught.value)["problem"]
        signing = federated.service(
            plugins=[Addressing(federated.address)], wsse=Signer(*federated.files)
        )
        answer = signing.hello(origin=ORIGIN, hello=HELLO)
        assert answer.origin.organisation == "INPS"
        assert signing.hello(origin=ORIGIN, hello=HELLO).origin.organisation == "INPS"


def test_signed_request_of_zeep_for_another_address_is_refused(federated: Federated) -> None:
    with running([federated.peer]):
        elsewhere = federated.service(
            plugins=[Addressing("https://elsewhere.example/peer")], wsse=Signer(*federated.files)
        )
        with pytest.raises(Fault) as caught:
            elsewhere.hello(origin=ORIGIN, hello=HELLO)
        assert "not the address of this peer" in fault_fields(caught.value)["problem"]
