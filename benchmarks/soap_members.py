"""The members of a benchmark's federation, with or without mutual TLS, seals and WS-Security."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from time import time
from typing import Self

from qns.d2q.shipped import WEATHER
from qns.edl.seals import Sealer
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.federation.seal_keys import FileSigner
from qns.runtime.key_files import KeyFiles
from qns.runtime.own_certificate import OwnCertificate
from qns.runtime.tls_contexts import client_context, server_context
from qns.soap.ws_signing import CallSigner

HOSTED = frozenset(("Report", "Report/Wind"))
FEDERATION = "bench"


class Security(StrEnum):
    PLAIN = "plain loopback"
    TLS = "mutual TLS"
    SEALED = "mutual TLS and seals"
    SIGNED = "mutual TLS, seals and WS-Security"
    """Each request is signed besides."""


@dataclass(slots=True)
class Members:
    """Keys and certificates of all members, in files of a folder."""

    folder: Path
    security: Security
    tls: dict[str, NewCertificate] = field(default_factory=dict)
    seals: dict[str, NewCertificate] = field(default_factory=dict)
    calls: dict[str, NewCertificate] = field(default_factory=dict)
    """The keys with which requests are signed."""

    @classmethod
    def make(cls, folder: Path, security: Security, names: Iterable[str]) -> Self:
        members = cls(folder, security)
        for name in names:
            if security is not Security.PLAIN:
                members.tls[name] = new_certificate(name, time())
                members._write(f"{name}.tls", members.tls[name])
            if security in (Security.SEALED, Security.SIGNED):
                members.seals[name] = new_certificate(name, time(), is_tls=False)
                members._write(f"{name}.seal", members.seals[name])
            if security is Security.SIGNED:
                members.calls[name] = new_certificate(
                    name, time(), algorithm="ecdsa-p256", is_tls=False
                )
        return members

    def organisation(self, name: str, port: int, path: str = "") -> Organisation:
        scheme = "http" if self.security is Security.PLAIN else "https"
        endpoint = f"{scheme}://127.0.0.1:{port}/{path}"
        tls, seals, calls = (
            (made[name].certificate,) if name in made else ()
            for made in (self.tls, self.seals, self.calls)
        )
        return Organisation(name, HOSTED, endpoint, tls, seals=seals + calls)

    def configuration(self, name: str, federation: Federation, port: int, local: int) -> Path:
        """Writes the configuration of a peer; with TLS its users have a port of their own."""
        (self.folder / "federation.xml").write_bytes(write_federation(federation))
        sections = "".join(
            f'[{kind}]\ncertificate = "{name}.{kind}.pem"\nkey = "{name}.{kind}.key"\n'
            for kind, made in (("tls", self.tls), ("seal", self.seals))
            if name in made
        )
        others = [each for each in self.calls if each != name]
        if others:
            sections += f"[ws_security]\nrequired_of = {others}\n"
        users = f'local = "127.0.0.1:{local}"\n' if self.tls else ""
        path = self.folder / f"{name}.toml"
        path.write_text(
            f'organisation = "{name}"\nfederation = "federation.xml"\n'
            f'listen = "127.0.0.1:{port}"\nlineage = "{name}.db.lineage"\n{users}'
            f'[log]\nlevel = "warning"\n{sections}',
            encoding="utf-8",
        )
        return path

    def client(self, name: str, to: str) -> ssl.SSLContext | None:
        """Returns the context of the calls of one member to another; None without TLS."""
        if not self.tls:
            return None
        return client_context(self._own(name), [self.tls[to].certificate])

    def server(self, name: str, clients: Iterable[str]) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        return server_context(self._own(name), [self.tls[each].certificate for each in clients])

    def sealer(self, name: str) -> Sealer | None:
        """Returns what seals the notifications of a simulated producer; None without seals."""
        made = self.seals.get(name)
        return Sealer(name, FileSigner.read(made.certificate, made.key)) if made else None

    def call_signer(self, name: str) -> CallSigner | None:
        """Returns what signs the requests of a simulated producer; None without WS-Security."""
        made = self.calls.get(name)
        return CallSigner.read(made.certificate, made.key) if made else None

    def federation(self, organisations: Iterable[Organisation]) -> Federation:
        return Federation(FEDERATION, WEATHER, {each.name: each for each in organisations})

    def _own(self, name: str) -> OwnCertificate:
        return OwnCertificate.read(self._files(f"{name}.tls"))

    def _files(self, name: str) -> KeyFiles:
        return KeyFiles(self.folder / f"{name}.pem", self.folder / f"{name}.key")

    def _write(self, name: str, made: NewCertificate) -> None:
        files = self._files(name)
        files.certificate.write_text(made.certificate, encoding="ascii")
        files.key.touch(mode=0o600)
        files.key.write_bytes(made.key)
