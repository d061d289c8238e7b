"""Validates messages against the XML schema in `schemas/qns.wsdl`.

The codec, spyne and the clients share one schema object.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Final

from lxml import etree

from qns.d2q.xml import shipped_file
from qns.errors import DocumentError
from qns.soap.codec import Element
from qns.soap.shapes import NAMESPACE

_SCHEMA: Final = "{http://www.w3.org/2001/XMLSchema}schema"
LOCK: Final = Lock()
"""Guards the schema's error log: a schema object has only one, which all threads share."""


@cache
def contract_schema() -> etree.XMLSchema:
    """Returns the schema of the stored WSDL."""
    schema = etree.parse(str(shipped_file("qns.wsdl"))).getroot().find(f".//{_SCHEMA}")
    assert schema is not None
    # Serialising the element keeps the namespace prefixes that its ancestors declare.
    return etree.XMLSchema(etree.fromstring(etree.tostring(schema)))


def validate(element: Element) -> None:
    """Raises DocumentError, with the line and libxml2's explanation, for an invalid element."""
    schema = contract_schema()
    with LOCK:
        if schema.validate(element):
            return
        first = schema.error_log[0]  # type: ignore[index]  # the stub has no _ErrorLog
        line, message = first.line, first.message
    raise invalid(line, message)


def invalid(line: int, message: str) -> DocumentError:
    """Returns the error for a message of libxml2, without the contract's namespace."""
    message = message.replace(f"{{{NAMESPACE}}}", "").rstrip(". \n")
    if len(message) > 400:  # libxml2 may quote a megabyte of input
        message = f"{message[:200]} … {message[-180:]}"
    return DocumentError(message, remedy="see the WSDL for what is allowed").at_mark(
        line or 1, None
    )
