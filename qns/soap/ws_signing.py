"""Signs calls as WS-Security wants it, for receivers that ask for a signature of each message."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from lxml import etree

from qns.federation.call_key import CallKey
from qns.soap.codec import text_content
from qns.soap.envelope import ADDRESSING, SOAP
from qns.soap.ws_security import (
    BASE64,
    DS,
    ECDSA_SHA256,
    EXCLUSIVE,
    RSA_SHA256,
    WSSE,
    WSU,
    X509_V3,
)
from qns.soap.ws_security import SECURITY as SECURITY_TAG

if TYPE_CHECKING:
    from signxml.signer import XMLSigner

VALID_S: Final = 300.0
"""How long a signed call is valid."""
_SIGNED: Final = ("to", "message-id", "timestamp", "body")
_KEY_INFO: Final = (
    f'<ds:KeyInfo xmlns:ds="{DS}" xmlns:wsse="{WSSE}"><wsse:SecurityTokenReference>'
    f'<wsse:Reference URI="#token" ValueType="{X509_V3}"/>'
    "</wsse:SecurityTokenReference></ds:KeyInfo>"
)


@dataclass(frozen=True, slots=True)
class CallSigner:
    key: CallKey
    token: str
    """The certificate in base64."""

    @classmethod
    def read(cls, certificate: str, key: bytes) -> CallSigner:
        """Reads a certificate and its key, both in PEM; raises ValueRefused if they do not fit."""
        found = CallKey.read(certificate, key)
        return cls(found, b64encode(found.der).decode())

    def envelope(self, content: str, *, to: str, message_id: str, now: float) -> bytes:
        """Returns the bytes of a signed envelope around the text of a message."""
        root = etree.fromstring(self._unsigned(content, to, message_id, now).encode())
        signature = self._signer().sign(
            root,
            key=self.key.private,
            reference_uri=list(_SIGNED),
            id_attribute="Id",
            key_info=etree.fromstring(_KEY_INFO),
        )
        security = root.find(f"{{{SOAP}}}Header/{SECURITY_TAG}")
        assert security is not None
        security.append(signature)
        return etree.tostring(root)

    def _unsigned(self, content: str, to: str, message_id: str, now: float) -> str:
        created, expires = (
            datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            for each in (now, now + VALID_S)
        )
        return (
            f'<soap:Envelope xmlns:soap="{SOAP}" xmlns:wsa="{ADDRESSING}" xmlns:wsu="{WSU}">'
            f'<soap:Header><wsa:To wsu:Id="to">{text_content(to)}</wsa:To>'
            f'<wsa:MessageID wsu:Id="message-id">{text_content(message_id)}</wsa:MessageID>'
            f'<wsse:Security xmlns:wsse="{WSSE}" soap:mustUnderstand="1">'
            f'<wsse:BinarySecurityToken wsu:Id="token" EncodingType="{BASE64}" '
            f'ValueType="{X509_V3}">{self.token}</wsse:BinarySecurityToken>'
            f'<wsu:Timestamp wsu:Id="timestamp"><wsu:Created>{created}</wsu:Created>'
            f"<wsu:Expires>{expires}</wsu:Expires></wsu:Timestamp></wsse:Security></soap:Header>"
            f'<soap:Body wsu:Id="body">{content}</soap:Body></soap:Envelope>'
        )

    def _signer(self) -> XMLSigner:
        from signxml.algorithms import SignatureConstructionMethod
        from signxml.signer import XMLSigner

        return XMLSigner(
            method=SignatureConstructionMethod.detached,
            signature_algorithm=RSA_SHA256 if self.key.is_rsa else ECDSA_SHA256,
            digest_algorithm="sha256",
            c14n_algorithm=EXCLUSIVE,
        )
