"""Hardening: which requests `parse_hostile` accepts and which it rejects."""

from __future__ import annotations

import subprocess
import sys
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from qns.d2q.names import Vocabulary
from qns.errors import DocumentError, LimitExceeded, QnsError
from qns.soap import hardening
from qns.soap.hardening import parse_hostile
from tests.soap.hostile.wire import notify

ROOT = b'<a xmlns="urn:a">'


def text_of(root: etree._Element) -> bytes:
    return etree.tostring(root, encoding="utf-8")


# -- accepted requests ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"<a/>",
        b"\xef\xbb\xbf<a/>",
        b'<?xml version="1.0" encoding="utf-8"?>\n<a/>\n',
        b"<?xml version='1.0' encoding='US-ASCII' standalone='yes'?><a/>",
        b"\n\t <a/>",
        "<è ì='ò'>ù</è>".encode(),
        b"<a>1 > 0 &amp; 0 &lt; 1 &#10; &#x1F600; &quot;&apos;</a>",
        b"""<a b=">" c='"' d="'" e = 'x/'><f/><g /></a>""",
        b"<a><![CDATA[<b> &c; <!-- ]]>]]&gt;</a>",
        b"<a>\n  <b>\n    <c/>\n  </b>\n</a>",
        notify(),
    ],
)
def test_well_formed_xml_is_read_as_lxml_reads_it(body: bytes) -> None:
    for _ in range(2):  # the tags are new the first time and known the second time
        assert text_of(parse_hostile(body)) == text_of(etree.fromstring(body))


def test_comments_are_dropped_and_the_text_around_them_is_joined() -> None:
    root = parse_hostile(b"<!-- a --><a>1<!-- <b> &c; -->2</a><!-- d -->")
    assert root.text == "12"
    assert len(root) == 0


