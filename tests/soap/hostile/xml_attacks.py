"""XML that is made to waste time or memory, or to read files and addresses."""

from __future__ import annotations

from random import Random

from tests.soap.hostile.case import Case, local, peer
from tests.soap.hostile.wire import (
    ask_local,
    ask_peer,
    base64,
    envelope,
    notification,
    notify,
    pull,
    subscribe,
)

_RANDOM = Random(4)  # makes different names; they need not be unpredictable


def doctype(declaration: str, inside: str = "s1") -> bytes:
    return f"<!DOCTYPE a {declaration}>".encode() + pull(id=inside)


def _entity(content: str) -> str:
    return f'[<!ENTITY a "{content}">]'


def word(length: int) -> str:
    return "a" + _RANDOM.randbytes(length // 2).hex()


def _laughs() -> bytes:
    lines = ['<!ENTITY l0 "ha">']
    for n in range(1, 10):
        ten = f"&l{n - 1};" * 10
        lines.append(f'<!ENTITY l{n} "{ten}">')
    return doctype(f"[{''.join(lines)}]", "&l9;")


def attributes(number: int) -> str:
    return " ".join(f"a{n}=''" for n in range(number))


def _attributes(number: int) -> bytes:
    return envelope(f"<gossip {attributes(number)}/>")


def _namespaces(number: int) -> bytes:
    names = " ".join(f"xmlns:p{n}='u'" for n in range(number))
    return envelope(f"<gossip {names}/>")


def _deep(name: str, levels: int, content: str = "") -> bytes:
    return envelope(f"<{name}>" * levels + content + f"</{name}>" * levels)


def new_names(number: int, length: int) -> bytes:
    """Returns a request with new names, different at every call."""
    return ask_peer("gossip", "".join(f"<{word(length)}/>" for _ in range(number)))


def event_of_names(number: int, length: int) -> bytes:
    names = "".join(f"<{word(length)}/>" for _ in range(number))
    return notify(notification(xml=base64(f"<event>{names}</event>".encode())))


def subscription_of_names(number: int, length: int) -> bytes:
    names = "".join(f"&lt;{word(length)}/>" for _ in range(number))
    return subscribe(f"&lt;?xml version='1.0'?>&lt;a>{names}&lt;/a>")


def _spread_attributes() -> bytes:
    return ask_peer("gossip", f"<a {attributes(60)}/>" * 2_000)


def _spread_namespaces() -> bytes:
    return ask_peer("gossip", "".join(f'<a xmlns="u:{n}"/>' for n in range(15_000)))


def _shadowed_namespaces() -> bytes:
    """Returns a request in which every level declares the same prefix again."""
    opening = "".join(f'<p:a xmlns:p="u:{n}">' for n in range(120))
    return envelope(opening + "</p:a>" * 120)


def _blanks() -> bytes:
    blank = (" ".join(_RANDOM.choices("\t\n ", k=25)) for _ in range(10_000))
    return ask_peer("gossip", "".join(f"<a>{each}</a>" for each in blank))


_INCLUDE = '<i:include xmlns:i="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/>'
_SCHEMA_LOCATION = b'<notify xsi:schemaLocation="urn:qns:peer:1 http://127.0.0.1:9/evil.xsd" a="">'
_D2Q_DOCTYPE = "&lt;?xml version='1.0'?>&lt;!DOCTYPE a []>&lt;a/>"

CASES: list[Case] = [
    local("a DOCTYPE", lambda: doctype("[]")),
    local("a DOCTYPE in lower case", lambda: b"<!doctype a>" + pull()),
    local("a DOCTYPE after a comment", lambda: b"<!-- a --><!DOCTYPE a>" + pull()),
    local(
        "a DOCTYPE in UTF-16",
        lambda: doctype('[<!ENTITY a "s1">]', "&a;").decode().encode("utf-16"),
    ),
    local("a DOCTYPE inside the body", lambda: subscribe("<!DOCTYPE a []>")),
    local("a DOCTYPE of 1 MB", lambda: doctype(_entity("x" * 1_000_000))),
    local("an internal entity", lambda: doctype('[<!ENTITY a "s1">]', "&a;")),
    local(
        "an external entity", lambda: doctype('[<!ENTITY a SYSTEM "file:///etc/passwd">]', "&a;")
    ),
    local("an external DTD", lambda: doctype('SYSTEM "http://127.0.0.1:9/evil.dtd"')),
    local(
        "a parameter entity", lambda: doctype('[<!ENTITY % a SYSTEM "http://127.0.0.1:9/"> %a;]')
    ),
    local("default attributes", lambda: doctype('[<!ATTLIST a xsi:nil CDATA "true">]')),
    local("billion laughs", _laughs),
    local(
        "quadratic blow-up",
        lambda: doctype(_entity("a" * 50_000), "&a;" * 50_000),
    ),
    local("an undeclared entity", lambda: pull(id="&s1;")),
    local("an entity in an attribute", lambda: envelope('<pull id="&s1;"/>')),
    local("100,000 entities", lambda: subscribe("&a;" * 100_000)),
    local("a character that XML forbids, by number", lambda: pull(id="&#0;")),
    local("a surrogate by number", lambda: pull(id="&#xD800;")),
    local("a character beyond Unicode", lambda: pull(id="&#x110000;")),
    local("a reference without an end", lambda: pull(id="&amp")),
    local("a NUL", lambda: pull(id="s\x001")),
    local("a control character", lambda: pull(id="s\x0b1")),
    local("U+FFFE", lambda: pull(id="s\ufffe1")),
    local("a processing instruction", lambda: subscribe("<?php system('id') ?>")),
    local("a style sheet", lambda: b'<?xml-stylesheet href="http://127.0.0.1:9/"?>' + pull()),
    local("an XML declaration inside", lambda: subscribe('<?xml version="1.0"?>')),
    local("100,000 processing instructions", lambda: subscribe("<?a?>" * 100_000)),
    local("a comment without an end", lambda: subscribe("<!-- ")),
    local("100,000 comments without an end", lambda: subscribe("<!--" * 100_000)),
    local("comments inside an id", lambda: pull(id="n<!-- -->o")),
    local("100,000 comments without an end and &", lambda: subscribe("&lt;" + "<!--" * 100_000)),
    local(
        "100,000 times CDATA without an end and &", lambda: subscribe("&lt;" + "<![CDATA[" * 90_000)
    ),
    local("a comment with two hyphens", lambda: pull(id="<!-- -- -->")),
    local("CDATA without an end", lambda: subscribe("<![CDATA[")),
    local("100,000 times CDATA", lambda: subscribe("<![CDATA[]]>" * 80_000)),
    local("a request inside CDATA", lambda: envelope("<![CDATA[<gossip/>]]>")),
    local("CDATA that breaks out", lambda: pull(id="<![CDATA[]]]]><![CDATA[></id><id>]]>")),
    local("]]> in a text", lambda: pull(id="]]>")),
    peer("100,000 attributes", lambda: _attributes(100_000)),
    peer("1,000 attributes", lambda: _attributes(1_000)),
    peer("120,000 attributes on 2,000 elements", _spread_attributes),
    peer("the same attribute twice", lambda: envelope('<gossip a="" a=""/>')),
    peer("attributes without quotes", lambda: envelope("<gossip a=1/>")),
    peer("an attribute of 1 MB", lambda: envelope("<gossip a='" + "x" * 1_000_000 + "'/>")),
    peer("> in an attribute, then a name", lambda: envelope('<gossip a=">" b=">"/>')),
    peer("< in an attribute", lambda: envelope('<gossip a="<b>"/>')),
    peer("100,000 namespaces", lambda: _namespaces(60_000)),
    peer("15,000 namespaces on as many elements", _spread_namespaces),
    peer("namespaces that hide each other", _shadowed_namespaces),
    peer("an undeclared prefix", lambda: envelope("<q:gossip/>")),
    peer("the prefix xmlns itself", lambda: envelope('<gossip xmlns:xmlns="u"/>')),
    peer("another xml prefix", lambda: envelope('<gossip xmlns:xml="u"/>')),
    peer("129 levels", lambda: _deep("gossip", 130)),
    peer("10,000 levels", lambda: _deep("gossip", 10_000)),
    peer("90,000 levels without an end", lambda: b"<a>" * 90_000),
    peer("100,000 elements", lambda: ask_peer("gossip", "<a/>" * 100_000)),
    peer("250,000 times <", lambda: b"<" * 250_000),
    peer("an element's name of 100,000 characters", lambda: envelope(f"<{'a' * 100_000}/>")),
    peer("a closing tag of 100,000 characters", lambda: envelope(f"<a></{'a' * 100_000}>")),
    peer(
        "a namespace of 100,000 characters", lambda: envelope("<a xmlns='" + "a" * 100_000 + "'/>")
    ),
    peer("10,000 names of 50 characters", lambda: new_names(10_000, 50)),
    peer("900 new names", lambda: new_names(900, 100)),
    peer("10,000 kinds of white space", _blanks),
    peer("tags in the wrong order", lambda: envelope("<gossip><origin></gossip></origin>")),
    peer("an empty tag", lambda: envelope("<>")),
    local("a text of 1 MB", lambda: ask_local("pull", id="x" * 1_000_000, after=0)),
    local("a text of 2 MB", lambda: ask_local("pull", id="x" * 2_000_000, after=0)),
    local("1 MB of &lt;", lambda: subscribe("&lt;" * 240_000)),
    peer("XInclude", lambda: ask_peer("gossip", _INCLUDE)),
    peer("a schema to fetch", lambda: notify().replace(b"<notify>", _SCHEMA_LOCATION)),
    peer("an event with an entity", lambda: notify(notification(event="&e2;"))),
    local("a subscription in D2Q XML with a DOCTYPE", lambda: subscribe(_D2Q_DOCTYPE)),
]
