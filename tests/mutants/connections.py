"""Bugs of the defences between organisations: mutual TLS and who may speak for whom."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_C = partial(Mutant, file="qns/runtime/tls_contexts.py", kind="mutual TLS")
_L = partial(Mutant, file="qns/runtime/tls_listener.py", kind="mutual TLS")
_P = partial(Mutant, file="qns/runtime/peer_tls.py", kind="mutual TLS")
_S = partial(Mutant, file="qns/runtime/server.py", kind="mutual TLS")
_O = partial(Mutant, file="qns/runtime/own_certificate.py", kind="mutual TLS")

CONNECTIONS = (
    _C(
        name="client-certificate-optional",
        breaks="A client without a certificate gets through the handshake.",
        old="    context.verify_mode = ssl.CERT_REQUIRED",
        new="    context.verify_mode = ssl.CERT_OPTIONAL",
    ),
    _C(
        name="older-tls-accepted",
        breaks="Peers use TLS 1.2, whose handshakes show the certificates.",
        old="    context.minimum_version = ssl.TLSVersion.TLSv1_3",
        new="    context.minimum_version = ssl.TLSVersion.TLSv1_2",
    ),
    _P(
        name="certificate-not-compared",
        breaks="A certificate that a member has issued counts as that of a member.",
        old="        fingerprint = fingerprint_at(transport)\n        self.take_document()\n",
        new="        self.take_document()\n"
        "        fingerprint = fingerprint_at(transport)\n"
        "        fingerprint = fingerprint if fingerprint in self._known else min(self._known)\n",
    ),
    _P(
        name="connection-of-former-member-kept",
        breaks="A removed certificate goes on over its open connections.",
        old="            if identity is not None and not self.organisation(identity):",
        new="            if False:",
    ),
    _P(
        name="former-pin-used",
        breaks="After a change of certificates, calls use the former ones.",
        old="        if pin is None or pin.certificates != certificates "
        "or pin.version != self.own.version:",
        new="        if pin is None:",
    ),
    _S(
        name="forged-sender-accepted",
        breaks="A member speaks for another one.",
        old="        if isinstance(input, Received) "
        "and member not in (None, input.envelope.sender):",
        new="        if False:",
    ),
    _S(
        name="port-peer-without-tls",
        breaks="A program on the machine of a peer speaks for any member.",
        old="            if port is Port.PEER and self.tls is not None:",
        new="            if False:",
    ),
    _S(
        name="health-shown-to-members",
        breaks="Members see the whole health of each other.",
        old="            body = json.dumps(self.health.for_members(), ensure_ascii=False).encode()",
        new="            body = json.dumps(self.health.state(), ensure_ascii=False).encode()",
    ),
    _L(
        name="handshakes-of-an-address-unbounded",
        breaks="One address uses up all handshakes.",
        old="        if self._unfinished[origin] >= MOST_HANDSHAKES_PER_ADDRESS:",
        new="        if False:",
    ),
    _O(
        name="changed-key-not-read",
        breaks="A renewed certificate is used only after a restart or SIGHUP.",
        old="        if stamp == self._stamp and not always:",
        new="        if not always:",
    ),
)
