"""Hardening: checks the bytes of a request before anything else reads them.

One pass over the tags, before lxml parses them, rejects what is too expensive or not allowed: a
DOCTYPE and processing instructions (SOAP 1.1 §3), entities, too many elements, attributes or
namespaces, and names that are too long. Comments are dropped. lxml then parses the request without
entities, files or network.

lxml never forgets a name that it has read, so that new names would fill the memory
(`d2q/names.py`). Once enough tags are known, a request with unknown tags is parsed in a thread of
its own, whose names are released.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, cast

from lxml import etree

from qns.d2q.names import MARKUP, QUOTED, Vocabulary, apart
from qns.d2q.xml import line_of, new_parser, utf8
from qns.errors import DocumentError, LimitExceeded


class Bounds(NamedTuple):
    """The size of a message up to which it is read."""

    bytes: int
    elements: int


LOCAL: Final = Bounds(1_048_576, 20_000)
"""The bounds of requests from users and programs."""
PEER: Final = Bounds(4 * 1_048_576, 40_000)
"""The bounds of requests and replies of other peers: a merge subscription may be large."""
OWN: Final = Bounds(64 * 1_048_576, 1_000_000)
"""The bounds of replies that a program reads from the peer of its own organisation."""
MAX_DEPTH: Final = 128
MAX_ATTRIBUTES: Final = 64
"""The most attributes of one element, including namespace declarations."""
MAX_ALL_ATTRIBUTES: Final = 20_000
MAX_NAMESPACES: Final = 2_000
"""The most namespace declarations in a request."""
MAX_NAME_BYTES: Final = 128
MAX_TAG_BYTES: Final = 8_192
MAX_NEW_TAGS: Final = 1_000
"""The most different tags in a request that no earlier request had."""

_SHORTEST_DECLARATION = len(b' xmlns=""')
_DECLARATION = re.compile(rb"<\?xml[ \t\r\n][^<>]*?\?>")
_NAME = rb"[^\s<>\"'=/!?&]++"
_ATTRIBUTE = rb"\s++%b\s*+=\s*+(?:\"[^<\"]*+\"|'[^<']*+')" % _NAME
_TAG = re.compile(rb"<(?:%b(?:%b)*+\s*+/?|/%b\s*+)>\s*+" % (_NAME, _ATTRIBUTE, _NAME))
_LONG_NAME = re.compile(rb"[^\s<>=/]{%d}" % (MAX_NAME_BYTES + 1))
_NAMESPACE = re.compile(rb"\sxmlns(?::[^\s=]*+)?\s*+=")
_CDATA_OR_COMMENT = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL)
_ODD_REFERENCE = re.compile(rb"&(?!(?:lt|gt|amp|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_POSITION = re.compile(r", line \d+, column \d+\Z")


def parse_hostile(body: bytes, bounds: Bounds = LOCAL) -> etree._Element:
    """Returns the root element; raises DocumentError or LimitExceeded, with line and remedy."""
    body = utf8(body, bounds.bytes)
    if b"\0" in body:
        raise _refused(
            body, body.index(b"\0"), "a NUL byte cannot be part of XML", "send it as UTF-8"
        )
    if body[:1] != b"<" and body.lstrip()[:1] != b"<":
        raise DocumentError("the body is no XML", remedy="send a SOAP envelope").at_mark(1, None)
    tags = MARKUP.findall(body, _start(body))
    if len(tags) > 2 * bounds.elements:
        raise _too_much(body, len(body), "a larger number of elements", bounds.elements)
    is_known = _VOCABULARY.known.issuperset(tags) or _learn(body, tags)
    if len(body) > _SHORTEST_DECLARATION * MAX_NAMESPACES:  # a shorter body cannot exceed it
        _check_attributes(body, tags)
    if b"&" in body:
        _check_references(body)
    root = _read(body, _PARSER) if is_known else apart(lambda: _read(body, new_parser()))
    if len(tags) > 2 * MAX_DEPTH:
        _check_depth(root)
    return root


_VOCABULARY = Vocabulary()


def _start(body: bytes) -> int:
    """Returns the position after the XML declaration."""
    declaration = _DECLARATION.match(body)
    return declaration.end() if declaration else 0


def _learn(body: bytes, tags: list[bytes]) -> bool:
    """Checks tags that are new. Returns True if the vocabulary has room for them and keeps them."""
    new = [tag for tag in dict.fromkeys(tags) if tag not in _VOCABULARY.known]
    if len(new) > MAX_NEW_TAGS:
        raise LimitExceeded(
            f"there are {len(new):,} different tags that no request had before",
            remedy=f"send at most {MAX_NEW_TAGS:,}",
        ).at_mark(1, None)
    for tag in new:
        if not tag.startswith((b"<!--", b"<![CDATA[")):
            _check_tag(body, tag)
    return _VOCABULARY.takes(new)


def _check_tag(body: bytes, tag: bytes) -> None:
    if tag.startswith(b"<!"):
        remedy = "remove it; entities are not read either"
        raise _refused(body, _position(body, tag), "a DOCTYPE is not accepted", remedy)
    if tag.startswith(b"<?"):
        raise _refused(
            body,
            _position(body, tag),
            "a processing instruction is not accepted",
            "remove it; an XML declaration is allowed only at the very beginning",
        )
    if len(tag.rstrip()) > MAX_TAG_BYTES:
        raise _too_much(body, _position(body, tag), "a longer tag", MAX_TAG_BYTES, "bytes")
    if _LONG_NAME.search(QUOTED.sub(b"", tag)):
        raise _too_much(body, _position(body, tag), "a longer name", MAX_NAME_BYTES, "bytes")
    if not _TAG.fullmatch(tag):
        raise _refused(
            body,
            _position(body, tag),
            "malformed XML: '<' does not begin a tag",
            "write &lt; for a plain '<'",
        )
    if _attributes_in(tag) > MAX_ATTRIBUTES:
        raise _too_much(
            body, _position(body, tag), "an element with more attributes", MAX_ATTRIBUTES
        )


def _check_attributes(body: bytes, tags: list[bytes]) -> None:
    if b"".join(tags).count(b"=") <= MAX_NAMESPACES:
        return
    with_attributes = [tag for tag in tags if b"=" in tag and not tag.startswith(b"<!")]
    if sum(map(_attributes_in, with_attributes)) > MAX_ALL_ATTRIBUTES:
        raise _too_much(body, len(body), "a larger number of attributes", MAX_ALL_ATTRIBUTES)
    if sum(len(_NAMESPACE.findall(tag)) for tag in with_attributes) > MAX_NAMESPACES:
        raise _too_much(
            body, len(body), "a larger number of namespace declarations", MAX_NAMESPACES
        )


def _check_depth(root: etree._Element) -> None:
    deep = cast(list[etree._Element], _TOO_DEEP(root))
    if deep:
        raise LimitExceeded(
            "elements are nested deeper than a peer reads", remedy=f"use at most {MAX_DEPTH:,}"
        ).at_mark(line_of(deep[0]), None)


def _check_references(body: bytes) -> None:
    text = _CDATA_OR_COMMENT.sub(b"", body) if b"<!" in body else body
    odd = _ODD_REFERENCE.search(text)
    if odd:
        raise _refused(
            body,
            body.find(text[odd.start() : odd.start() + 20]),
            "an entity is not accepted",
            "write &amp; for a plain '&'; only &lt; &gt; &amp; &quot; &apos; and "
            "numeric references are read",
        )


def _attributes_in(tag: bytes) -> int:
    return QUOTED.sub(b"", tag).count(b"=")


# -- lxml -------------------------------------------------------------------------------------


_PARSER = new_parser()
_TOO_DEEP = etree.XPath("/*" * (MAX_DEPTH + 1))


def _read(body: bytes, parser: etree.XMLParser) -> etree._Element:
    try:
        root: etree._Element = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as problem:
        message = _POSITION.sub("", (problem.msg or "no element").strip())
        raise DocumentError(
            f"malformed XML: {message[:200]}", remedy="send one well-formed SOAP envelope"
        ).at_mark(problem.lineno or 1, None) from None
    except (etree.LxmlError, ValueError) as problem:
        raise DocumentError(f"unreadable XML: {str(problem)[:200]}").at_mark(1, None) from None
    return root


# -- errors -----------------------------------------------------------------------------------


def _refused(body: bytes, at: int, problem: str, remedy: str) -> DocumentError:
    """Returns an error with the line. It never quotes the text, which may be long and hostile."""
    return DocumentError(problem, remedy=remedy).at_mark(body.count(b"\n", 0, at) + 1, None)


def _too_much(body: bytes, at: int, what: str, limit: int, unit: str = "") -> LimitExceeded:
    return LimitExceeded(
        f"there is {what} than a peer reads", remedy=f"send at most {limit:,} {unit}".rstrip()
    ).at_mark(body.count(b"\n", 0, at) + 1, None)


def _position(body: bytes, tag: bytes) -> int:
    """Returns the offset in the body of the first tag that equals `tag`."""
    return next(each.start() for each in MARKUP.finditer(body, _start(body)) if each[0] == tag)
