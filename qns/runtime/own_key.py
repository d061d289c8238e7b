"""Own key: a private key of this peer and its certificate, read again when the files change.

A new file that cannot be used leaves the former key in use.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final, Generic, Self, TypeVar

from qns.errors import QnsError
from qns.federation.certificate import Certificate
from qns.runtime.key_files import KeyFiles, read_chain, read_file, stamp_of
from qns.runtime.logs import log_event

K = TypeVar("K")
_LOOKED_AT_EVERY_S: Final = 5.0


@dataclass(slots=True, eq=False)
class OwnKey(Generic[K]):
    files: KeyFiles
    name: str
    """What the key is for, in messages."""
    certificate: Certificate
    _make: Callable[[str, bytes], K]
    """Makes what signs from the certificate and the key, both in PEM."""
    _key: K
    problem: str = ""
    """Why the files as they are now cannot be used; empty if they are in use."""
    _stamp: object = None
    _looked_at: float = 0.0

    @classmethod
    def load(cls, files: KeyFiles, name: str, make: Callable[[str, bytes], K]) -> Self:
        """Reads the files; raises ValueRefused if they cannot be used."""
        stamp = stamp_of(files)
        certificate, key = _read(files, make)
        return cls(files, name, certificate, make, key, _stamp=stamp, _looked_at=monotonic())

    def refresh(self) -> None:
        """Reads the files again if they have changed."""
        self._looked_at = monotonic()
        stamp = stamp_of(self.files)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            certificate, key = _read(self.files, self._make)
        except QnsError as problem:
            self.problem = str(problem)
            log_event(logging.ERROR, f"the former {self.name} stays in use", reason=self.problem)
            return
        self.problem = ""
        if certificate.fingerprint != self.certificate.fingerprint:
            words = f"a new {self.name} is in use"
            log_event(logging.INFO, words, certificate=certificate.fingerprint)
        self.certificate, self._key = certificate, key

    def current(self) -> K:
        if monotonic() - self._looked_at >= _LOOKED_AT_EVERY_S:
            self.refresh()
        return self._key


def _read(files: KeyFiles, make: Callable[[str, bytes], K]) -> tuple[Certificate, K]:
    _, certificate = read_chain(files)
    key = read_file(files.key, "key")
    try:
        return certificate, make(certificate.pem, key)
    except QnsError as problem:
        raise problem.at(str(files.key)) from None
