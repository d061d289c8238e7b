"""Own certificate: the key and the certificate of this peer, read again when their files change.

A new file that cannot be used leaves the former key and certificate in use.
"""

from __future__ import annotations

import logging
import os
import ssl
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import NoReturn

from qns.errors import QnsError, ValueRefused
from qns.federation.certificate import Certificate
from qns.runtime.key_files import MAKE, KeyFiles, read_chain, read_file, stamp_of
from qns.runtime.logs import log_event


@dataclass(slots=True, eq=False)
class OwnCertificate:
    files: KeyFiles
    certificate: Certificate
    version: int
    """Counts the changes, so that contexts with a former key are replaced."""
    problem: str = ""
    """Why the files as they are now cannot be used; empty if they are in use."""
    _content: bytes = b""
    _stamp: object = None

    @classmethod
    def read(cls, files: KeyFiles) -> OwnCertificate:
        """Reads the files; raises ValueRefused if they cannot be used."""
        stamp = stamp_of(files)
        content, certificate = _read(files)
        return cls(files, certificate, 1, _content=content, _stamp=stamp)

    def refresh(self, *, always: bool = False) -> bool:
        """Reads the files if they have changed; returns True if a new certificate is in use."""
        stamp = stamp_of(self.files)
        if stamp == self._stamp and not always:
            return False
        self._stamp = stamp
        try:
            content, certificate = _read(self.files)
        except QnsError as problem:
            if self.problem != str(problem):
                reason = self.problem = str(problem)
                log_event(logging.ERROR, "the former TLS certificate stays in use", reason=reason)
            return False
        self.problem = ""
        if content == self._content:
            return False
        self._content, self.certificate = content, certificate
        self.version += 1
        log_event(
            logging.INFO, "a new TLS certificate is in use", certificate=certificate.fingerprint
        )
        return True

    def load_into(self, context: ssl.SSLContext) -> None:
        """Gives the key and the certificate to a context."""
        _load(context, self._content)


def _read(files: KeyFiles) -> tuple[bytes, Certificate]:
    """Returns the content for a context, and the certificate; raises ValueRefused."""
    chain, certificate = read_chain(files)
    key = read_file(files.key, "key")
    content = key + b"\n" + chain
    try:
        _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), content)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            words = f"the key does not fit the certificate {files.certificate}"
            remedy = "put the two files that belong together"
        else:
            words = "the file has no private key in PEM that can be used"
            remedy = MAKE
        raise ValueRefused(words, place=str(files.key), remedy=remedy) from None
    except _HasPassword:
        raise ValueRefused(
            "the key has a password", place=str(files.key), remedy="store it without one, mode 0600"
        ) from None
    return content, certificate


class _HasPassword(Exception):
    pass


def _load(context: ssl.SSLContext, content: bytes) -> None:
    """Loads a key and certificates; the library reads only files, so the content gets one."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("tls", os.MFD_CLOEXEC)
        try:
            os.write(number, content)
            context.load_cert_chain(f"/proc/self/fd/{number}", password=_no_password)
        finally:
            os.close(number)
        return
    with NamedTemporaryFile() as file:  # only this user can read it
        file.write(content)
        file.flush()
        context.load_cert_chain(file.name, password=_no_password)


def _no_password() -> NoReturn:
    raise _HasPassword
