"""The hardened parser: what it accepts, what it rejects, and at what cost."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from qns.d2q.names import Vocabulary, words_of
from qns.d2q.xml import MAX_ATTRIBUTES, MAX_BYTES, MAX_DEPTH, parse_xml, validate
from qns.errors import DocumentError, LimitExceeded, QnsError


@pytest.mark.parametrize(
    "data",
    [
        "<a>é</a>",
        "<a>é</a>".encode(),
        b"\xef\xbb\xbf" + "<a>é</a>".encode(),
        '<?xml version="1.0" encoding="UTF-8"?><a>é</a>'.encode(),
        "<?xml version='1.0' encoding = 'utf-8' standalone='yes'?><a>é</a>".encode(),
        '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>',  # a str is decoded already
        '<?xml version="1.0" encoding="utf-16"?><a>é</a>',
        '<?xml version="1.0" encoding="US-ASCII"?><a>&#233;</a>',
        "<!-- <!DOCTYPE a> --><?x <!DOCTYPE a> ?>\n<a><![CDATA[é]]></a>",
        "<a><!-- c -->&#xE9;<?x y?></a>\n<!-- the end -->",
    ],
)
def test_equal_documents_in_different_encodings_are_read_alike(data: bytes | str) -> None:
    root = parse_xml(data)
    assert (root.tag, root.text, len(root)) == ("a", "é", 0)


LAUGHS = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
MALFORMED = [
    ("empty", b"", "Document is empty", 1),
    ("blank", b" \n ", "", 2),
    ("no element", b"<?xml version='1.0'?>", "", 1),
    ("text", b"hello", "Start tag expected", 1),
    ("unclosed", b"<a>\n<b>", "Premature end", 2),
    ("crossed", b"<a>\n<b></a></b>", "tag mismatch", 2),
    ("two roots", b"<a/>\n<b/>", "Extra content", 2),
    ("text after the root", b"<a/>\nx", "Extra content", 2),
    ("attribute twice", b"<a\nb='' b=''/>", "redefined", 2),
    ("attribute without quotes", b"<a b=c/>", "AttValue", 1),
    ("unknown prefix", b"<a>\n<x:b/></a>", "prefix x on b is not defined", 2),
    ("unknown entity", b"<a>\n&x;</a>", "Entity 'x' not defined", 2),
    ("character 0", b"<a>\n&#0;</a>", "", 2),
    ("character U+FFFE", b"<a>\n&#xFFFE;</a>", "", 2),
    ("NUL", b"<a>\n\0</a>", "", 2),
    ("bell", b"<a>\n\a</a>", "", 2),
    ("lone surrogate", "<a>\n\ud800</a>", "U+D800", 2),
    ("invalid UTF-8", b"<a>\n\xff</a>", "byte 0xFF is not UTF-8", 2),
    ("overlong UTF-8", b"<a>\n\xc0\xbc</a>", "is not UTF-8", 2),
    ("UTF-16", "<a/>".encode("utf-16"), "is not UTF-8", 1),
    ("UTF-16 without a mark", "<a/>".encode("utf-16-le"), "", 1),
    ("UTF-7", b"<?xml version='1.0' encoding='UTF-7'?><a/>", "'UTF-7'", 1),
    ("Latin-1", b"<?xml version='1.0' encoding='latin-1'?><a>\xe9</a>", "save it as UTF-8", 1),
    ("unknown charset", b"<?xml version='1.0' encoding='nope'?><a/>", "'nope'", 1),
    ("XML 2.0", b"<?xml version='2.0'?><a/>", "version", 1),
    ("late declaration", b" <?xml version='1.0'?><a/>", "", 1),
    ("gzip", b"\x1f\x8b\x08\x00", "is not UTF-8", 1),
    ("DOCTYPE", b"<?xml version='1.0'?>\n<!DOCTYPE a>\n<a/>", "a DOCTYPE is not accepted", 2),
    ("hidden DOCTYPE", b"<!-- -->\n<?x?><!DOCTYPE a><a/>", "a DOCTYPE is not accepted", 2),
    ("billion laughs", f'<!DOCTYPE a [<!ENTITY l0 "l">{LAUGHS}]><a>&l9;</a>', "DOCTYPE", 1),
    (
        "external entity",
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>',
        "DOCTYPE",
        1,
    ),
    ("external DTD", b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><a/>', "DOCTYPE", 1),
    ("depth 200", b"<a>" * 200 + b"</a>" * 200, "", 1),
    ("depth 10,000", b"<a>" * 10_000 + b"</a>" * 10_000, "Excessive depth", 1),
    ("a name of 100 kB", b"<" + b"a" * 100_000 + b"/>", "Name too long", 1),
]


@pytest.mark.parametrize(
    ("data", "said", "line"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED]
)
def test_malformed_or_dangerous_xml_is_rejected_with_the_line(
    data: bytes | str, said: str, line: int
) -> None:
    with pytest.raises(QnsError) as caught:
        parse_xml(data)
    assert isinstance(caught.value, DocumentError | LimitExceeded)
    assert said in str(caught.value)
    assert (caught.value.line, caught.value.place) == (line, f"line {line}")
    assert len(str(caught.value)) < 600


def nested(depth: int) -> bytes:
    return b"<a>" * depth + b"</a>" * depth


def attributes(count: int) -> bytes:
    return b"<a " + b" ".join(b'a%d=""' % number for number in range(count)) + b"/>"


@pytest.mark.parametrize(
    ("at_the_bound", "beyond"),
    [
        (b"<a>" + b"x" * (MAX_BYTES - 7) + b"</a>", b"<a>" + b"x" * (MAX_BYTES - 6) + b"</a>"),
        (nested(MAX_DEPTH), nested(MAX_DEPTH + 1)),
        (b"<a>" + b"<b/>" * 99_999 + b"</a>", b"<a>" + b"<b/>" * 100_000 + b"</a>"),
        (attributes(MAX_ATTRIBUTES), attributes(MAX_ATTRIBUTES + 1)),
    ],
    ids=["bytes", "depth", "elements", "attributes"],
)
def test_xml_at_a_bound_is_accepted_and_beyond_it_rejected(
    at_the_bound: bytes, beyond: bytes
) -> None:
    assert parse_xml(at_the_bound).tag == "a"
    with pytest.raises(LimitExceeded) as caught:
        parse_xml(beyond)
    assert caught.value.place == "line 1"
    assert "at most" in caught.value.remedy


def test_limit_error_has_the_line_where_the_limit_is_reached() -> None:
    with pytest.raises(LimitExceeded) as caught:
        parse_xml(b"<a>\n" + b"\n" * MAX_BYTES)
    assert caught.value.line == MAX_BYTES - 2
    with pytest.raises(LimitExceeded) as caught:
        parse_xml(b"<a>\n" + b"<b/>\n" * 100 + b"</a>", max_elements=10)
    assert caught.value.line == 11


@pytest.mark.parametrize(
    "bomb",
    [
        attributes(90_000),
        b"<a>" + b"<b/>" * 250_000 + b"</a>",
        b"<a " + b" ".join(b'xmlns:n%d="u"' % number for number in range(60_000)) + b"/>",
        b"<a>" + b"&#38;" * 200_000 + b"</a>",
        b"<!--" + b"-" * 1_000_000,
        b"<?x?>" * 200_000 + b"<a/>",
        b"<?xml encoding" + b" " * 1_000_000,
    ],
    ids=["attributes", "elements", "prefixes", "references", "comment", "instructions", "blank"],
)
def test_hostile_megabyte_is_processed_in_bounded_time(bomb: bytes) -> None:
    start = time.process_time()
    with suppress(QnsError):
        parse_xml(bomb)
    assert time.process_time() - start < 2, "measured: 0.1 s at most"


def test_validation_error_has_line_element_and_expectation() -> None:
    root = parse_xml(b'<event xmlns="urn:qns:d2q:1" id="e" class="c" source="s">\n<dat/></event>')
    with pytest.raises(DocumentError) as caught:
        validate(root, "event")
    assert str(caught.value).startswith("line 2: Element 'dat': This element is not expected")
    assert "Expected is ( data )" in str(caught.value)


def test_concurrent_validations_report_their_own_errors() -> None:
    """A schema of lxml has one error log for all threads."""

    def error(number: int) -> bool:
        root = parse_xml(f'<event xmlns="urn:qns:d2q:1" a{number}=""/>')
        with pytest.raises(DocumentError) as caught:
            validate(root, "event")
        return f"'a{number}'" in str(caught.value)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(error, range(2_000)))


def test_documents_of_qns_are_read_in_the_calling_thread() -> None:
    """They begin with a declaration, which leaves no name in lxml, unlike other instructions."""
    own = b"<?xml version='1.0' encoding='UTF-8'?>\n<a/>"
    assert Vocabulary().takes(words_of(own))
    assert not Vocabulary().takes(words_of(b'<?xml-style href="x"?><a/>'))
    assert not Vocabulary().takes(words_of(b"<a><?other?></a>"))
