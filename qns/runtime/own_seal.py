"""Own seal: the key with which this peer seals, read again when its files change.

A new file that cannot be used leaves the former key in use.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import monotonic
from typing import Final

from qns.errors import QnsError
from qns.federation.certificate import Certificate
from qns.federation.seal_keys import FileSigner
from qns.runtime.key_files import KeyFiles, read_chain, read_file, stamp_of
from qns.runtime.logs import log_event

_LOOKED_AT_EVERY_S: Final = 5.0


@dataclass(slots=True, eq=False)
class OwnSeal:
    """The `Signer` of the process."""

    files: KeyFiles
    certificate: Certificate
    problem: str = ""
    """Why the files as they are now cannot be used; empty if they are in use."""
    _signer: FileSigner | None = None
    _stamp: object = None
    _looked_at: float = 0.0

    @classmethod
    def read(cls, files: KeyFiles) -> OwnSeal:
        """Reads the files; raises ValueRefused if they cannot be used."""
        stamp = stamp_of(files)
        certificate, signer = _read(files)
        return cls(files, certificate, _signer=signer, _stamp=stamp, _looked_at=monotonic())

    @property
    def fingerprint(self) -> bytes:
        return self._current().fingerprint

    def sign(self, message: bytes) -> bytes:
        return self._current().sign(message)

    def refresh(self) -> None:
        """Reads the files again if they have changed."""
        self._looked_at = monotonic()
        stamp = stamp_of(self.files)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            certificate, signer = _read(self.files)
        except QnsError as problem:
            self.problem = str(problem)
            log_event(logging.ERROR, "the former seal stays in use", reason=self.problem)
            return
        self.problem = ""
        if certificate.fingerprint != self.certificate.fingerprint:
            log_event(logging.INFO, "a new seal is in use", certificate=certificate.fingerprint)
        self.certificate, self._signer = certificate, signer

    def _current(self) -> FileSigner:
        if monotonic() - self._looked_at >= _LOOKED_AT_EVERY_S:
            self.refresh()
        assert self._signer is not None
        return self._signer


def _read(files: KeyFiles) -> tuple[Certificate, FileSigner]:
    _, certificate = read_chain(files)
    key = read_file(files.key, "key")
    try:
        return certificate, FileSigner.read(certificate.pem, key)
    except QnsError as problem:
        raise problem.at(str(files.key)) from None
