"""The contract as spyne knows it: the application made from the tables, and its WSDL.

spyne makes the WSDL and reads the requests that are out of the ordinary; it serves nothing itself.
`python -m qns.soap.contract > schemas/qns.wsdl` stores the WSDL anew.
"""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from typing import Any, Final

from qns.errors import LimitExceeded
from qns.soap import compat as spyne
from qns.soap.codec import Element, checked_seconds, unreadable
from qns.soap.operations import EXCHANGES, FAULTS, Exchange
from qns.soap.shapes import LARGEST, LONGEST_WAIT_S, NAMESPACE, Field, Leaf, Occurs, Port, Shape
from qns.soap.validation import LOCK, contract_schema, invalid
from qns.soap.wsdl import tidied

STORED_BASE: Final = "http://127.0.0.1:8701/"
"""The address in the stored WSDL."""
_SOAP_OVER_HTTP: Final = "http://schemas.xmlsoap.org/soap/http"
_LEAVES: Final[dict[Leaf, tuple[Any, dict[str, Any]]]] = {
    Leaf.TEXT: (spyne.Unicode, {}),
    Leaf.PROSE: (spyne.Unicode, {}),
    Leaf.NUMBER: (spyne.UnsignedLong, {"le": LARGEST, "type_name": "Number"}),
    Leaf.FLAG: (spyne.Boolean, {}),
    Leaf.SECONDS: (spyne.Double, {"ge": 0, "type_name": "Seconds"}),
    Leaf.WAIT: (spyne.Double, {"ge": 0, "le": int(LONGEST_WAIT_S), "type_name": "Wait"}),
    Leaf.BYTES: (spyne.ByteArray, {}),
}


@lru_cache(maxsize=8)
def wsdl(base_url: str) -> bytes:
    """The WSDL of both ports, with their addresses below `base_url`."""
    return tidied(_untidy_wsdl(), base_url)


def read_unusual(root: Element, content: Element, exchange: Exchange) -> Any:
    """The request in an envelope as spyne reads it; DocumentError if the schema does not agree."""
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
    except (ValueError, spyne.Fault):  # little is left to go wrong once it is valid
        raise unreadable() from None
    except RecursionError:
        raise LimitExceeded("elements nested deeper than a peer reads") from None
    return from_spyne(exchange.request.shape, context.in_object)


def from_spyne(shape: Shape, told: Any) -> Any:
    """The object of the shape, from spyne's object."""
    values = []
    for field in shape.fields:
        if not field.is_reserved:
            value = getattr(told, field.name)
            if field.occurs is Occurs.MANY:
                values.append(tuple(_from_spyne(shape, field, item) for item in value or ()))
            elif value is None and field.occurs is Occurs.PERHAPS:
                values.append(field.default)
            else:
                values.append(_from_spyne(shape, field, value))
    return shape.make(*values)


def _from_spyne(shape: Shape, field: Field, value: Any) -> Any:
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
    """Asks the stored schema, the one for everybody, instead of the one that spyne would make."""
    server = _Server(_application())
    server.app.in_protocol.validation_schema = contract_schema()
    return server


@cache
def _application() -> Any:
    faults = [_fault(fault.shape) for fault in FAULTS.values()]
    services = []
    for port in Port:
        members: dict[str, Any] = {
            exchange.name: _method(exchange, faults)
            for exchange in EXCHANGES.values()
            if exchange.port is port
        }
        members |= {"__port_types__": (port.value,), "__service_name__": "QNS"}
        services.append(type(port.value, (spyne.Service,), members))
    protocol = spyne.Soap11(validator="lxml", parse_xsi_type=False)
    application = spyne.Application(
        services, NAMESPACE, name="QNS", in_protocol=protocol, out_protocol=spyne.Soap11()
    )
    application.transport = _SOAP_OVER_HTTP
    return application


def _method(exchange: Exchange, faults: list[Any]) -> Any:
    request, reply = exchange.request.shape.fields, exchange.reply.shape.fields
    returns: dict[str, Any] = {}
    if reply:
        returns["_returns"] = [_member(field) for field in reply]
        returns["_out_variable_names"] = [field.name for field in reply]
    decorate = spyne.rpc(
        *(_member(field) for field in request),
        _args=[field.name for field in request],
        **returns,
        _operation_name=exchange.name,
        _port_type=exchange.port.value,
        _throws=faults,
    )

    def never_called(_: Any, *__: Any) -> None:
        raise AssertionError("spyne serves nothing here")

    never_called.__name__ = exchange.name
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
