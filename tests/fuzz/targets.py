"""Targets: each decoder that reads bytes from outside, with valid inputs to start from.

A target raises nothing but what its callers expect: `QnsError` or `SoapRefusal`. Whatever it
accepts has one meaning: it is the same when it is written and read again, and both readers of
events agree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from qns.cbr.event import Event
from qns.d2q.document_xml import read_document, write_document
from qns.d2q.event_json import EventReader, write_event_json
from qns.d2q.event_xml import read_event, read_tree, write_event
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_readable, write_thesis
from qns.d2q.schema_xml import read_schema, write_schema
from qns.d2q.shipped import AGENCIES
from qns.d2q.subscription_xml import read_subscription, write_subscription
from qns.errors import QnsError
from qns.evidence.evidence import Timestamp
from qns.evidence.evidence_file import read_evidence, write_evidence
from qns.evidence.timestamps import checked_time, read_authority
from qns.evidence.verification import Trust, verify
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.roots_xml import read_anchor
from qns.history.records import read_record
from qns.iil.cursor import Cursor
from qns.runtime.admin.protocol import read_answer, read_request, write_request
from qns.runtime.http_reader import RequestReader
from qns.soap.endpoint import Endpoint, SoapRefusal
from qns.soap.local_client import read_local, write_local
from qns.soap.peer_client import read_reply, write_call
from qns.soap.shapes import Port
from tests.fuzz import samples

_ENDPOINT: Final = Endpoint(AGENCIES)
_HEADERS: Final = {"content-type": "text/xml; charset=utf-8", "soapaction": '""'}
_EVENTS: Final = EventReader(AGENCIES)
EXPECTED: Final = (QnsError, SoapRefusal)


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    decode: Callable[[bytes], None]
    """Raises only what `EXPECTED` has; any other exception is a bug."""
    samples: tuple[bytes, ...]


def _http(data: bytes) -> None:
    """Feeds the bytes in pieces of several sizes: the jobs must be the same."""
    found = []
    for size in (1, 7, len(data) or 1):
        reader = RequestReader(lambda _: 1_000, lambda host: host == "peer", "address")
        for start in range(0, len(data), size):
            reader.feed(data[start : start + size])
        found.append([(job.version, job.ends, job.request, job.refusal) for job in reader.jobs])
    assert found[0] == found[1] == found[2], "the size of the pieces decides what is read"


def _soap_peer(data: bytes) -> None:
    _ENDPOINT.decode(Port.PEER, _HEADERS, data)


def _soap_local(data: bytes) -> None:
    _ENDPOINT.decode(Port.LOCAL, _HEADERS, data)


def _peer_reply(data: bytes) -> None:
    """The first byte chooses the request that the reply answers, and the status."""
    sent = samples.PEER_REQUESTS[data[0] % len(samples.PEER_REQUESTS)] if data else None
    if sent is not None:
        read_reply(sent, 500 if data[0] & 128 else 200, data[1:])


def _local_answer(data: bytes) -> None:
    request = samples.LOCAL_REQUESTS[data[0] % len(samples.LOCAL_REQUESTS)] if data else None
    if request is not None:
        read_local(request, 500 if data[0] & 128 else 200, data[1:])


def _event_xml(data: bytes) -> None:
    found: list[Event | None] = [None, None]
    for place, read in enumerate((read_event, read_tree)):
        with suppress(QnsError):
            found[place] = read(data, AGENCIES)
    event, same = found
    assert event == same, "the two readers differ"
    if event is not None:
        assert read_event(write_event(event, AGENCIES), AGENCIES) == event, "not the same again"


def _event_json(data: bytes) -> None:
    event = _EVENTS.read(data)
    assert _EVENTS.from_fields(write_event_json(event, AGENCIES)) == event, "not the same again"


def _subscription_text(data: bytes) -> None:
    subscription = parse_subscription(data.decode("utf-8", "replace"), AGENCIES)
    for write in (write_readable, write_thesis):
        assert parse_subscription(write(subscription, AGENCIES), AGENCIES) == subscription


def _subscription_xml(data: bytes) -> None:
    subscription = read_subscription(data, AGENCIES)
    assert read_subscription(write_subscription(subscription, AGENCIES), AGENCIES) == subscription


def _federation(data: bytes) -> None:
    federation = read_federation(data)
    assert read_federation(write_federation(federation)) == federation, "not the same again"


def _schema(data: bytes) -> None:
    schema = read_schema(data)
    assert read_schema(write_schema(schema)) == schema, "not the same again"


def _document(data: bytes) -> None:
    document = read_document(data, AGENCIES)
    assert read_document(write_document(document, AGENCIES), AGENCIES) == document


def _cursor(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    assert Cursor.of(str(Cursor.of(text))) == Cursor.of(text), "not the same again"


def _admin(data: bytes) -> None:
    with suppress(QnsError):
        read_answer(data)
    read_request(data)


def _history(data: bytes) -> None:
    read_record(data)


def _evidence(data: bytes) -> None:
    """Reads evidence and judges it: only the genuine one is proved."""
    evidence = read_evidence(data)
    assert read_evidence(write_evidence(evidence)) == evidence, "not the same again"
    if verify(evidence, _TRUST).is_proved:
        genuine = read_evidence(_EVIDENCE)
        same = replace(evidence, accepted_at=genuine.accepted_at, timestamp=genuine.timestamp)
        assert same == genuine, "altered evidence is proved"


def _timestamp(data: bytes) -> None:
    """Checks a timestamp: only the time of the genuine one is proved."""
    assert checked_time(data, _STAMP.root, _AUTHORITY) == _STAMPED_AT, "another time is proved"


def _replies(bodies: Iterable[bytes], kinds: int) -> tuple[bytes, ...]:
    """Returns inputs for the targets whose first byte chooses the request."""
    return tuple(bytes([kind]) + body for kind in range(kinds) for body in bodies)


_PEER_CALLS: Final = tuple(write_call(each)[0] for each in samples.PEER_REQUESTS)
_LOCAL_CALLS: Final = tuple(
    write_local(each, schema=AGENCIES, token="t")[0] for each in samples.LOCAL_REQUESTS
)
_HTTP: Final = (
    b"POST /peer HTTP/1.1\r\nHost: peer\r\nContent-Length: 3\r\n\r\nabc"
    b"GET /health HTTP/1.1\r\n\r\n",
    b"POST /local HTTP/1.1\r\nHost: peer\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: peer\r\nExpect: 100-continue\r\nConnection: upgrade\r\n"
    b"Upgrade: h2c\r\nContent-Length: 1\r\n\r\na",
)
_EVENT_LINES: Final = tuple(
    json.dumps(write_event_json(each, AGENCIES)).encode() for each in samples.EVENTS
)

_EXAMPLE: Final = Path(__file__).parents[2] / "examples/evidence"
_EVIDENCE: Final = (_EXAMPLE / "gust-1.json").read_bytes()
_TRUST: Final = Trust(read_anchor((_EXAMPLE / "weather.anchor").read_bytes()))
_AUTHORITY: Final = read_authority((_EXAMPLE / "tsa.pem").read_bytes())
_STAMP: Final = cast("Timestamp", read_evidence(_EVIDENCE).timestamp)
_STAMPED_AT: Final = checked_time(_STAMP.response, _STAMP.root, _AUTHORITY)

TARGETS: Final = {
    target.name: target
    for target in (
        Target("http", _http, _HTTP),
        Target("soap-peer", _soap_peer, _PEER_CALLS),
        Target("soap-local", _soap_local, _LOCAL_CALLS),
        Target("peer-reply", _peer_reply, _replies(_PEER_CALLS, 9)),
        Target("local-answer", _local_answer, _replies(_LOCAL_CALLS, 9)),
        Target("event-xml", _event_xml, tuple(write_event(e, AGENCIES) for e in samples.EVENTS)),
        Target("event-json", _event_json, _EVENT_LINES),
        Target(
            "subscription-text",
            _subscription_text,
            tuple(each.encode() for each in samples.SUBSCRIPTIONS),
        ),
        Target("subscription-xml", _subscription_xml, samples.XML_SUBSCRIPTIONS),
        Target("federation", _federation, samples.FEDERATIONS),
        Target("schema", _schema, samples.SCHEMAS),
        Target("document", _document, samples.DOCUMENTS),
        Target("cursor", _cursor, (b"12", b"12@a1b2", b"0")),
        Target("admin", _admin, (write_request("tables", {"limit": 3}),)),
        Target("evidence", _evidence, (_EVIDENCE,)),
        Target("timestamp", _timestamp, (_STAMP.response,)),
        Target("history", _history, (b'{"do": "calm", "t": 1.0}', b'{"do": "join", "org": "A"}')),
    )
}
