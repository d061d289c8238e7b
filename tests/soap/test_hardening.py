"""What the first look at a request's bytes lets through, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

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


# -- what is let through ----------------------------------------------------------------------


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
def test_sound_xml_is_read_as_lxml_reads_it(body: bytes) -> None:
    for _ in range(2):  # with tags that are new, and with tags that are known
        assert text_of(parse_hostile(body)) == text_of(etree.fromstring(body))


def test_comments_are_dropped_and_the_text_around_them_is_one() -> None:
    root = parse_hostile(b"<!-- a --><a>1<!-- <b> &c; -->2</a><!-- d -->")
    assert root.text == "12"
    assert len(root) == 0


def test_a_tree_of_unknown_names_outlives_the_thread_that_read_it() -> None:
    names = [f"name{n}" for n in range(hardening.MAX_NEW_TAGS // 2)]
    bodies = [
        "".join(["<a>", *(f"<{name}.{turn}/>" for name in names), "</a>"]).encode()
        for turn in range(10)
    ]
    roots = [parse_hostile(body) for body in bodies]
    for turn, root in enumerate(roots):
        assert [child.tag for child in root] == [f"{name}.{turn}" for name in names]
        assert text_of(root) == text_of(etree.fromstring(bodies[turn]))


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
    """Different tags, `number` of them, none of which was ever met."""
    spelled.turn += 1  # type: ignore[attr-defined]
    turn = spelled.turn  # type: ignore[attr-defined]
    return b"<a>%b</a>" % b"".join(b"<b%d.%d/>" % (turn, n) for n in range(number))


spelled.turn = 0  # type: ignore[attr-defined]


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
def test_as_much_as_a_bound_allows_is_read_and_no_more(
    make: object, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(make)
    monkeypatch.setattr(hardening, "_VOCABULARY", Vocabulary())  # whatever was met before
    parse_hostile(b"<a></a>")
    parse_hostile(make(limit))
    with pytest.raises(LimitExceeded) as caught:
        parse_hostile(make(limit + 1))
    assert f"{limit:,}" in caught.value.remedy
    assert caught.value.line is not None


# -- what is refused --------------------------------------------------------------------------


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
def test_a_refusal_tells_the_line_and_what_to_do(body: bytes, line: int, words: str) -> None:
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
def test_a_refusal_does_not_repeat_what_came(body: bytes) -> None:
    with pytest.raises(QnsError) as caught:
        parse_hostile(body)
    assert len(str(caught.value)) < 400


# -- any bytes --------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        *(b"<", b">", b"/", b"</a>", b"<a>", b"<b/>", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"&"),
        *(b";", b"&lt;", b"<?", b"?>", b"<!DOCTYPE a>", b"'", b'"', b"=", b" b='c'", b"\n", b"\0"),
        *(b"\xff", b"xmlns:b='c'", b"b:", b"a", "è".encode()),
    ]
)


@given(st.lists(_PIECES | st.binary(max_size=3), max_size=12).map(b"".join))
@example(b"<a b='>' c=''>")
@example(b"<!-->--><a/>")
@example(b"<a>]]></a>")
def test_whatever_comes_is_read_as_by_lxml_or_refused(piece: bytes) -> None:
    body = ROOT + piece + b"</a>"
    try:
        root = parse_hostile(body)
    except QnsError:
        return
    parser = etree.XMLParser(resolve_entities=False, remove_comments=True, remove_pis=True)
    assert text_of(root) == text_of(etree.fromstring(body, parser))


@given(st.integers(0, len(notify())), st.integers(0, 3), _PIECES | st.binary(max_size=2))
def test_a_sound_request_with_one_thing_changed_is_read_or_refused(
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


def test_ever_new_names_are_forgotten() -> None:
    """30 MB of them, in every place where XML has names; lxml alone keeps about as much.

    What stays is 3 to 10 MiB, more with newer Pythons, and no more for three times as many.
    """
    done = subprocess.run(
        [sys.executable, "-c", _GROWTH], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 15 * 2**20
