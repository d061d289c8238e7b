"""Requests with HTTP headers that SOAP 1.1 does not allow, or with a body that is not UTF-8 XML."""

from __future__ import annotations

import gzip
import zlib

from tests.soap.hostile.case import Answer, Case, local, peer
from tests.soap.hostile.wire import ask_peer, envelope, notify, publish, pull, subscribe

_DECLARED = '<?xml version="1.0" encoding="{}"?>'


def declared(encoding: str, codec: str) -> bytes:
    return (_DECLARED.format(encoding) + ask_peer("gossip").decode()).encode(codec)


def _multipart() -> bytes:
    return (
        b"--b\r\nContent-Type: text/xml; charset=utf-8\r\nContent-ID: <root>\r\n\r\n"
        + notify()
        + b"\r\n--b--\r\n"
    )


def _xop() -> bytes:
    include = (
        '<x:Include xmlns:x="http://www.w3.org/2004/08/xop/include" href="file:///etc/passwd"/>'
    )
    return envelope(f"<publish><owner>anna</owner><event>{include}</event></publish>")


CASES: list[Case] = [
    peer("an empty body", b""),
    local("only white space", b" \r\n\t \n"),
    peer("a single <", b"<"),
    local("plain words", b"subscribe please"),
    local("JSON", b'{"subscribe": {"owner": "anna"}}', Content_Type="application/json"),
    local("JSON that says it is XML", b'{"subscribe": {"owner": "anna"}}'),
    local("a form", b"owner=anna&id=s1", Content_Type="application/x-www-form-urlencoded"),
    peer("no content type", notify, Content_Type=""),
    peer("octets", notify, Content_Type="application/octet-stream"),
    peer("SOAP 1.2's content type", notify, Content_Type="application/soap+xml; charset=utf-8"),
    peer("a content type of 5,000 characters", notify, Content_Type="text/" + "x" * 5_000),
    peer("gzip", lambda: gzip.compress(notify()), Content_Encoding="gzip"),
    peer("deflate", lambda: zlib.compress(notify()), Content_Encoding="deflate"),
    peer("gzip in name only", notify, Content_Encoding="gzip"),
    peer("a gzip bomb", lambda: gzip.compress(bytes(50_000_000)), Content_Encoding="gzip"),
    peer("gzip that is not mentioned", lambda: gzip.compress(notify())),
    peer("multipart/related", _multipart, Content_Type='multipart/related; boundary="b"'),
    peer("multipart without a boundary", _multipart, Content_Type="multipart/related"),
    local(
        "an XOP include of a local file",
        _xop,
        Content_Type='application/xop+xml; charset=utf-8; type="text/xml"',
    ),
    local("an XOP include inline", _xop),
    peer("an unknown charset", notify, Content_Type="text/xml; charset=klingon"),
    peer("charset UTF-16 for UTF-8", notify, Content_Type="text/xml; charset=utf-16"),
    peer("charset Latin-1", notify, Content_Type="text/xml; charset=iso-8859-1"),
    peer("UTF-16 with its mark", lambda: declared("utf-16", "utf-16")),
    peer("UTF-16 without a mark", lambda: ask_peer("gossip").decode().encode("utf-16-le")),
    peer("UTF-16 that claims UTF-8", lambda: declared("utf-8", "utf-16-be")),
    peer("UTF-32", lambda: declared("utf-32", "utf-32")),
    peer("UTF-7", lambda: declared("utf-7", "utf-7")),
    peer("EBCDIC", lambda: declared("cp037", "cp037")),
    peer("declared as Latin-1", lambda: declared("iso-8859-1", "latin-1")),
    peer("declared as an unknown encoding", lambda: declared("klingon", "ascii")),
    peer("an encoding of 100,000 characters", lambda: declared("x" * 100_000, "ascii")),
    peer("two byte order marks", lambda: b"\xef\xbb\xbf" * 2 + ask_peer("gossip")),
    local("invalid UTF-8", lambda: subscribe("Enterprise").replace(b"Enterprise", b"\xff\xfe")),
    local("overlong UTF-8", lambda: pull(id="\x01").replace(b"\x01", b"\xc0\xbcs1")),
    local("a UTF-8 character cut in two", lambda: pull() + b"\xe2\x82"),
    local("a surrogate in UTF-8", lambda: subscribe("Enterprise \ud800")),
    local("half of a request", lambda: publish()[:300]),
    local("a request and a half", lambda: pull() + pull()[:100]),
    local("two requests in one", lambda: pull() * 2),
    peer("5 MB of spaces before the envelope", lambda: b" " * 5_000_000 + ask_peer("gossip")),
    peer("another operation's SOAPAction", notify, SOAPAction='"changeSub"'),
    local("a SOAPAction of 5,000 characters", pull, SOAPAction='"' + "x" * 5_000 + '"'),
    peer("an empty SOAPAction", lambda: ask_peer("gossip"), Answer.SERVED),
]
