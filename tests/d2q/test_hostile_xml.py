"""For any bytes, a reader returns a value or raises a QnsError with the position."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.d2q.document_xml import read_document
from qns.d2q.dtd import read_dtd, write_dtd
from qns.d2q.event_xml import read_event
from qns.d2q.schema_xml import read_schema, write_schema
from qns.d2q.shipped import AGENCIES
from qns.d2q.subscription_xml import read_subscription, read_subscriptions, write_subscriptions
from qns.errors import QnsError
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.roots import Anchor
from qns.federation.roots_xml import read_anchor, write_anchor
from qns.federation.shipped import AGENCIES_FEDERATION
from tests.d2q import test_document_xml, test_event_xml, test_subscription_xml
from tests.federation.signing import root_set, rooted, sign

Reader = Callable[[bytes], object]

SUBSCRIPTION = test_subscription_xml.S4.encode()
SIGNED = write_federation(sign(rooted(AGENCIES_FEDERATION, root_set(1, 1, 1)), 1))
READERS: dict[str, tuple[Reader, bytes]] = {
    "document": (lambda data: read_document(data, AGENCIES), test_document_xml.WRITTEN),
    "event": (lambda data: read_event(data, AGENCIES), test_event_xml.WRITTEN),
    "subscription": (lambda data: read_subscription(data, AGENCIES), SUBSCRIPTION),
    "subscriptions": (
        lambda data: read_subscriptions(data, AGENCIES),
        write_subscriptions([("a", read_subscription(SUBSCRIPTION, AGENCIES))], AGENCIES),
    ),
    "schema": (read_schema, write_schema(AGENCIES)),
    "federation": (read_federation, write_federation(AGENCIES_FEDERATION)),
    "signed federation": (read_federation, SIGNED),
    "anchor": (read_anchor, write_anchor(Anchor("Name", root_set(1, 1, 1)))),
    "dtd": (read_dtd, write_dtd(AGENCIES).encode()),
}


def refused(reader: Reader, data: bytes) -> QnsError | None:
    """Returns the QnsError, or None. Any other exception fails the test."""
    error = None
    try:
        reader(data)
    except QnsError as problem:
        error = problem
    assert error is None or (error.place and error.line and len(str(error)) < 1_000)
    return error


@pytest.mark.parametrize("name", READERS)
def test_valid_document_is_read(name: str) -> None:
    reader, valid = READERS[name]
    assert refused(reader, valid) is None


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda valid: b"",
    "blank": lambda valid: b" \n\t",
    "half": lambda valid: valid[: len(valid) // 2],
    "twice": lambda valid: valid + valid + b"<",
    "NUL": lambda valid: valid.replace(b"<", b"<\0", 1),
    "UTF-16": lambda valid: valid.decode().encode("utf-16"),
    "UTF-16 without a mark": lambda valid: valid.decode().encode("utf-16-be"),
    "invalid UTF-8": lambda valid: valid.replace(b"Name", b"N\xe4me"),
    "unknown charset": lambda valid: (
        b'<?xml version="1.0" encoding="x-klingon"?>' + valid.split(b"?>")[-1]
    ),
    "DOCTYPE": lambda valid: b"<!DOCTYPE a []>" + valid.split(b"?>")[-1],
    "external entity": lambda valid: (
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
        + valid.split(b"?>")[-1].replace(b"Name", b"&x;")
    ),
    "wrong root": lambda valid: b"<html/>",
    "root in no namespace": lambda valid: b"<event/>",
    "depth 10,000": lambda valid: b"<a>" * 10_000,
    "100,000 attributes": lambda valid: (
        b"<a " + b" ".join(b'a%d=""' % number for number in range(100_000)) + b"/>"
    ),
    "17 MB": lambda valid: valid + b" " * 17_000_000,
}


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", READERS)
def test_every_reader_rejects_hostile_xml(name: str, hostile: str) -> None:
    reader, valid = READERS[name]
    assert refused(reader, HOSTILE[hostile](valid)) is not None


SNIPPETS = [
    *(
        b"<",
        b">",
        b"&",
        b"&amp;",
        b"&#0;",
        b"&#13;",
        b"]]>",
        b"<![CDATA[",
        b"<!--",
        b"-->",
        b"<?x?>",
    ),
    *(b"<!DOCTYPE a>", b"<!ENTITY x 'y'>", b"%x;", b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n"),
    *(b"<value>", b"</value>", b"<value/>", b"<property/>", b"<Holder/>", b'<Holder id="x"/>'),
    *(b"/", b".", b'"', b"'", b"=", b" ", b"-", b"1", b"1.2", b"NaN", b"INF", b"1e999", b"low"),
    *(b' id="p1"', b' of="e1"', b' absent="true"', b' previous="1"', b' xmlns=""', b"p1", b"in"),
    *(b' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"', b"between"),
    *("²".encode(), "é".encode(), "\ufffe".encode(), "\U0001f600".encode(), b"d2q:", b"xml:id"),
]


@st.composite
def mutated(draw: st.DrawFn, valid: bytes) -> bytes:
    """Draws the text with a few pieces removed, doubled, moved or replaced."""
    data = valid
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12) | st.integers(0, len(data))))
        piece = data[start:end]
        match draw(st.integers(0, 4)):
            case 0:
                data = data[:start] + data[end:]
            case 1:
                data = data[:end] + piece + data[end:]
            case 2:
                data = data[:start] + draw(st.sampled_from(SNIPPETS)) + data[start:]
            case 3:
                data = data[:start] + draw(st.sampled_from(SNIPPETS)) + data[end:]
            case 4:
                rest = data[:start] + data[end:]
                at = draw(st.integers(0, len(rest)))
                data = rest[:at] + piece + rest[at:]
    return data


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_mutated_bytes_raise_only_qns_errors(name: str, data: st.DataObject) -> None:
    reader, valid = READERS[name]
    refused(reader, data.draw(mutated(valid)))


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_words_in_wrong_places_raise_only_qns_errors(name: str, data: st.DataObject) -> None:
    """These texts are well-formed more often, so they reach deeper into the readers."""
    reader, valid = READERS[name]
    words = sorted(set(valid.replace(b">", b" ").replace(b"<", b" ").replace(b'"', b" ").split()))
    old, new = data.draw(st.sampled_from(words)), data.draw(st.sampled_from(words))
    replaced = valid.replace(old, new, data.draw(st.sampled_from([1, 2, -1])))
    refused(reader, replaced)
