"""WS-Security of the process: whose requests must be signed, and which calls this peer signs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import time
from typing import Any, Final

from qns.errors import NameNotKnown, QnsError, ValueRefused, show
from qns.federation.certificate import read_certificate
from qns.federation.document import Federation
from qns.federation.seal_keys import read_seal_key
from qns.runtime.addresses import peer_url
from qns.runtime.key_files import KeyFiles
from qns.runtime.own_key import OwnKey
from qns.runtime.toml_tables import refuse_unknown, text_of
from qns.soap.ws_security import MessageSecurity
from qns.soap.ws_signing import CallSigner

SECTION: Final = "ws_security"
_KEYS: Final = ("required_of", "sign_for", "certificate", "key")


@dataclass(frozen=True, slots=True)
class WsSecuritySettings:
    """The section [ws_security]. With it, signed requests of every member are understood."""

    required_of: frozenset[str] = frozenset()
    """The organisations whose unsigned requests are refused."""
    sign_for: frozenset[str] = frozenset()
    """The organisations whose calls are signed."""
    files: KeyFiles | None = None
    """The key and the certificate with which this peer signs its calls."""


def read_settings(
    section: Mapping[str, Any] | None, folder: Path, federation: Federation
) -> WsSecuritySettings | None:
    """Reads the section; raises QnsError for a wrong one."""
    if section is None:
        return None
    if find_spec("signxml") is None:
        raise QnsError(
            "the library signxml is not installed",
            place=SECTION,
            remedy='install it: pip install "qns[ws-security]"',
        )
    refuse_unknown(section, _KEYS, f"key of [{SECTION}]")
    required_of, sign_for = (
        _organisations(section, key, federation) for key in ("required_of", "sign_for")
    )
    files = None
    if sign_for or "certificate" in section or "key" in section:
        try:
            certificate = text_of(section, "certificate", "INPS.calls.pem", required=True)
            key = text_of(section, "key", "INPS.calls.key", required=True)
        except QnsError as error:
            raise error.at(SECTION) from None
        files = KeyFiles(folder / certificate, folder / key)
    return WsSecuritySettings(required_of, sign_for, files)


def _organisations(section: Mapping[str, Any], key: str, federation: Federation) -> frozenset[str]:
    given = section.get(key, [])
    place = f"{SECTION}: {key}"
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise ValueRefused(
            f"{show(given)} is no list of organisations",
            place=place,
            remedy=f'write a line such as {key} = ["CoC"]',
        )
    for name in given:
        if name not in federation:
            raise NameNotKnown("organisation", name, federation.organisations, place=place)
    return frozenset(given)


def read_call_key(settings: WsSecuritySettings | None) -> OwnKey[CallSigner] | None:
    """Reads the key for signed calls; raises ValueRefused if it cannot be used."""
    if settings is None or settings.files is None:
        return None
    return OwnKey.load(settings.files, "key for signed calls", CallSigner.read)


@dataclass(slots=True, eq=False)
class SignedMessages:
    """What checks the requests of a running peer, and what signs its calls."""

    me: str
    settings: WsSecuritySettings
    federation: Callable[[], Federation]
    """Returns the document in force."""
    key: OwnKey[CallSigner] | None = None
    _document: Federation | None = None
    _known: dict[str, tuple[str, str]] = field(default_factory=dict)

    def checks(self, now: Callable[[], float] = time) -> MessageSecurity:
        return MessageSecurity(self.settings.required_of, self._certificates, self._addresses, now)

    def envelope_for(self, to: str) -> Callable[[str, str], bytes] | None:
        """Returns what makes a signed envelope of a content and a MessageID, if `to` gets any."""
        if self.key is None or to not in self.settings.sign_for:
            return None
        signer, address = self.key.current(), peer_url(self.federation()[to].endpoint)
        return lambda content, id: signer.envelope(content, to=address, message_id=id, now=time())

    def _certificates(self) -> Mapping[str, tuple[str, str]]:
        document = self.federation()
        if document is not self._document:
            self._document = document
            self._known = {
                read_certificate(pem).fingerprint: (name, pem)
                for name, organisation in document.organisations.items()
                for pem in organisation.seals
                if _is_usable(pem)
            }
        return self._known

    def _addresses(self) -> Iterable[str]:
        document = self.federation()
        if self.me not in document:
            return ()
        endpoint = document[self.me].endpoint
        return endpoint, peer_url(endpoint)


def _is_usable(pem: str) -> bool:
    try:
        read_seal_key(pem)
    except QnsError:
        return False
    return True
