"""Changes an envelope in small ways, as faulty clients and attackers do."""

from __future__ import annotations

import copy
import random

from lxml import etree

Element = etree._Element

NAMESPACE = "urn:qns:peer:1"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
XSD = "http://www.w3.org/2001/XMLSchema"

_NUMBERS = ("", " ", "0", "1", " 12 ", "\n7\t", "+3", "-0", "-1", "007", "1 2", "٣")
_LARGE_NUMBERS = ("9223372036854775807", "9223372036854775808", "18446744073709551616")
_OTHER_NUMBERS = ("1.0", "1e3", "1_000", "0x1F", f"{'0' * 5_000}1", ".5", "5.", "60")
_INFINITIES = ("INF", "+INF", "-INF", "NaN", "inf", "Infinity", "nan", "1E400", "1e-400")
_FLAGS = ("true", "TRUE", " true ", "false", "yes", "01")
_BASE64 = ("YQ==", "YQ=", "YQ", "YR==", " Y Q = = ", "YQ==YQ==", "YWI=\n", "====", "YQ-_")
_NAMES = ("a", "é", "a&b", "<x>", "]]>", "\r", "\r\n", " INPS ", "è€𝄞", "\u00a0 5", "INPS")
TEXTS = _NUMBERS + _LARGE_NUMBERS + _OTHER_NUMBERS + _INFINITIES + _FLAGS + _BASE64 + _NAMES


def mutate(text: str, choose: random.Random) -> bytes:
    """Returns the envelope after one to three changes."""
    root = etree.fromstring(text.encode())
    raw: list[tuple[str, str]] = []
    for _ in range(choose.randint(1, 3)):
        choose.choice(_TREE)(root, choose)
    if choose.random() < 0.3:
        raw.append(choose.choice(_RAW))
    written = etree.tostring(root, encoding="unicode")
    for old, new in raw:
        places = written.count(old)
        if places:
            at = choose.randrange(places)
            written = new.join(
                [old.join(written.split(old)[: at + 1]), old.join(written.split(old)[at + 1 :])]
            )
    return written.encode()


def _content(root: Element) -> Element:
    found = root.find("{*}Body")
    assert found is not None
    return found[0] if len(found) else found


def _any(root: Element, choose: random.Random) -> Element:
    return choose.choice(list(_content(root).iter()))


def _leaf(root: Element, choose: random.Random) -> Element:
    leaves = [element for element in _content(root).iter() if not len(element)]
    return choose.choice(leaves)


def _change_text(root: Element, choose: random.Random) -> None:
    _leaf(root, choose).text = choose.choice(TEXTS)


def _swap_texts(root: Element, choose: random.Random) -> None:
    one, two = _leaf(root, choose), _leaf(root, choose)
    one.text, two.text = two.text, one.text


def _remove(root: Element, choose: random.Random) -> None:
    element = _any(root, choose)
    parent = element.getparent()
    if element is not _content(root) and parent is not None:
        parent.remove(element)


def _repeat(root: Element, choose: random.Random) -> None:
    element = _any(root, choose)
    element.addnext(copy.deepcopy(element))


def _swap(root: Element, choose: random.Random) -> None:
    element = _any(root, choose)
    after = element.getnext()
    if after is not None:
        after.addnext(element)


def _move(root: Element, choose: random.Random) -> None:
    element = copy.deepcopy(_any(root, choose))
    _any(root, choose).append(element)


def _rename(root: Element, choose: random.Random) -> None:
    other = _any(root, choose).tag
    _any(root, choose).tag = choose.choice(
        [other, "{urn:qns:peer:1}signature", "{urn:other}number", "number", f"{other}x"]
    )


def _blank_space(root: Element, choose: random.Random) -> None:
    for element in _content(root).iter():
        if len(element) and choose.random() < 0.7:
            element.text = "\n  "
        element.tail = choose.choice([None, " ", "\n\t"])


def _stray_text(root: Element, choose: random.Random) -> None:
    _any(root, choose).tail = choose.choice(["x", "12", "\u00a0", " "])


def _attribute(root: Element, choose: random.Random) -> None:
    name, value = choose.choice(
        [
            (f"{{{XSI}}}nil", "true"),
            (f"{{{XSI}}}nil", "false"),
            (f"{{{XSI}}}type", "xs:string"),
            (f"{{{XSI}}}type", "q:Entry"),
            (f"{{{XSI}}}schemaLocation", "urn:qns:peer:1 http://example.org/x.xsd"),
            ("id", "x1"),
            ("href", "#x1"),
            ("{http://www.w3.org/XML/1998/namespace}lang", "it"),
        ]
    )
    _any(root, choose).set(name, value)


def _reserve(root: Element, choose: random.Random) -> None:
    signature = etree.SubElement(_any(root, choose), f"{{{NAMESPACE}}}signature")
    signature.text = choose.choice(["c2lnbmVk", "", "not base64"])


def _deepen(root: Element, choose: random.Random) -> None:
    entries = list(root.iter(f"{{{NAMESPACE}}}entry", f"{{{NAMESPACE}}}first"))
    for entry in [entry for entry in entries if len(entry) > 2][:1]:
        for _ in range(choose.randint(1, 20)):
            child = copy.deepcopy(entry)
            child.tag = f"{{{NAMESPACE}}}child"
            entry.append(child)
            entry = child


def _header(root: Element, choose: random.Random) -> None:
    header = etree.Element("{http://schemas.xmlsoap.org/soap/envelope/}Header")
    namespace = choose.choice(["http://www.w3.org/2005/08/addressing", "urn:other"])
    etree.SubElement(header, f"{{{namespace}}}MessageID").text = "urn:uuid:1"
    root.insert(0, header)


# A mutation that is listed more often is chosen more often.
_TREE = [
    _change_text,
    _change_text,
    _change_text,
    _swap_texts,
    _remove,
    _repeat,
    _swap,
    _move,
    _rename,
    _blank_space,
    _blank_space,
    _stray_text,
    _attribute,
    _reserve,
    _reserve,
    _deepen,
    _header,
]

_RAW = [
    ("</", "<!-- a comment --></"),
    (">1<", "><![CDATA[1]]><"),
    (">", "><![CDATA[]]>"),
    (">", "><!---->"),
    ("</", "&#32;</"),
    ("</", "&#13;</"),
    (">1<", ">&#49;<"),
    (' xmlns="urn:qns:peer:1"', ' xmlns="urn:qns:peer&#58;1"'),
    ("</", "&#0;</"),
]
