"""Puts spyne's WSDL in order, so that every SOAP stack reads it and people can too.

spyne's own is in no fixed order, documents nothing but operations, and declares namespaces that
lead some stacks to SOAP 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from qns.soap.codec import Element
from qns.soap.operations import EXCHANGES, FAULTS
from qns.soap.shapes import Port, Shape

_WSDL: Final = "{http://schemas.xmlsoap.org/wsdl/}"
_SOAP: Final = "{http://schemas.xmlsoap.org/wsdl/soap/}"
_XSD: Final = "{http://www.w3.org/2001/XMLSchema}"
_PARTS: Final = tuple(f"{_WSDL}{n}" for n in ("types", "message", "portType", "binding", "service"))
_DECLARATIONS: Final = tuple(f"{_XSD}{name}" for name in ("simpleType", "complexType", "element"))
_PORTS: Final = {
    Port.PEER.value: "What peers of a federation say to each other.",
    Port.LOCAL.value: "What users and programs of one organisation ask of their own peer.",
}
_SIMPLE_TYPES: Final = {
    "Number": "A whole number from 0.",
    "Seconds": "Seconds from 0; INF means for ever.",
    "Wait": "Seconds from 0 to 60.",
}


def tidied(text: bytes, base_url: str) -> bytes:
    """The WSDL with its addresses below `base_url`, always in the same order and words."""
    root = etree.fromstring(text, etree.XMLParser(remove_blank_text=True, resolve_entities=False))
    _tidy_schema(root.find(f"{_WSDL}types/{_XSD}schema"))
    for part in root.iter(f"{_WSDL}part"):
        if part.get("name") not in {fault.name for fault in FAULTS.values()}:
            part.set("name", "parameters")  # how wrapped operations are recognised
    for operation in root.iter(f"{_WSDL}operation"):
        operation.attrib.pop("parameterOrder", "")
    for port_type in root.findall(f"{_WSDL}portType"):
        _document(port_type, f"{_WSDL}documentation", _PORTS[port_type.get("name", "")])
        for operation in port_type.iterfind(f"{_WSDL}operation"):
            exchange = EXCHANGES[operation.get("name", "")]
            _document(operation, f"{_WSDL}documentation", exchange.operation.documentation)
    for port in root.iter(f"{_WSDL}port"):
        port[0].set("location", f"{base_url}{port.get('name', '').lower()}")
    root[:] = sorted(root, key=lambda part: _PARTS.index(part.tag))
    etree.cleanup_namespaces(root, keep_ns_prefixes=["tns"])  # which stands in attributes only
    etree.indent(root)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def _tidy_schema(schema: Element | None) -> None:
    assert schema is not None
    messages = {message.name for message in _messages()}
    for element in schema.findall(f"{_XSD}element"):
        if element.get("name") not in messages:
            schema.remove(element)
    shapes = {shape.name: shape for message in _messages() for shape in _all(message)}
    for node in schema.iterfind(f"{_XSD}simpleType"):
        _annotate(node, _SIMPLE_TYPES[node.get("name", "")])
    for node in schema.iterfind(f"{_XSD}complexType"):
        shape = shapes[node.get("name", "")]
        fields = {field.name: field for field in shape.fields}
        for member in node.iter(f"{_XSD}element"):
            _annotate(member, fields[member.get("name", "")].documentation)
        _annotate(node, shape.documentation)
    schema[:] = sorted(
        schema, key=lambda node: (_DECLARATIONS.index(node.tag), node.get("name", ""))
    )


def _messages() -> Iterator[Shape]:
    for exchange in EXCHANGES.values():
        yield exchange.request.shape
        yield exchange.reply.shape
    for fault in FAULTS.values():
        yield fault.shape


def _all(shape: Shape) -> Iterator[Shape]:
    """The shape and every shape in it."""
    yield shape
    for field in shape.fields:
        if isinstance(field.kind, Shape):
            yield from _all(field.kind)


def _annotate(node: Element, text: str) -> None:
    annotation = etree.Element(f"{_XSD}annotation")
    _document(annotation, f"{_XSD}documentation", text)
    node.insert(0, annotation)


def _document(node: Element, tag: str, text: str) -> None:
    for old in node.findall(tag):
        node.remove(old)
    documentation = etree.Element(tag)
    documentation.text = text
    node.insert(0, documentation)
