"""WS-Security: checks requests that are signed one by one.

The form is that of the patterns ID_AUTH_SOAP_02 and INTEGRITY_SOAP_01 of the Italian model of
interoperability: a request is signed over wsa:To, wsa:MessageID, wsu:Timestamp and the Body, with
an X.509 token that the federation document must name as a seal certificate. Everything that is
signed must stand where the reader of the message finds it, so that no signed part can be wrapped
into another message. The signature itself is checked by signxml.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from lxml import etree

from qns.errors import NotAllowed, QnsError, shorten
from qns.federation.certificate import fingerprint_of
from qns.soap.codec import Element
from qns.soap.envelope import ADDRESSING, SOAP
from qns.soap.message_ids import MessageIds

WSSE: Final = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
WSU: Final = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
DS: Final = "http://www.w3.org/2000/09/xmldsig#"
X509_V3: Final = (
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3"
)
BASE64: Final = (
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary"
)
EXCLUSIVE: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
SHA256: Final = "http://www.w3.org/2001/04/xmlenc#sha256"
RSA_SHA256: Final = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
ECDSA_SHA256: Final = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"

SECURITY: Final = f"{{{WSSE}}}Security"
LONGEST_S: Final = 900.0
"""The longest validity of a signed request that is accepted."""
CLOCK_TOLERANCE_S: Final = 300.0
"""By how much the clocks of the caller and of this peer may differ."""

_HEADER, _BODY = f"{{{SOAP}}}Header", f"{{{SOAP}}}Body"
_TO, _MESSAGE_ID = f"{{{ADDRESSING}}}To", f"{{{ADDRESSING}}}MessageID"
_TIMESTAMP, _TOKEN = f"{{{WSU}}}Timestamp", f"{{{WSSE}}}BinarySecurityToken"
_SIGNATURE, _SIGNED_INFO = f"{{{DS}}}Signature", f"{{{DS}}}SignedInfo"
_REFERENCE = f"{{{DS}}}Reference"
_METHODS: Final = (RSA_SHA256, ECDSA_SHA256)
_MOST_REFERENCES: Final = 12
_ID: Final = f"{{{WSU}}}Id"
_IDS: Final = etree.XPath("//@*[local-name() = 'Id' or local-name() = 'ID' or local-name() = 'id']")
_PLACES: Final = etree.XPath(
    "/soap:Envelope/soap:Header/* | /soap:Envelope/soap:Header/wsse:Security/*"
    " | /soap:Envelope/soap:Body",
    namespaces={"soap": SOAP, "wsse": WSSE},
)


class WrongSignature(NotAllowed):
    """Raised for a request whose signature does not count."""


class _Parts(NamedTuple):
    """The parts of a signed request, each where a reader finds it."""

    to: Element
    message_id: Element
    timestamp: Element
    body: Element
    token: Element
    signature: Element

    @property
    def signed(self) -> tuple[Element, ...]:
        return self.to, self.message_id, self.timestamp, self.body


@dataclass(slots=True, eq=False)
class MessageSecurity:
    """Says who has signed a request, and whose requests must be signed."""

    required_of: frozenset[str]
    certificates: Callable[[], Mapping[str, tuple[str, str]]]
    """Returns, by fingerprint, the owner and the PEM of each seal certificate in force."""
    addresses: Callable[[], Iterable[str]]
    """Returns the addresses of this peer that wsa:To may have."""
    now: Callable[[], float]
    _seen: dict[str, MessageIds] = field(default_factory=dict)
    """By organisation, so that none uses up the room of another."""

    def signer_of(self, root: Element) -> str:
        """Returns the organisation that has signed a request, or "" if it has no signature.

        Raises WrongSignature if the signature does not count, and Busy if no more requests of the
        organisation can be remembered. The same request is refused when it comes again.
        """
        if not _security_headers(root):
            return ""
        parts = _parts_of(root)
        now = self.now()
        owner, pem = self._owner_of(parts.token)
        ends = _checked_timestamp(parts.timestamp, now)
        if _text(parts.to) not in self.addresses():
            raise _wrong(
                f"wsa:To is {shorten(_text(parts.to))}, which is not the address of this peer",
                "send to the endpoint that the federation document names",
            )
        _check_form(parts)
        _check_references(root, parts)
        _verify(root, pem, now)
        seen = self._seen.setdefault(owner, MessageIds())
        if not seen.take(_text(parts.message_id), now, ends + CLOCK_TOLERANCE_S):
            raise _wrong(
                f"the MessageID {shorten(_text(parts.message_id))} was used before",
                "give each request a MessageID of its own",
            )
        return owner

    def check_sender(self, sender: str, signer: str) -> None:
        """Raises WrongSignature unless the sender may send with this signer, or with none."""
        if signer and signer != sender:
            raise _wrong(
                f"{shorten(signer)} has signed the message, and it says that {shorten(sender)} "
                "sends it",
                "sign with a seal certificate of the sender",
            )
        if not signer and sender in self.required_of:
            raise _wrong(
                f"requests of {shorten(sender)} must be signed",
                "sign wsa:To, wsa:MessageID, wsu:Timestamp and the Body (WS-Security)",
            )

    def _owner_of(self, token: Element) -> tuple[str, str]:
        try:
            text = "".join(_text(token).split())  # some stacks write it in lines
            der = b64decode(text.encode("ascii", "replace"), validate=True)
        except binascii.Error:
            raise _wrong("the security token is not base64", "send X.509 in base64") from None
        found = self.certificates().get(fingerprint_of(der))
        if found is None:
            raise _wrong(
                "the federation document names no seal certificate like the security token",
                "sign with a certificate that the document names as a seal of your organisation",
            )
        return found


# --- the form of a signed request -----------------------------------------------------------------


def _security_headers(root: Element) -> list[Element]:
    return [
        part for header in root if header.tag == _HEADER for part in header if part.tag == SECURITY
    ]


def _parts_of(root: Element) -> _Parts:
    """Finds each part exactly once, at its place; raises WrongSignature."""
    (header,) = (part for part in root if part.tag == _HEADER)
    security = _only(header, SECURITY)
    for part in security:
        if part.tag not in (_TIMESTAMP, _TOKEN, _SIGNATURE):
            raise _wrong(
                f"the Security header has {shorten(str(part.tag))}",
                "send a BinarySecurityToken, a Timestamp and a Signature",
            )
    return _Parts(
        _only(header, _TO),
        _only(header, _MESSAGE_ID),
        _only(security, _TIMESTAMP),
        _only(root, _BODY),
        _only(security, _TOKEN),
        _only(security, _SIGNATURE),
    )


def _only(parent: Element, tag: str) -> Element:
    found = [part for part in parent if part.tag == tag]
    if len(found) != 1:
        name = etree.QName(tag).localname
        raise _wrong(f"a signed request has {len(found)} {name}", f"send one {name}")
    return found[0]


def _checked_timestamp(timestamp: Element, now: float) -> float:
    """Returns when the request expires; raises WrongSignature unless it is valid now."""
    created, ends = (_time_of(timestamp, name) for name in ("Created", "Expires"))
    if not created <= ends <= created + LONGEST_S:
        raise _wrong(
            f"the Timestamp is valid for {ends - created:,.0f} seconds",
            f"use at most {LONGEST_S:.0f}",
        )
    if not created - CLOCK_TOLERANCE_S <= now <= ends + CLOCK_TOLERANCE_S:
        raise _wrong(
            "the Timestamp is not valid now by the clock of this peer",
            "sign each request when it is sent, and check the clock of its computer",
        )
    return ends


def _time_of(timestamp: Element, name: str) -> float:
    text = _text(_only(timestamp, f"{{{WSU}}}{name}"))
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.timestamp()
    except (ValueError, OverflowError):
        pass
    raise _wrong(f"the Timestamp has {name} {shorten(text)}", "write a dateTime with a zone")


def _check_form(parts: _Parts) -> None:
    """Checks the algorithms before anything is computed with them."""
    info = _only(parts.signature, _SIGNED_INFO)
    methods = [
        (_only(info, f"{{{DS}}}CanonicalizationMethod"), (EXCLUSIVE,)),
        (_only(info, f"{{{DS}}}SignatureMethod"), _METHODS),
    ]
    references = [part for part in info if part.tag == _REFERENCE]
    if len(references) > _MOST_REFERENCES:
        raise _wrong(
            f"the Signature has {len(references)} references", f"use at most {_MOST_REFERENCES}"
        )
    for reference in references:
        transforms = _only(reference, f"{{{DS}}}Transforms")
        methods += [
            (_only(transforms, f"{{{DS}}}Transform"), (EXCLUSIVE,)),
            (_only(reference, f"{{{DS}}}DigestMethod"), (SHA256,)),
        ]
    for method, accepted in methods:
        algorithm = method.get("Algorithm", "")
        if algorithm not in accepted:
            raise _wrong(
                f"the Signature uses the algorithm {shorten(algorithm)}",
                f"use {' or '.join(accepted)}",
            )


def _check_references(root: Element, parts: _Parts) -> None:
    """Checks that every reference leads to one element at its place, and none is missing."""
    ids = [str(each) for each in _IDS(root)]  # type: ignore[union-attr]
    if len(ids) != len(set(ids)):
        raise _wrong("two elements have the same Id", "give each signed element an Id of its own")
    places = {each.get(_ID): each for each in _PLACES(root)}  # type: ignore[union-attr]
    info = _only(parts.signature, _SIGNED_INFO)
    signed = []
    for reference in info.iterchildren(_REFERENCE):
        uri = reference.get("URI", "")
        element = places.get(uri[1:]) if uri.startswith("#") and len(uri) > 1 else None
        if element is None or element in signed:
            raise _wrong(
                f"the Signature refers to {shorten(uri)}, which is no header, token or Body",
                "refer to each signed part once, by its wsu:Id",
            )
        signed.append(element)
    for part in parts.signed:
        if part not in signed:
            raise _wrong(
                f"{etree.QName(part).localname} is not signed",
                "sign wsa:To, wsa:MessageID, wsu:Timestamp and the Body",
            )


def _verify(root: Element, pem: str, now: float) -> None:
    from signxml.exceptions import SignXMLException
    from signxml.verifier import SignatureConfiguration, XMLVerifier

    config = SignatureConfiguration(
        location=f"./{{{SOAP}}}Header/{{{WSSE}}}Security/",
        expect_references=False,
        verification_time=datetime.fromtimestamp(now).astimezone(),
    )
    try:
        XMLVerifier().verify(root, x509_cert=pem, id_attribute="Id", expect_config=config)
    except (SignXMLException, ValueError, etree.LxmlError) as error:
        raise _wrong(
            f"the signature does not fit: {shorten(str(error))}",
            "sign the request as it is sent, with the key of the security token",
        ) from None


def _text(element: Element) -> str:
    return (element.text or "").strip()


def _wrong(problem: str, remedy: str) -> QnsError:
    return WrongSignature(problem, place="Security", remedy=remedy)
