"""Own seal: the key with which this peer seals what it sends."""

from __future__ import annotations

from typing import Self

from qns.federation.seal_keys import FileSigner
from qns.runtime.key_files import KeyFiles
from qns.runtime.own_key import OwnKey


class OwnSeal(OwnKey[FileSigner]):
    """The `Signer` of the process."""

    @classmethod
    def read(cls, files: KeyFiles) -> Self:
        """Reads the files; raises ValueRefused if they cannot be used."""
        return cls.load(files, "seal", FileSigner.read)

    @property
    def fingerprint(self) -> bytes:
        return self.current().fingerprint

    def sign(self, message: bytes) -> bytes:
        return self.current().sign(message)
