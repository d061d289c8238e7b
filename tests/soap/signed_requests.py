"""Signed requests for tests: valid ones, and what attackers make of them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

from lxml import etree
from signxml.algorithms import SignatureConstructionMethod
from signxml.signer import XMLSigner

from qns.d2q.shipped import AGENCIES
from qns.edl.messages import Envelope, FetchDocument
from qns.federation.certificate import read_certificate
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.soap.endpoint import Call, Endpoint
from qns.soap.envelope import ADDRESSING, SOAP
from qns.soap.peer_client import write_call
from qns.soap.shapes import Port
from qns.soap.ws_security import DS, EXCLUSIVE, WSSE, WSU, MessageSecurity
from qns.soap.ws_signing import CallSigner

NOW = 1_800_000_000.0
ADDRESS = "https://inps.example/peer"
NAMES = {"soap": SOAP, "wsa": ADDRESSING, "wsse": WSSE, "wsu": WSU, "ds": DS}
HEADERS = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '"fetchDocument"'}
ID = f"{{{WSU}}}Id"
COC, INAIL, STRANGER = (
    new_certificate(name, NOW - 10, algorithm="ecdsa-p256", is_tls=False)
    for name in ("CoC", "INAIL", "Stranger")
)


@dataclass
class Receiver:
    """The peer of INPS, as far as it reads requests."""

    required_of: frozenset[str] = frozenset(("CoC",))
    now: float = NOW
    endpoint: Endpoint = field(init=False)

    def __post_init__(self) -> None:
        known = {
            read_certificate(own.certificate).fingerprint: (name, own.certificate)
            for name, own in (("CoC", COC), ("INAIL", INAIL))
        }
        security = MessageSecurity(
            self.required_of, lambda: known, lambda: (ADDRESS,), lambda: self.now
        )
        self.endpoint = Endpoint(AGENCIES, security)

    def read(self, body: bytes) -> Call:
        return self.endpoint.decode(Port.PEER, HEADERS, body)


def request(sender: str = "CoC") -> Envelope:
    return Envelope(sender, 1, (), FetchDocument())


def signed(
    own: NewCertificate = COC,
    sender: str = "CoC",
    *,
    to: str = ADDRESS,
    id: str = "urn:uuid:1",
    now: float = NOW,
) -> bytes:
    signer = CallSigner.read(own.certificate, own.key)

    def envelope(content: str, message_id: str) -> bytes:
        return signer.envelope(content, to=to, message_id=message_id, now=now)

    return write_call(request(sender), id, envelope)[0]


def changed(change: Callable[[etree._Element], None], body: bytes | None = None) -> bytes:
    """Returns a valid signed request after a change of its tree."""
    root = etree.fromstring(signed() if body is None else body)
    change(root)
    return etree.tostring(root)


def one(root: etree._Element, path: str) -> etree._Element:
    (found,) = root.xpath(path, namespaces=NAMES)
    assert isinstance(found, etree._Element)
    return found


def signed_again(
    change: Callable[[etree._Element], None], references: tuple[str, ...], own: NewCertificate = COC
) -> bytes:
    """Returns a request that was changed and signed anew, over these references."""

    def sign(root: etree._Element) -> None:
        change(root)
        former = one(root, "//ds:Signature")
        info = deepcopy(one(former, "ds:KeyInfo"))
        security = former.getparent()
        assert security is not None
        security.remove(former)
        signer = XMLSigner(
            SignatureConstructionMethod.detached, "ecdsa-sha256", "sha256", EXCLUSIVE
        )
        security.append(
            signer.sign(
                root,
                key=own.key,
                reference_uri=list(references),
                id_attribute="Id",
                key_info=info,
            )
        )

    return changed(sign)


# --- attacks --------------------------------------------------------------------------------------


def altered_body(root: etree._Element) -> None:
    one(root, "//*[local-name() = 'organisation']").text = "INAIL"


def altered_address(root: etree._Element) -> None:
    one(root, "//wsa:To").text = ADDRESS + " "
    one(root, "//wsa:MessageID").text = "urn:uuid:other"


def body_wrapped_into_a_header(root: etree._Element) -> None:
    """The signed Body goes into the Header, and a new Body takes its place."""
    body = one(root, "soap:Body")
    new = deepcopy(body)
    new.set(ID, "new")
    one(new, ".//*[local-name() = 'document']").text = "7"
    wrapper = etree.SubElement(one(root, "soap:Header"), "{urn:x}Wrapper")
    root.replace(body, new)
    wrapper.append(body)


def body_wrapped_under_its_own_id(root: etree._Element) -> None:
    body_wrapped_into_a_header(root)
    one(root, "soap:Body").set(ID, "body")


def body_wrapped_under_another_kind_of_id(root: etree._Element) -> None:
    body_wrapped_into_a_header(root)
    body = one(root, "soap:Body")
    del body.attrib[ID]
    body.set("Id", "body")


def body_without_its_id(root: etree._Element) -> None:
    """The reference leads to the hidden Body only."""
    body_wrapped_into_a_header(root)
    del one(root, "soap:Body").attrib[ID]


def timestamp_wrapped(root: etree._Element) -> None:
    old = one(root, "//wsu:Timestamp")
    new = deepcopy(old)
    new.set(ID, "new")
    security = old.getparent()
    assert security is not None
    security.replace(old, new)
    etree.SubElement(one(root, "soap:Header"), "{urn:x}Wrapper").append(old)


def second_timestamp(root: etree._Element) -> None:
    old = one(root, "//wsu:Timestamp")
    new = deepcopy(old)
    del new.attrib[ID]
    old.addnext(new)


def second_security_header(root: etree._Element) -> None:
    old = one(root, "//wsse:Security")
    old.addnext(deepcopy(old))


def second_address(root: etree._Element) -> None:
    old = one(root, "//wsa:To")
    new = deepcopy(old)
    del new.attrib[ID]
    old.addprevious(new)


def unknown_part_of_the_security_header(root: etree._Element) -> None:
    etree.SubElement(one(root, "//wsse:Security"), f"{{{WSSE}}}UsernameToken")


def token_of_somebody_else(root: etree._Element) -> None:
    der = b64encode(etree.tostring(root)).decode()
    one(root, "//wsse:BinarySecurityToken").text = der


def token_of_another_member(root: etree._Element) -> None:
    other = etree.fromstring(signed(INAIL, "INAIL"))
    one(root, "//wsse:BinarySecurityToken").text = one(other, "//wsse:BinarySecurityToken").text


def token_that_is_no_base64(root: etree._Element) -> None:
    one(root, "//wsse:BinarySecurityToken").text = "§"


def signature_of_another_request(root: etree._Element) -> None:
    other = etree.fromstring(signed(id="urn:uuid:2"))
    one(root, "//ds:SignatureValue").text = one(other, "//ds:SignatureValue").text


def no_signature(root: etree._Element) -> None:
    found = one(root, "//ds:Signature")
    security = found.getparent()
    assert security is not None
    security.remove(found)


def _algorithm(path: str, value: str) -> Callable[[etree._Element], None]:
    def change(root: etree._Element) -> None:
        for each in root.xpath(path, namespaces=NAMES):
            assert isinstance(each, etree._Element)
            each.set("Algorithm", value)

    return change


def whole_document_as_reference(root: etree._Element) -> None:
    one(root, "//ds:Reference[@URI = '#body']").set("URI", "")


def reference_to_a_file(root: etree._Element) -> None:
    one(root, "//ds:Reference[@URI = '#body']").set("URI", "file:///etc/hostname")


def same_reference_twice(root: etree._Element) -> None:
    found = one(root, "//ds:Reference[@URI = '#body']")
    found.addnext(deepcopy(found))


def thousand_references(root: etree._Element) -> None:
    found = one(root, "//ds:Reference[@URI = '#body']")
    for _ in range(1_000):
        found.addnext(deepcopy(found))


def second_transform(root: etree._Element) -> None:
    found = one(root, "//ds:Reference[@URI = '#body']/ds:Transforms/ds:Transform")
    new = deepcopy(found)
    new.set("Algorithm", "http://www.w3.org/TR/1999/REC-xpath-19991116")
    found.addprevious(new)


def key_of_the_attacker(root: etree._Element) -> None:
    """Puts the attacker's certificate beside the token, and signs with its key."""
    attacker = etree.fromstring(signed(STRANGER))
    for name in ("SignedInfo", "SignatureValue", "KeyInfo"):
        old = one(root, f"//ds:Signature/ds:{name}")
        parent = old.getparent()
        assert parent is not None
        parent.replace(old, one(attacker, f"//ds:Signature/ds:{name}"))


