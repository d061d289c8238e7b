"""Certificates for tests: a few, made once, and any others on demand."""

from __future__ import annotations

from functools import cache
from time import time

from qns.federation.new_certificate import NewCertificate, new_certificate

DAY_S = 86_400.0


@cache
def certificate(name: str, number: int = 1) -> NewCertificate:
    """Returns a key and a certificate that are the same whenever a test asks for them."""
    return new_certificate(name, time() + number)


def expired(name: str) -> NewCertificate:
    return new_certificate(name, time() - 30 * DAY_S, days=29)


def not_yet_valid(name: str) -> NewCertificate:
    return new_certificate(name, time() + 30 * DAY_S)
