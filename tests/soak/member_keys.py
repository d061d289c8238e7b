"""Member keys: the certificates of one organisation, in files, and the contexts of its proxy."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Self

from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.runtime.key_files import KeyFiles
from qns.runtime.own_certificate import OwnCertificate
from qns.runtime.tls_contexts import client_context, server_context


@dataclass(frozen=True, slots=True)
class MemberKeys:
    tls: str
    """The certificate of its connections, in PEM."""
    seal: str
    _own: OwnCertificate

    @property
    def fingerprint(self) -> str:
        return self._own.certificate.fingerprint

    @classmethod
    def make(cls, folder: Path, name: str) -> Self:
        """Makes the keys of an organisation and writes the files that its peer reads."""
        tls = new_certificate(name, time())
        seal = new_certificate(name, time(), is_tls=False)
        files = _write(folder, f"{name}.tls", tls)
        _write(folder, f"{name}.seal", seal)
        return cls(tls.certificate, seal.certificate, OwnCertificate.read(files))

    def as_server(self, members: Mapping[str, MemberKeys]) -> ssl.SSLContext:
        """Returns the context with which the proxy accepts the calls of members in its place."""
        return server_context(self._own, [each.tls for each in members.values()])

    def as_client(self, receiver: MemberKeys) -> ssl.SSLContext:
        """Returns the context with which the proxy calls another member in its name."""
        return client_context(self._own, [receiver.tls])


def _write(folder: Path, name: str, made: NewCertificate) -> KeyFiles:
    files = KeyFiles(folder / f"{name}.pem", folder / f"{name}.key")
    files.certificate.write_text(made.certificate, encoding="ascii")
    files.key.touch(mode=0o600)
    files.key.write_bytes(made.key)
    return files
