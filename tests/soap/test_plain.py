"""Plain envelopes are read as the tree is read; what is not plain is left to the tree."""

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
from qns.soap.operations import BY_TAG, EXCHANGES
from qns.soap.peer_client import write_call
from qns.soap.plain import _bytes, _NotPlain, read_plain
from tests.soap.messages import messages
from tests.soap.test_equal_paths import FULL

REQUESTS = st.sampled_from([*EXCHANGES.values(), EXCHANGES["notify"]]).flatmap(
    lambda exchange: messages(exchange.request.shape).map(exchange.request.write)
)
ENTRY = Entry("INAIL", 1, 2, 3, 2)
SPLICES = [
    *("", " ", "\n", "\r", "\t", "\x00", "\x7f", "\x85", "\ufffe", "\ufeff", "é", "𝄞", "a", "x"),
    *("<", ">", "/", "&", "&amp;", "&#49;", "]]>", "<!---->", "<?p?>", "<![CDATA[1]]>", '"', "'"),
    *("0", "1", "-", "+", ".", "e", "_", "=", "==", "A", "INF", "NaN", "true", "false", "٣"),
    *("9223372036854775808", "999999999999999999", "0" * 5_000, "60.5", "1e400", "YR==", "YQ"),
    *("<path>a</path>", "<path/>", "<signature>YQ==</signature>", "</notification>", "<child/>"),
    *("<fence><epoch>1</epoch><first>1</first></fence>", "</entry>", "</notify>", "</soap:Body>"),
    *(' xmlns="urn:qns:peer:1"', ' id="1"', ' xmlns="urn:other"', "<soap:Header/>", "soap:"),
]


def by_tree(body: bytes) -> Any:
    """What the long way reads, and the MessageID; None if it refuses."""
    try:
        root = parse_hostile(body, PEER)
        opened = open_envelope(root)
        exchange = BY_TAG[opened.content.tag]
        if opened.is_ordinary and not _HAS_ATTRIBUTES(opened.content):
            return read_ordinary(opened.content, exchange), message_id_of(root)
        return read_unusual(root, opened.content, exchange), message_id_of(root)
    except (QnsError, KeyError):
        return None


def is_read_alike(text: str) -> bool:
    """Whether it is plain; if so, the tree tells the same."""
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
def test_whatever_is_sent_is_read_alike(content: str, message_id: str) -> None:
    text = write_envelope(content, message_id=message_id).decode()
    told_plainly = "&" not in text and all(char.isprintable() for char in text) and "e" not in text
    assert is_read_alike(text) or not told_plainly


@pytest.mark.parametrize("name", FULL)
def test_what_peers_and_clients_write_needs_no_tree(name: str) -> None:
    body = write_envelope(EXCHANGES[name].request.write(FULL[name]), message_id="urn:uuid:1")
    assert read_plain_request(body.replace(b"&lt;", b"").replace(b"&gt;", b"")) is not None


@pytest.mark.parametrize("name", FULL)
def test_each_small_change_is_read_alike_or_left_to_the_tree(name: str) -> None:
    content = EXCHANGES[name].request.write(FULL[name])
    text = write_envelope(content, message_id="urn:uuid:1").decode()
    text = text.replace("&lt;", "").replace("&gt;", "")
    chance = random.Random(7)
    plain = other = 0
    for at in range(len(text)):
        for splice in chance.sample(SPLICES, 6):
            for changed in (text[:at] + splice + text[at:], text[:at] + splice + text[at + 1 :]):
                if is_read_alike(changed):
                    plain += 1
                else:
                    other += 1
    assert plain > 100
    assert other > 1_000


@given(st.data())
def test_whatever_happened_to_the_bytes_is_read_alike(data: st.DataObject) -> None:
    text = write_envelope(EXCHANGES["notify"].request.write(FULL["notify"])).decode()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        upto = data.draw(st.integers(at, min(len(text), at + 60)))
        text = text[:at] + data.draw(st.sampled_from(SPLICES)) + text[upto:]
    is_read_alike(text)


def notified(entry: Entry, number: int = 1) -> bytes:
    item = Notification("INPS", 1, 2, 3, "e1", b"<event/>", 60.0, entry, ("INPS",))
    return write_call(Envelope("INPS", 3, (), Notify((item,) * number)))[0]


@pytest.mark.parametrize(("levels", "is_plain"), [(1, True), (12, True), (13, False)])
def test_only_so_deep_a_tree_of_receivers_is_plain(levels: int, is_plain: bool) -> None:
    entry = ENTRY
    for _ in range(levels):
        entry = Entry("CoC", 1, 1, 1, 1, (Fence(1, 1),), (entry, ENTRY))
    body = notified(entry)
    assert is_read_alike(body.decode()) is is_plain
    assert by_tree(body) is not None


def test_the_bounds_hold() -> None:
    body = notified(ENTRY, 10)
    elements = body.count(b"</")
    assert read_plain_request(body, Bounds(len(body), elements)) is not None
    assert read_plain_request(body, Bounds(len(body), elements - 1)) is None
    assert read_plain_request(body, Bounds(len(body) - 1, elements)) is None


def test_bytes_that_are_not_utf8_are_left_to_the_tree() -> None:
    body = write_call(Envelope("INPS", 3, (), Gossip()))[0]
    assert read_plain_request(body, LOCAL) is not None
    assert read_plain_request(body.replace(b"INPS", b"IN\xffS"), LOCAL) is None


def test_bytes_are_plain_only_in_the_one_way_in_which_they_are_written() -> None:
    """What differs in a sign, a bit that is not used, or the padding goes to the tree."""
    for length in range(6):
        for signs in product("AQgB/=\n -", repeat=length):
            text = "".join(signs)
            try:
                data = a2b_base64(text)
            except ValueError:
                data = b"no"
            is_written_so = b2a_base64(data, newline=False).decode() == text
            assert (_read_bytes(text) == data) is is_written_so, text


def _read_bytes(text: str) -> bytes | None:
    try:
        return _bytes(text)
    except (_NotPlain, ValueError):
        return None
