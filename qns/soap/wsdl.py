"""Sorts and documents spyne's WSDL, so that SOAP stacks and people can read it.

spyne writes the parts in no fixed order, documents only operations, and declares namespaces that
make some stacks use SOAP 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from qns.soap.codec import Element
from qns.soap.operations import FAULTS, OPERATION_CODECS
from qns.soap.shapes import Port, Shape

_WSDL: Final = "{http://schemas.xmlsoap.org/wsdl/}"
_XSD: Final = "{http://www.w3.org/2001/XMLSchema}"
_PARTS: Final = tuple(f"{_WSDL}{n}" for n in ("types", "message", "portType", "binding", "service"))
_DECLARATIONS: Final = tuple(f"{_XSD}{name}" for name in ("simpleType", "complexType", "element"))
_PORTS: Final = {
    Port.PEER.value: "The operations that the peers of a federation call at each other.",
    Port.LOCAL.value: "The operations that an organisation's users and programs call at its peer.",
}
_SIMPLE_TYPES: Final = {
    "Number": "A whole number of at least 0.",
    "Seconds": "A number of seconds of at least 0; INF means without end.",
    "Wait": "A number of seconds from 0 to 60.",
}


def tidied(text: bytes, base_url: str, first: Port) -> bytes:
    """Returns the WSDL with its addresses below `base_url`. The same contract gives equal bytes.

    zeep, suds and others call the port that the service lists first, unless another is named.
    """
    root = etree.fromstring(text, etree.XMLParser(remove_blank_text=True, resolve_entities=False))
    _tidy_schema(root.find(f"{_WSDL}types/{_XSD}schema"))
    for part in root.iter(f"{_WSDL}part"):
        if part.get("name") not in {fault.name for fault in FAULTS.values()}:
            part.set("name", "parameters")  # by this name, stacks recognise wrapped operations
    for operation in root.iter(f"{_WSDL}operation"):
        operation.attrib.pop("parameterOrder", "")
    for port_type in root.findall(f"{_WSDL}portType"):
        _document(port_type, f"{_WSDL}documentation", _PORTS[port_type.get("name", "")])
        for operation in port_type.iterfind(f"{_WSDL}operation"):
            codec = OPERATION_CODECS[operation.get("name", "")]
            _document(operation, f"{_WSDL}documentation", codec.operation.documentation)
    for port in root.iter(f"{_WSDL}port"):
        port[0].set("location", f"{base_url}{port.get('name', '').lower()}")
    for service in root.iter(f"{_WSDL}service"):
        service[:] = sorted(service, key=lambda port: port.get("name") != first.value)
    root[:] = sorted(root, key=lambda part: _PARTS.index(part.tag))
    etree.cleanup_namespaces(root, keep_ns_prefixes=["tns"])  # only attribute values use tns
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
    for codec in OPERATION_CODECS.values():
        yield codec.request.shape
        yield codec.reply.shape
    for fault in FAULTS.values():
        yield fault.shape


def _all(shape: Shape) -> Iterator[Shape]:
    """Yields the shape and, recursively, the shapes of its fields."""
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
