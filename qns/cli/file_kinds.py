"""File kinds: recognises the content of a file by its name and its first characters."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import PurePath

from qns.cli.inputs import Input


class Kind(Enum):
    """The kinds of files that `qns check` reads."""

    SUBSCRIPTIONS = "lines of id<TAB>subscription"
    EVENTS = "lines of JSON"
    SUBSCRIPTIONS_XML = "a list of subscriptions in XML"
    SUBSCRIPTION_XML = "a subscription in XML"
    EVENT_XML = "an event in XML"
    DOCUMENT_XML = "a D2Q document"
    SCHEMA_XML = "a schema in XML"
    DTD = "a D2Q DTD"
    OTHER_XML = "XML of another kind"


_ROOTS = {
    b"subscriptions": Kind.SUBSCRIPTIONS_XML,
    b"subscription": Kind.SUBSCRIPTION_XML,
    b"event": Kind.EVENT_XML,
    b"document": Kind.DOCUMENT_XML,
    b"schema": Kind.SCHEMA_XML,
}
_SUFFIXES = {
    ".tsv": Kind.SUBSCRIPTIONS,
    ".jsonl": Kind.EVENTS,
    ".ndjson": Kind.EVENTS,
    ".dtd": Kind.DTD,
}

# White space, comments and processing instructions may precede the root element.
_BEFORE_ROOT = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_ROOT = re.compile(rb"<(?:[\w.-]+:)?([\w.-]+)[\s/>]")
_DECLARATION = re.compile(rb"<!(?:ELEMENT|ATTLIST)\s")
_COMMENT_LINES = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|#[^\t\n]*\n)*")


def kind_of(source: Input) -> Kind:
    """Returns the kind of a file. A file of no other kind has lines of subscriptions."""
    suffix = PurePath(source.name).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    head = source.head()
    start = _BEFORE_ROOT.match(head)
    rest = head[start.end() :] if start else head
    if _DECLARATION.match(rest):
        return Kind.DTD
    root = _ROOT.match(rest)
    if root and root[1] in _ROOTS:
        return _ROOTS[root[1]]
    if suffix == ".xml" or (start and b"<?xml" in start[0]) or rest.startswith(b"<!DOCTYPE"):
        return Kind.OTHER_XML
    comments = _COMMENT_LINES.match(head)
    if head[comments.end() if comments else 0 :].startswith(b"{"):
        return Kind.EVENTS
    return Kind.SUBSCRIPTIONS
