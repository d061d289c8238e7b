"""Whether a message follows the contract, asked of the schema in `schemas/qns.wsdl`.

There is one schema object for everybody: the quick reader, spyne and the clients.
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
"""A schema keeps one error log: another thread's errors must not get into ours."""


@cache
def contract_schema() -> etree.XMLSchema:
    """The schema of the stored WSDL."""
    schema = etree.parse(str(shipped_file("qns.wsdl"))).getroot().find(f".//{_SCHEMA}")
    assert schema is not None
    # As a text of its own it takes along the prefixes that are declared around it.
    return etree.XMLSchema(etree.fromstring(etree.tostring(schema)))


def validate(element: Element) -> None:
    """DocumentError with the line and what was expected unless the contract accepts it."""
    schema = contract_schema()
    with LOCK:
        if schema.validate(element):
            return
        first = schema.error_log[0]  # type: ignore[index]  # the stub has no _ErrorLog
        line, message = first.line, first.message
    raise invalid(line, message)


def invalid(line: int, message: str) -> DocumentError:
    """What libxml2 found wrong, in its words, without our namespace."""
    message = message.replace(f"{{{NAMESPACE}}}", "").rstrip(". \n")
    if len(message) > 400:  # it may quote a megabyte of input
        message = f"{message[:200]} … {message[-180:]}"
    return DocumentError(message, remedy="the WSDL says what is allowed").at_mark(line or 1, None)
