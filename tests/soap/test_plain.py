"""The plain reader gives what the tree readers give, and leaves envelopes that are not plain."""

from __future__ import annotations

import random
from binascii import a2b_base64, b2a_base64
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl.messages import Entry, Envelope, Fence, Gossip, Notification, Notify
from qns.errors import QnsError
from qns.soap.contract import read_unusual
from qns.soap.endpoint import _HAS_ATTRIBUTES, _REQUESTS, read_ordinary
from qns.soap.envelope import message_id_of, open_envelope, write_envelope
from qns.soap.hardening import LOCAL, PEER, Bounds, parse_hostile
from qns.soap.operations import BY_TAG, OPERATION_CODECS
from qns.soap.peer_client import write_call
from qns.soap.plain import _bytes, _NotPlain, read_plain
from tests.soap.messages import messages
from tests.soap.test_equal_paths import FULL

REQUESTS = st.sampled_from([*OPERATION_CODECS.values(), OPERATION_CODECS["notify"]]).flatmap(
    lambda codec: messages(codec.request.shape).map(codec.request.write)
)
ENTRY = Entry("INAIL", 1, 2, 3, 2)
CHARACTERS = ["", " ", "\n", "\r", "\t", "\x00", "\x7f", "\x85", "\ufffe", "\ufeff", "é", "𝄞"]
MARKUP = ["<", ">", "/", "&", "&amp;", "&#49;", "]]>", "<!---->", "<?p?>", "<![CDATA[1]]>"]
VALUES = ["a", "x", "A", "0", "1", "-", "+", ".", "e", "_", "=", "==", "true", "false", "٣", "YQ"]
LIMITS = ["9223372036854775808", "999999999999999999", "0" * 5_000, "60.5", "1e400", "INF", "NaN"]
ELEMENTS = ["YR==", "<path>a</path>", "<path/>", "<signature>YQ==</signature>", "</notification>"]
NESTED = ["<child/>", "<fence><epoch>1</epoch><first>1</first></fence>", "</entry>"]
ENVELOPE = ["</notify>", "</soap:Body>", "<soap:Header/>", "soap:"]
ATTRIBUTES = ['"', "'", ' xmlns="urn:qns:peer:1"', ' id="1"', ' xmlns="urn:other"']
SPLICES = CHARACTERS + MARKUP + VALUES + LIMITS + ELEMENTS + NESTED + ENVELOPE + ATTRIBUTES


def by_tree(body: bytes) -> Any:
    """Returns what the tree readers read, with the MessageID; None if they reject the body."""
    try:
        root = parse_hostile(body, PEER)
        opened = open_envelope(root)
        codec = BY_TAG[opened.content.tag]
        if opened.is_ordinary and not _HAS_ATTRIBUTES(opened.content):
            return read_ordinary(opened.content, codec), message_id_of(root)
        return read_unusual(root, opened.content, codec), message_id_of(root)
    except (QnsError, KeyError):
        return None


def is_plain_and_equal(text: str) -> bool:
    """True if the envelope is plain; then the tree readers must give the same."""
    body = text.encode("utf-8", "surrogatepass")
    plain = read_plain_request(body)
    if plain is None:
        return False
    assert plain == by_tree(body), text
    return True


def read_plain_request(body: bytes, bounds: Bounds = PEER) -> Any:
    found = read_plain(body, bounds, _REQUESTS)
    return None if found is None else (found.value, found.message_id)


@given(REQUESTS, st.sampled_from(["", "urn:uuid:1", " id "]))
def test_every_written_envelope_is_read_equally(content: str, message_id: str) -> None:
    text = write_envelope(content, message_id=message_id).decode()
    must_be_plain = "&" not in text and all(char.isprintable() for char in text) and "e" not in text
    assert is_plain_and_equal(text) or not must_be_plain


@pytest.mark.parametrize("name", FULL)
def test_requests_of_peers_and_clients_are_plain(name: str) -> None:
    body = write_envelope(OPERATION_CODECS[name].request.write(FULL[name]), message_id="urn:uuid:1")
    assert read_plain_request(body.replace(b"&lt;", b"").replace(b"&gt;", b"")) is not None


@pytest.mark.parametrize("name", FULL)
def test_envelope_with_one_splice_is_read_equally_or_is_not_plain(name: str) -> None:
    content = OPERATION_CODECS[name].request.write(FULL[name])
    text = write_envelope(content, message_id="urn:uuid:1").decode()
    text = text.replace("&lt;", "").replace("&gt;", "")
    chance = random.Random(7)
    plain = other = 0
    for at in range(len(text)):
        for splice in chance.sample(SPLICES, 6):
            for changed in (text[:at] + splice + text[at:], text[:at] + splice + text[at + 1 :]):
                if is_plain_and_equal(changed):
                    plain += 1
                else:
                    other += 1
    assert plain > 100
    assert other > 1_000


@given(st.data())
def test_envelope_with_random_splices_is_read_equally_or_is_not_plain(data: st.DataObject) -> None:
    text = write_envelope(OPERATION_CODECS["notify"].request.write(FULL["notify"])).decode()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        upto = data.draw(st.integers(at, min(len(text), at + 60)))
        text = text[:at] + data.draw(st.sampled_from(SPLICES)) + text[upto:]
    is_plain_and_equal(text)


def notified(entry: Entry, number: int = 1) -> bytes:
    item = Notification("INPS", 1, 2, 3, "e1", b"<event/>", 60.0, entry, ("INPS",))
    return write_call(Envelope("INPS", 3, (), Notify((item,) * number)))[0]


@pytest.mark.parametrize(("levels", "is_plain"), [(1, True), (12, True), (13, False)])
def test_envelope_is_not_plain_if_receivers_are_nested_too_deep(
    levels: int, is_plain: bool
) -> None:
    entry = ENTRY
    for _ in range(levels):
        entry = Entry("CoC", 1, 1, 1, 1, (Fence(1, 1),), (entry, ENTRY))
    body = notified(entry)
    assert is_plain_and_equal(body.decode()) is is_plain
    assert by_tree(body) is not None


def test_envelope_beyond_the_bounds_is_not_plain() -> None:
    body = notified(ENTRY, 10)
    elements = body.count(b"</")
    assert read_plain_request(body, Bounds(len(body), elements)) is not None
    assert read_plain_request(body, Bounds(len(body), elements - 1)) is None
    assert read_plain_request(body, Bounds(len(body) - 1, elements)) is None


def test_body_that_is_not_utf8_is_not_plain() -> None:
    body = write_call(Envelope("INPS", 3, (), Gossip()))[0]
    assert read_plain_request(body, LOCAL) is not None
    assert read_plain_request(body.replace(b"INPS", b"IN\xffS"), LOCAL) is None


def test_base64_is_plain_only_in_the_form_that_the_writer_produces() -> None:
    """A text with another character, an unused bit that is set or other padding is not plain."""
    for length in range(6):
        for signs in product("AQgB/=\n -", repeat=length):
            text = "".join(signs)
            try:
                data = a2b_base64(text)
            except ValueError:
                data = b"no"
            is_canonical = b2a_base64(data, newline=False).decode() == text
            assert (_read_bytes(text) == data) is is_canonical, text


def _read_bytes(text: str) -> bytes | None:
    try:
        return _bytes(text)
    except (_NotPlain, ValueError):
        return None