SHA1 = "http://www.w3.org/2000/09/xmldsig#sha1"
ATTACKS: dict[str, Callable[[etree._Element], None]] = {
    each.__name__: each
    for each in (
        altered_body,
        altered_address,
        body_wrapped_into_a_header,
        body_wrapped_under_its_own_id,
        body_wrapped_under_another_kind_of_id,
        body_without_its_id,
        timestamp_wrapped,
        second_timestamp,
        second_security_header,
        second_address,
        unknown_part_of_the_security_header,
        token_of_somebody_else,
        token_of_another_member,
        token_that_is_no_base64,
        signature_of_another_request,
        no_signature,
        whole_document_as_reference,
        reference_to_a_file,
        same_reference_twice,
        thousand_references,
        second_transform,
        key_of_the_attacker,
    )
} | {
    "digest_with_sha1": _algorithm("//ds:DigestMethod", SHA1),
    "signature_with_sha1": _algorithm(
        "//ds:SignatureMethod", "http://www.w3.org/2000/09/xmldsig#rsa-sha1"
    ),
    "signature_with_a_shared_secret": _algorithm(
        "//ds:SignatureMethod", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"
    ),
    "inclusive_canonical_form": _algorithm(
        "//ds:CanonicalizationMethod", "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
    ),
    "enveloped_transform": _algorithm(
        "//ds:Transform", "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
    ),
    "stylesheet_transform": _algorithm(
        "//ds:Transform", "http://www.w3.org/TR/1999/REC-xslt-19991116"
    ),
}
