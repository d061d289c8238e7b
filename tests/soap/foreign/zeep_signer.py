"""A plug-in of zeep that signs as the Italian patterns want it, with xmlsec."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import xmlsec
from lxml import etree
from zeep import ns
from zeep.plugins import Plugin
from zeep.wsdl.utils import get_or_create_header
from zeep.wsse.utils import get_security_header

TOKEN = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3"
BASE64 = (
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary"
)
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
ID = f"{{{ns.WSU}}}Id"


class Addressing(Plugin):
    """Adds wsa:To and wsa:MessageID, which zeep then signs as `Signer` says."""

    def __init__(self, to: str) -> None:
        self.to = to

    def egress(self, envelope: Any, headers: Any, operation: Any, options: Any) -> Any:
        header = get_or_create_header(envelope)
        for name, text in (("To", self.to), ("MessageID", f"urn:uuid:{uuid4()}")):
            etree.SubElement(header, f"{{{ns.WSA}}}{name}", nsmap={"wsa": ns.WSA}).text = text
        return envelope, headers


class Signer:
    """The `wsse` argument of `zeep.Client`."""

    def __init__(self, key: Path, certificate: Path) -> None:
        self.key = xmlsec.Key.from_file(str(key), xmlsec.constants.KeyDataFormatPem)
        lines = certificate.read_text(encoding="ascii").splitlines()
        self.token = "\n".join(lines[1:-1])

    def apply(self, envelope: Any, headers: Any) -> Any:
        security = get_security_header(envelope)
        security.set(f"{{{SOAP}}}mustUnderstand", "1")
        token = etree.SubElement(
            security,
            f"{{{ns.WSSE}}}BinarySecurityToken",
            {ID: "id-token", "ValueType": TOKEN, "EncodingType": BASE64},
        )
        token.text = self.token
        timestamp = etree.SubElement(security, f"{{{ns.WSU}}}Timestamp", {ID: "id-time"})
        now = datetime.now(UTC)
        for name, at in (("Created", now), ("Expires", now + timedelta(minutes=5))):
            etree.SubElement(timestamp, f"{{{ns.WSU}}}{name}").text = at.isoformat()
        signature = xmlsec.template.create(
            envelope, xmlsec.constants.TransformExclC14N, xmlsec.constants.TransformRsaSha256
        )
        security.append(signature)
        context = xmlsec.SignatureContext()
        context.key = self.key
        for element in self._signed(envelope, timestamp):
            if element.get(ID) is None:
                element.set(ID, f"id-{uuid4()}")
            context.register_id(element, "Id", ns.WSU)
            reference = xmlsec.template.add_reference(
                signature, xmlsec.constants.TransformSha256, uri=f"#{element.get(ID)}"
            )
            xmlsec.template.add_transform(reference, xmlsec.constants.TransformExclC14N)
        context.sign(signature)
        info = etree.SubElement(signature, f"{{{ns.DS}}}KeyInfo")
        of_token = etree.SubElement(info, f"{{{ns.WSSE}}}SecurityTokenReference")
        etree.SubElement(
            of_token, f"{{{ns.WSSE}}}Reference", {"URI": "#id-token", "ValueType": TOKEN}
        )
        return envelope, headers

    def verify(self, envelope: Any) -> Any:
        return envelope

    def _signed(self, envelope: Any, timestamp: Any) -> list[Any]:
        header = envelope.find(f"{{{SOAP}}}Header")
        return [
            header.find(f"{{{ns.WSA}}}To"),
            header.find(f"{{{ns.WSA}}}MessageID"),
            timestamp,
            envelope.find(f"{{{SOAP}}}Body"),
        ]
