"""Key checks: whether the keys and certificates of a configuration can be used."""

from __future__ import annotations

from collections.abc import Iterator
from time import time

from qns.errors import QnsError
from qns.runtime.certificate_health import of_certificate
from qns.runtime.configuration import Configuration
from qns.runtime.findings import Finding, Verdict
from qns.runtime.own_certificate import OwnCertificate
from qns.runtime.own_seal import OwnSeal
from qns.runtime.peer_tls import PeerTls
from qns.runtime.reasons import DEGRADED
from qns.runtime.seal_health import of_call_key, of_own_seal
from qns.runtime.ws_security import SECTION, read_call_key


def check_tls(configuration: Configuration) -> tuple[PeerTls | None, list[Finding]]:
    """Returns the TLS of this peer if it can be used, and what is found of its files."""
    if configuration.tls is None:
        return None, []
    federation = configuration.federation
    try:
        own = OwnCertificate.read(configuration.tls)
        if configuration.local_tls is not None:
            OwnCertificate.read(configuration.local_tls)
    except QnsError as error:
        return None, [Finding(Verdict.FAIL, "tls", f"{error.place}: {error.problem}", error.remedy)]
    found = [
        Finding(
            Verdict.WARN if reason.status == DEGRADED else Verdict.FAIL,
            "tls",
            reason.words,
            reason.remedy,
        )
        for reason in of_certificate(own, federation, configuration.organisation, time())
    ]
    words = f"the certificate {own.certificate.short} and its key fit"
    return PeerTls(own, lambda: federation), found or [Finding(Verdict.OK, "tls", words)]


def check_call_key(configuration: Configuration) -> Iterator[Finding]:
    """Yields what is found of the key for signed calls, if there is one."""
    try:
        own = read_call_key(configuration.ws_security)
    except QnsError as error:
        words = f"{error.place}: {error.problem}"
        yield Finding(Verdict.FAIL, SECTION, words, error.remedy)
        return
    if own is None:
        return
    me, federation = configuration.organisation, configuration.federation
    reasons = list(of_call_key(own, federation, me, time()))
    for reason in reasons:
        verdict = Verdict.WARN if reason.status == DEGRADED else Verdict.FAIL
        yield Finding(verdict, SECTION, reason.words, reason.remedy)
    if not reasons:
        words = f"the certificate {own.certificate.short} and its key fit"
        yield Finding(Verdict.OK, SECTION, words)


def check_seal(configuration: Configuration) -> Iterator[Finding]:
    me, federation = configuration.organisation, configuration.federation
    own = None
    if configuration.seal is not None:
        try:
            own = OwnSeal.read(configuration.seal)
        except QnsError as error:
            words = f"{error.place}: {error.problem}"
            yield Finding(Verdict.FAIL, "seal", words, error.remedy)
            return
    reasons = list(of_own_seal(own, federation, me, time()))
    for reason in reasons:
        verdict = Verdict.WARN if reason.status == DEGRADED else Verdict.FAIL
        yield Finding(verdict, "seal", reason.words, reason.remedy)
    if own is not None and not reasons:
        words = f"the certificate {own.certificate.short} and its key fit"
        yield Finding(Verdict.OK, "seal", words)
