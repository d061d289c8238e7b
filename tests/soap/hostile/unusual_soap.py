"""Well-formed XML that is not a SOAP message of the contract."""

from __future__ import annotations

from tests.soap.hostile.case import Answer, Case, local, peer
from tests.soap.hostile.wire import (
    SOAP,
    ask_local,
    ask_peer,
    element,
    elements,
    entry,
    envelope,
    notification,
    notify,
    origin,
    pull,
    subscribe,
)

_OPEN = f'<s:Envelope xmlns:s="{SOAP}" xmlns="urn:qns:peer:1">'.encode()
_CLOSE = b"</s:Envelope>"
_BODY = b"<s:Body><gossip>" + origin().encode() + b"</gossip></s:Body>"
_MUST = (
    '<w:Security xmlns:w="urn:security" s:mustUnderstand="{}"{}><w:Token>x</w:Token></w:Security>'
)
_GOSSIP = element("gossip", origin())


def wrapped(*parts: bytes) -> bytes:
    """Returns an envelope around any parts, whether they are allowed there or not."""
    return b"".join((_OPEN, *parts, _CLOSE))


def _soap_12() -> bytes:
    return ask_peer("gossip").replace(SOAP.encode(), b"http://www.w3.org/2003/05/soap-envelope")


def _must(value: str, more: str = "") -> bytes:
    return envelope(_GOSSIP, _MUST.format(value, more))


def _fault() -> bytes:
    return envelope(
        "<s:Fault><faultcode>s:Client</faultcode><faultstring>no</faultstring></s:Fault>"
    )


def _hrefs() -> bytes:
    return wrapped(
        b'<s:Body><notify><origin href="#a"/></notify>',
        b'<x id="a"><y href="#a"/></x></s:Body>',
    )


_ENCODING = ' s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"'
_REPLY_TO = element("a:ReplyTo", element("a:Address", "http://127.0.0.1:9/"))


def _renamed(old: bytes, new: bytes) -> bytes:
    return ask_peer("gossip").replace(old, new)


def _addressed(header: str) -> bytes:
    namespace = ' xmlns:a="http://www.w3.org/2005/08/addressing"'
    return envelope(_GOSSIP, header, namespace)


def _marked(attribute: str) -> bytes:
    return ask_peer("gossip").replace(b"<origin>", f"<origin {attribute}>".encode())


def _local_nil() -> bytes:
    return pull().replace(b"<id>s1</id>", b'<id xsi:nil="true"/>')


def _typed_fault() -> str:
    return element("InvalidFault", elements(problem="no"))


CASES: list[Case] = [
    peer("an envelope without a Body", lambda: wrapped()),
    peer("only a Header", lambda: wrapped(b"<s:Header/>")),
    peer("two Bodies", lambda: wrapped(_BODY, _BODY)),
    peer("a Body inside the Body", lambda: wrapped(b"<s:Body>", _BODY, b"</s:Body>")),
    peer("an envelope inside the Body", lambda: envelope(ask_peer("gossip").decode())),
    peer("an empty Body", lambda: envelope("")),
    peer("words in the Body", lambda: envelope("gossip")),
    peer("words around the operation", lambda: envelope(f"please {_GOSSIP} thanks")),
    peer("words in the envelope", lambda: wrapped(b"please", _BODY)),
    peer("two operations", lambda: envelope(_GOSSIP * 2)),
    peer("1,000 operations", lambda: envelope(_GOSSIP * 1_000)),
    peer("the Body before the Header", lambda: wrapped(_BODY, b"<s:Header/>")),
    peer("two Headers", lambda: wrapped(b"<s:Header/><s:Header/>", _BODY)),
    peer("something after the Body", lambda: wrapped(_BODY, b"<more/>")),
    peer("no envelope", lambda: f'<gossip xmlns="urn:qns:peer:1">{origin()}</gossip>'.encode()),
    peer("a Fault as request", _fault),
    peer("a typed fault as request", lambda: envelope(_typed_fault())),
    peer("a reply as request", lambda: envelope(element("gossipResponse", origin()))),
    peer("an unknown operation", lambda: envelope(element("shutdown", origin()))),
    peer("__init__ as operation", lambda: envelope("<__init__/>")),
    peer("an operation in capitals", lambda: envelope(element("NOTIFY", origin()))),
    peer("an operation of the port Local", pull, Answer.REFUSED),
    local("an operation of the port Peer", notify, Answer.REFUSED),
    peer(
        "an operation of another namespace", lambda: _renamed(b"urn:qns:peer:1", b"urn:qns:peer:2")
    ),
    peer("an operation of no namespace", lambda: envelope(f'<gossip xmlns="">{origin()}</gossip>')),
    peer(
        "children of no namespace", lambda: envelope(f'<gossip><x xmlns="">{origin()}</x></gossip>')
    ),
    peer("another envelope namespace", lambda: _renamed(SOAP.encode(), b"urn:soap")),
    peer("a SOAP 1.2 envelope", _soap_12),
    peer("a header to be understood", lambda: _must("1"), Answer.NOT_UNDERSTOOD),
    peer(
        "a header to be understood by the next",
        lambda: _must("1", ' s:actor="http://schemas.xmlsoap.org/soap/actor/next"'),
        Answer.NOT_UNDERSTOOD,
    ),
    peer("mustUnderstand=banana", lambda: _must("banana"), Answer.NOT_UNDERSTOOD),
    peer("a header for others", lambda: _must("1", ' s:actor="urn:others"'), Answer.SERVED),
    peer("a header that need not be understood", lambda: _must("0"), Answer.SERVED),
    peer(
        "a MessageID of 100,000 characters",
        lambda: _addressed(element("a:MessageID", "x" * 100_000)),
    ),
    peer("two MessageIDs", lambda: _addressed(element("a:MessageID", "x") * 2)),
    peer("a ReplyTo elsewhere", lambda: _addressed(_REPLY_TO), Answer.SERVED),
    peer("href and id in a circle", _hrefs),
    peer("an href to nothing", lambda: envelope('<gossip><origin href="#no"/></gossip>')),
    peer("xsi:type of another type", lambda: _marked('xsi:type="Entry"')),
    peer("xsi:type of no type", lambda: _marked('xsi:type="no:such"')),
    peer("xsi:nil", lambda: _marked('xsi:nil="true"')),
    local("xsi:nil in a text", lambda: _local_nil()),
    peer("attributes on the operation", lambda: envelope(f'<gossip now="1">{origin()}</gossip>')),
    peer("attributes on a field", lambda: notify().replace(b"<path>", b'<path a="">')),
    peer("encodingStyle", lambda: envelope(_GOSSIP, attributes=_ENCODING), Answer.SERVED),
    peer(
        "encodingStyle on the operation",
        lambda: envelope(f"<gossip{_ENCODING}>{origin()}</gossip>"),
    ),
    peer("no origin", lambda: envelope("<gossip/>")),
    peer("an origin twice", lambda: envelope(element("gossip", origin() * 2))),
    peer("an empty origin", lambda: envelope("<gossip><origin/></gossip>")),
    peer("an entry outside a notification", lambda: ask_peer("notify", element("entry", entry()))),
    peer("a notification inside a notification", lambda: notify(notification(path=notification()))),
    local("fields of another operation", lambda: pull(subscription="Enterprise")),
    local("an event inside subscribe", lambda: subscribe("<event/>")),
    local("no owner", lambda: ask_local("pull", owner=None, id="s1", after=0)),
    local("two owners", lambda: ask_local("pull", owner=["anna", "bruno"], id="s1", after=0)),
]