def test_a_tree_of_unknown_names_outlives_the_thread_that_read_it() -> None:
    names = [f"name{n}" for n in range(hardening.MAX_NEW_TAGS // 2)]
    bodies = [
        "".join(["<a>", *(f"<{name}.{nth}/>" for name in names), "</a>"]).encode()
        for nth in range(10)
    ]
    roots = [parse_hostile(body) for body in bodies]
    for nth, root in enumerate(roots):
        assert [child.tag for child in root] == [f"{name}.{nth}" for name in names]
        assert text_of(root) == text_of(etree.fromstring(bodies[nth]))


# -- bounds -----------------------------------------------------------------------------------


def nested(levels: int) -> bytes:
    return b"<a>" * levels + b"</a>" * levels


def flat(number: int) -> bytes:
    return b"<a>" + b"<b></b>" * (number - 1) + b"</a>"


def attributes(number: int) -> bytes:
    return b"<a %b/>" % b" ".join(b"b%d=''" % n for n in range(number))


def attributes_in_all(number: int) -> bytes:
    return b"<a>%b</a>" % (b"<b c='' d=''/>" * (number // 2) + b"<b c=''/>" * (number % 2))


def namespaces(number: int) -> bytes:
    return b"<a>%b</a>" % (b"<b xmlns='urn:b'/>" * number)


def named(length: int) -> bytes:
    return b"<%b/>" % (b"a" * length)


def tagged(length: int) -> bytes:
    return b"<a b='%b'/>" % (b"c" * (length - len(b"<a b=''/>")))


def spelled(number: int) -> bytes:
    """Returns a body with `number` different tags, none of which any earlier body had."""
    nth = next(_CALLS)
    return b"<a>%b</a>" % b"".join(b"<b%d.%d/>" % (nth, n) for n in range(number))


_CALLS = count(1)


@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (nested, hardening.MAX_DEPTH),
        (flat, hardening.LOCAL.elements),
        (attributes, hardening.MAX_ATTRIBUTES),
        (attributes_in_all, hardening.MAX_ALL_ATTRIBUTES),
        (namespaces, hardening.MAX_NAMESPACES),
        (named, hardening.MAX_NAME_BYTES),
        (tagged, hardening.MAX_TAG_BYTES),
        (spelled, hardening.MAX_NEW_TAGS),
        (lambda length: b"<a/>".ljust(length), hardening.LOCAL.bytes),
    ],
)
def test_request_is_accepted_at_a_bound_and_rejected_beyond_it(
    make: object, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(make)
    monkeypatch.setattr(hardening, "_VOCABULARY", Vocabulary())  # independent of earlier tests
    parse_hostile(b"<a></a>")
    parse_hostile(make(limit))
    with pytest.raises(LimitExceeded) as caught:
        parse_hostile(make(limit + 1))
    assert f"{limit:,}" in caught.value.remedy
    assert caught.value.line is not None


# -- rejected requests ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (b"<a>\n<!DOCTYPE a>\n</a>", 2, "DOCTYPE"),
        (b'<!-- x -->\n\n<!DOCTYPE a [<!ENTITY b "c">]>\n<a>&b;</a>', 3, "DOCTYPE"),
        (b"<!doctype a><a/>", 1, "DOCTYPE"),
        (b"<a>\n\n<?b c?></a>", 3, "processing instruction"),
        (b" <?xml version='1.0'?><a/>", 1, "processing instruction"),
        (b"<a>\n&b;</a>", 2, "entity"),
        (b"<a b='&c;'/>", 1, "entity"),
        (b"<a><![CDATA[&b;]]>&c;</a>", 1, "entity"),
        (b"<a>\n<b <c/></a>", 2, "malformed"),
        (b"<a>\n1 < 2</a>", 2, "malformed"),
        (b"<a>\n<!-- b</a>", 2, "malformed"),
        (b"<a b=c/>", 1, "malformed"),
        (b"<a></b></a>", 1, "malformed"),
        (b"<a/><a/>", 1, "malformed"),
        (b"<a>\n\0</a>", 2, "NUL"),
        (b"<a>\n\xff</a>", 2, "UTF-8"),
        ("<a/>".encode("utf-16"), 1, "UTF-8"),
        ("<a/>".encode("utf-16-le"), 1, "NUL"),
        (b"\xef\xbb\xbf\xef\xbb\xbf<a/>", 1, "no XML"),
        (b"<?xml version='1.0' encoding='utf-16'?><a/>", 1, "encoding"),
        (b"<?xml version='1.0' encoding='iso-8859-1'?><a/>", 1, "encoding"),
        (b"", 1, "no XML"),
        (b"   ", 1, "no XML"),
        (b"hello", 1, "no XML"),
    ],
)
def test_error_names_the_line_the_problem_and_the_remedy(
    body: bytes, line: int, words: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_hostile(body)
    assert words in caught.value.problem
    assert caught.value.line == line
    assert caught.value.remedy


@pytest.mark.parametrize(
    "body",
    [
        b"<a></%b>" % (b"b" * hardening.MAX_NAME_BYTES),
        b"<a b='' %b=''/>" % (b"c" * 100_000),
        b"<?xml version='1.0' encoding='%b'?><a/>" % (b"d" * 100_000),
        b"<a>&%b;</a>" % (b"e" * 100_000),
        b"<?%b?><a/>" % (b"f" * 100_000),
        b"<!DOCTYPE %b><a/>" % (b"g" * 100_000),
        b"<%b:a/>" % (b"h" * 100),
    ],
)
def test_error_does_not_quote_a_long_request(body: bytes) -> None:
    with pytest.raises(QnsError) as caught:
        parse_hostile(body)
    assert len(str(caught.value)) < 400


# -- any bytes --------------------------------------------------------------------------------

_TAGS = [b"<", b">", b"/", b"</a>", b"<a>", b"<b/>", b"<!--", b"-->", b"<![CDATA[", b"]]>"]
_DECLARATIONS = [b"&", b";", b"&lt;", b"<?", b"?>", b"<!DOCTYPE a>", b"xmlns:b='c'", b"b:"]
_CHARACTERS = [b"'", b'"', b"=", b" b='c'", b"\n", b"\0", b"\xff", b"a", "è".encode()]
_PIECES = st.sampled_from(_TAGS + _DECLARATIONS + _CHARACTERS)


@given(st.lists(_PIECES | st.binary(max_size=3), max_size=12).map(b"".join))
@example(b"<a b='>' c=''>")
@example(b"<!-->--><a/>")
@example(b"<a>]]></a>")
def test_random_bytes_are_read_as_lxml_reads_them_or_rejected(piece: bytes) -> None:
    body = ROOT + piece + b"</a>"
    try:
        root = parse_hostile(body)
    except QnsError:
        return
    parser = etree.XMLParser(resolve_entities=False, remove_comments=True, remove_pis=True)
    assert text_of(root) == text_of(etree.fromstring(body, parser))


@given(st.integers(0, len(notify())), st.integers(0, 3), _PIECES | st.binary(max_size=2))
def test_request_with_one_change_is_read_as_lxml_reads_it_or_rejected(
    at: int, gone: int, new: bytes
) -> None:
    body = notify()
    body = body[:at] + new + body[at + gone :]
    try:
        root = parse_hostile(body)
    except QnsError:
        return
    parser = etree.XMLParser(resolve_entities=False, remove_comments=True)
    assert text_of(root) == text_of(etree.fromstring(body, parser))


# -- memory -----------------------------------------------------------------------------------

_GROWTH = """
import random, sys
from pathlib import Path
from qns.errors import QnsError
from qns.soap.hardening import parse_hostile

chance = random.Random(1)
new = lambda length: b"a" + chance.randbytes(length // 2).hex().encode()
blank = lambda length: bytes(chance.choices(b" \\t\\n", k=length))
makers = [
    lambda: b"<%b/>" % new(100),
    lambda: b"<a %b=''/>" % new(100),
    lambda: b"<a xmlns:%b='u'/>" % new(100),
    lambda: b"<a xmlns='%b'/>" % new(100),
    lambda: b"<a b='>' %b=''/>" % new(100),
    lambda: b"<a>%b</a>" % blank(59),
    lambda: b"<!---->%b<a/>" % blank(59),
    lambda: b"&%b;" % new(100),
    lambda: b"<?%b?>" % new(100),
    lambda: b"<%b " % new(100),
]
pages = lambda: int(Path("/proc/self/statm").read_text().split()[1])
def send(times):
    for _ in range(times):
        for make in makers:
            body = b"".join(make() for _ in range(900))
            for end in (b"</r>", b""):
                try:
                    parse_hostile(b"<r>" + body + end)
                except QnsError:
                    pass
send(3)
before = pages()
send(20)
print((pages() - before) * 4096)
"""


def test_new_names_do_not_fill_the_memory() -> None:
    """Sends 30 MB of new names, in every place where XML has names; lxml alone keeps about 30 MB.

    The growth is 3 to 10 MiB, depending on the Python version, and not more for three times as
    many names.
    """
    done = subprocess.run(
        [sys.executable, "-c", _GROWTH], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 15 * 2**20
