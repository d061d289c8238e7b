"""The contract as a spyne application, which is built from the tables of shapes.

spyne generates the WSDL and reads requests that the faster readers do not accept. It does not serve
requests. `python -m qns.soap.contract > schemas/qns.wsdl` regenerates the stored WSDL.
"""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from typing import Any, Final

from qns.errors import LimitExceeded
from qns.soap import compat as spyne
from qns.soap.codec import Element, checked_seconds, unreadable
from qns.soap.operations import FAULTS, OPERATION_CODECS, OperationCodec
from qns.soap.shapes import LARGEST, LONGEST_WAIT_S, NAMESPACE, Field, Leaf, Occurs, Port, Shape
from qns.soap.validation import LOCK, contract_schema, invalid
from qns.soap.wsdl import tidied

STORED_BASE: Final = "http://127.0.0.1:8701/"
"""The base of the addresses in the stored WSDL."""
_SOAP_OVER_HTTP: Final = "http://schemas.xmlsoap.org/soap/http"
_LEAVES: Final[dict[Leaf, tuple[Any, dict[str, Any]]]] = {
    Leaf.TEXT: (spyne.Unicode, {}),
    Leaf.PROSE: (spyne.Unicode, {}),
    Leaf.NUMBER: (spyne.UnsignedLong, {"le": LARGEST, "type_name": "Number"}),
    Leaf.FLAG: (spyne.Boolean, {}),
    Leaf.SECONDS: (spyne.Double, {"ge": 0, "type_name": "Seconds"}),
    Leaf.WAIT: (spyne.Double, {"ge": 0, "le": int(LONGEST_WAIT_S), "type_name": "Wait"}),
    Leaf.MOMENT: (spyne.DateTime, {}),
    Leaf.BYTES: (spyne.ByteArray, {}),
}


@lru_cache(maxsize=8)
def wsdl(base_url: str, first: Port = Port.PEER) -> bytes:
    """Returns the WSDL of both ports, one of them first, with addresses below `base_url`."""
    return tidied(_untidy_wsdl(), base_url, first)


def read_unusual(root: Element, content: Element, codec: OperationCodec) -> Any:
    """Reads the request in an envelope with spyne; raises DocumentError unless it is valid."""
    server = _server()
    protocol = server.app.in_protocol
    context = spyne.MethodContext(server, spyne.MethodContext.SERVER)
    context.in_document = (root, None)
    try:
        with LOCK:
            try:
                protocol.decompose_incoming_envelope(context)
            except spyne.SchemaValidationError:
                first = contract_schema().error_log[0]  # type: ignore[index]  # as in validation.py
                raise invalid(first.line, first.message) from None
        context.descriptor = server.app.interface.service_method_map[content.tag][0]
        protocol.deserialize(context, protocol.REQUEST)
    except (ValueError, spyne.Fault):  # the envelope is valid, so a value cannot be converted
        raise unreadable() from None
    except RecursionError:
        raise LimitExceeded("elements are nested deeper than a peer reads") from None
    return from_spyne(codec.request.shape, context.in_object)


def from_spyne(shape: Shape, spyne_object: Any) -> Any:
    """Converts spyne's object to the message object of the shape."""
    values = []
    for field in shape.fields:
        if not field.is_reserved:
            value = getattr(spyne_object, field.name)
            if field.occurs is Occurs.MANY:
                values.append(tuple(_field_value(shape, field, item) for item in value or ()))
            elif value is None and field.occurs is Occurs.PERHAPS:
                values.append(field.default)
            else:
                values.append(_field_value(shape, field, value))
    return shape.make(*values)


def _field_value(shape: Shape, field: Field, value: Any) -> Any:
    if field.kind is Leaf.BYTES:
        return b"".join(value or ())
    if field.kind is Leaf.SECONDS or field.kind is Leaf.WAIT:
        return checked_seconds(value)
    if isinstance(field.kind, Leaf):
        return value
    return from_spyne(field.kind if isinstance(field.kind, Shape) else shape, value)


# -- the application --------------------------------------------------------------------------


class _Server(spyne.ServerBase):  # type: ignore[misc]  # spyne has no types
    transport = _SOAP_OVER_HTTP


@cache
def _server() -> Any:
    """Returns a server that validates with the stored schema instead of one built by spyne."""
    server = _Server(_application())
    server.app.in_protocol.validation_schema = contract_schema()
    return server


@cache
def _application() -> Any:
    faults = [_fault(fault.shape) for fault in FAULTS.values()]
    services = []
    for port in Port:
        members: dict[str, Any] = {
            codec.name: _method(codec, faults)
            for codec in OPERATION_CODECS.values()
            if codec.port is port
        }
        members |= {"__port_types__": (port.value,), "__service_name__": "QNS"}
        services.append(type(port.value, (spyne.Service,), members))
    protocol = spyne.Soap11(validator="lxml", parse_xsi_type=False)
    application = spyne.Application(
        services, NAMESPACE, name="QNS", in_protocol=protocol, out_protocol=spyne.Soap11()
    )
    application.transport = _SOAP_OVER_HTTP
    return application


def _method(codec: OperationCodec, faults: list[Any]) -> Any:
    request, reply = codec.request.shape.fields, codec.reply.shape.fields
    returns: dict[str, Any] = {}
    if reply:
        returns["_returns"] = [_member(field) for field in reply]
        returns["_out_variable_names"] = [field.name for field in reply]
    decorate = spyne.rpc(
        *(_member(field) for field in request),
        _args=[field.name for field in request],
        **returns,
        _operation_name=codec.name,
        _port_type=codec.port.value,
        _throws=faults,
    )

    def never_called(_: Any, *__: Any) -> None:
        raise AssertionError("spyne must not serve requests here")

    never_called.__name__ = codec.name
    return decorate(never_called)


def _member(field: Field) -> Any:
    occurs: dict[str, Any] = {"min_occurs": 1, "nillable": False}
    if field.occurs is not Occurs.ONCE:
        occurs["min_occurs"] = 0
    if field.occurs is Occurs.MANY:
        occurs["max_occurs"] = "unbounded"
    if isinstance(field.kind, Leaf):
        base, bounds = _LEAVES[field.kind]
        member = base.customize(**bounds, **occurs)
        if bounds:
            member.__namespace__ = NAMESPACE
        return member
    if isinstance(field.kind, Shape):
        return _complex(field.kind).customize(**occurs)
    return spyne.SelfReference.customize(**occurs)


@cache
def _complex(shape: Shape) -> Any:
    members = [(field.name, _member(field)) for field in shape.fields]
    return spyne.ComplexModel.produce(NAMESPACE, shape.name, members)


def _fault(shape: Shape) -> Any:
    members = [(field.name, _member(field)) for field in shape.fields]
    names = {"__namespace__": NAMESPACE, "__type_name__": shape.name, "_type_info": members}
    return type(shape.name, (spyne.Fault,), names)


@cache
def _untidy_wsdl() -> bytes:
    document = spyne.Wsdl11(_application().interface)
    document.build_interface_document(STORED_BASE)
    text: bytes = document.get_interface_document()
    return text


if __name__ == "__main__":
    sys.stdout.buffer.write(wsdl(STORED_BASE))
