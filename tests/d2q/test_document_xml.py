"""Documents to XML and back. Every written document is valid against the exported DTD."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from qns.cbr.domains import QUALITY
from qns.d2q.document import DataObject, Document
from qns.d2q.document_xml import read_document, write_document
from qns.d2q.dtd import write_dtd
from qns.d2q.schema import DIMENSIONS, MAX_DEPTH, Schema
from qns.d2q.shipped import AGENCIES
from qns.errors import QnsError
from tests.d2q.test_document import documents, schemas

HOLDER = "Enterprise/Holder"
APTA = Document(
    "agencies",
    (
        DataObject(
            "Enterprise",
            {"Enterprise.Code": "APTA"},
            {"Enterprise.Code.accuracy": QUALITY.key(0.9)},
            (
                DataObject(
                    HOLDER,
                    {f"{HOLDER}.Name": "M. Mecalla", f"{HOLDER}.Address": ""},
                    {
                        f"{HOLDER}.Name.accuracy": QUALITY.key(0.3),
                        f"{HOLDER}.FiscalCode.currency": QUALITY.key(1),
                    },
                    (),
                    "h1",
                ),
            ),
            "e1",
        ),
    ),
)
WRITTEN = write_document(APTA, AGENCIES)


@given(st.data())
def test_written_document_is_read_back_unchanged_and_valid_against_the_dtd(
    data: st.DataObject,
) -> None:
    schema = data.draw(schemas())
    document = data.draw(documents(schema))
    written = write_document(document, schema)
    assert read_document(written, schema) == document
    assert read_document(written.decode(), schema) == document
    dtd = etree.DTD(BytesIO(write_dtd(schema).encode()))
    assert dtd.validate(etree.fromstring(written)), dtd.error_log


def test_document_is_written_as_in_the_thesis() -> None:
    text = WRITTEN.decode()
    assert '<Code id="e1.Code">APTA</Code>' in text
    assert '<Code.accuracy of="e1.Code">0.9</Code.accuracy>' in text
    assert text.index("<Holder ") < text.index("<d2q:accuracy>") < text.index("<d2q:currency>")


def test_absent_value_with_quality_differs_from_the_empty_string() -> None:
    holder = read_document(WRITTEN, AGENCIES).objects[0].children[0]
    assert f"{HOLDER}.FiscalCode" not in holder.values
    assert holder.quality[f"{HOLDER}.FiscalCode.currency"] == QUALITY.key(1)
    assert holder.values[f"{HOLDER}.Address"] == ""


def test_labels_and_white_space_around_numbers_are_accepted() -> None:
    edited = WRITTEN.replace(b">0.3<", b">\n  Low <")
    assert read_document(edited, AGENCIES) == APTA


def test_attributes_that_a_dtd_adds_are_accepted() -> None:
    dtd = write_dtd(AGENCIES)
    body = WRITTEN.decode().split("?>", 1)[1]
    parser = etree.XMLParser(attribute_defaults=True, load_dtd=True)
    with_dtd = f"<!DOCTYPE d2q:document [{dtd}]>{body}"
    expanded = etree.tostring(etree.fromstring(with_dtd.encode(), parser))
    assert b'type="string"' in expanded
    assert read_document(expanded, AGENCIES) == APTA
    with pytest.raises(QnsError, match="'string' is expected"):
        read_document(expanded.replace(b'type="string"', b'type="date"', 1), AGENCIES)


def test_properties_can_have_any_order_and_any_ids() -> None:
    edited = WRITTEN.replace(b"e1.Code", b"anything-7")
    assert read_document(edited, AGENCIES) == APTA


def test_document_of_the_deepest_possible_schema_is_written_and_read() -> None:
    steps = [f"C{depth}" for depth in range(MAX_DEPTH)]
    paths = ["/".join(steps[: depth + 1]) for depth in range(MAX_DEPTH)]
    schema = Schema("deep", {path: {} for path in paths[:-1]} | {paths[-1]: {"P": "integer"}})
    node = DataObject(paths[-1], {f"{paths[-1]}.P": 7}, {f"{paths[-1]}.P.currency": 0}, (), "n0")
    for depth, path in enumerate(reversed(paths[:-1]), start=1):
        node = DataObject(path, {}, {}, (node,), f"n{depth}")
    document = Document("deep", (node,))
    assert read_document(write_document(document, schema), schema) == document


def test_every_dimension_has_its_own_graph() -> None:
    quality = {f"Enterprise.Code.{dimension}": 0 for dimension in DIMENSIONS}
    document = Document("agencies", (DataObject("Enterprise", {}, quality, (), "e"),))
    written = write_document(document, AGENCIES)
    assert [written.count(f"<d2q:{dimension}>".encode()) for dimension in DIMENSIONS] == [1] * 4
    assert read_document(written, AGENCIES) == document


REFUSED = [
    ("another schema", b'"agencies"', b'"weather"', "'agencies' is expected", 2),
    ("no schema", b' schema="agencies"', b"", "does not name its schema", 2),
    ("wrong root", b"d2q:document", b"d2q:doc", "the root element is 'doc'", 2),
    ("root in no namespace", b":d2q:1", b":d2q:2", "urn:qns:d2q:2", 2),
    ("no data", b"d2q:data", b"d2q:dat", "without data", 2),
    ("a graph of no dimension", b"d2q:currency", b"d2q:age", "is not expected here", 21),
    ("a graph twice", b"d2q:currency", b"d2q:accuracy", "is not expected here", 21),
    ("unknown class", b"Enterprise", b"Enterprize", "did you mean Enterprise?", 4),
    ("unknown element", b"Code", b"Kode", "'Kode' does not stand in", 5),
    ("property of a class above", b'<Name id="h1.Name">M. Mecalla</Name>', b"<Code/>", "Code", 7),
    ("property twice", b"</Name>", b"</Name><Name/>", "is given twice", 7),
    ("class in its own class", b"</Name>", b'</Name><Holder id="x"/>', "does not stand in", 7),
    ("element in a value", b"M. Mecalla", b"<b/>", "an element inside 'Name'", 7),
    ("text in an object", b"</Name>", b"</Name>text", "text between elements: 'text'", 6),
    ("no id", b' id="h1"', b"", "has no attribute 'id'", 6),
    ("an id that is no name", b'id="h1"', b'id="1h"', "is not an object's id", 6),
    ("id of an object twice", b'id="h1"', b'id="e1"', "'e1' is given twice", 6),
    ("id of a property twice", b'"h1.Name">M', b'"e1.Code">M', "'e1.Code' is given twice", 7),
    ("unknown attribute", b'id="h1"', b'id="h1" di="h2"', "unknown attribute 'di'", 6),
    ("absent, with a value", b'id="e1.Code"', b'id="e1.Code" absent="true"', "is absent and", 5),
    ("absent maybe", b'absent="true"', b'absent="yes"', "give true or false", 9),
    ("dangling reference", b'of="h1.Name"', b'of="h2.Name"', "has the id 'h2.Name'", 17),
    ("no reference", b' of="h1.Name"', b"", "has no attribute 'of'", 17),
    ("reference to another node", b'of="h1.Name"', b'of="h1.Address"', "points at", 17),
    ("reference to another object", b'of="h1.Name"', b'of="e1.Code"', "points at", 17),
    ("reference to the wrong class", b'of="h1">', b'of="e1">', "points at", 16),
    ("quality element of another dimension", b"Name.accuracy", b"Name.currency", "unknown el", 17),
    ("quality outside a graph's shape", b'of="e1.Code">0.9', b'of="h1.Name">0.9', "points at", 15),
    ("quality 1.2", b">0.3<", b">1.2<", "outside [0, 1]", 17),
    ("quality -0.1", b">0.3<", b">-0.1<", "outside [0, 1]", 17),
    ("quality NaN", b">0.3<", b">NaN<", "unknown label 'NaN'", 17),
    ("quality INF", b">0.3<", b">INF<", "unknown label 'INF'", 17),
    ("no quality", b">0.3<", b"><", "is not a number from 0 to 1", 17),
    ("unknown label", b">0.3<", b">hihg<", "did you mean high?", 17),
]


@pytest.mark.parametrize(
    ("old", "new", "said", "line"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_invalid_document_is_rejected_with_the_line(
    old: bytes, new: bytes, said: str, line: int
) -> None:
    assert old in WRITTEN
    with pytest.raises(QnsError) as caught:
        read_document(WRITTEN.replace(old, new), AGENCIES)
    assert said in str(caught.value)
    assert (caught.value.line, caught.value.place) == (line, f"line {line}")


def test_duplicate_quality_of_one_node_is_rejected() -> None:
    line = b'<Code.accuracy of="e1.Code">0.9</Code.accuracy>'
    with pytest.raises(QnsError, match=r"line 15: the accuracy of .* is given twice"):
        read_document(WRITTEN.replace(line, line * 2), AGENCIES)


def test_document_larger_than_a_message_is_read_with_higher_bounds() -> None:
    tops = tuple(
        DataObject("Enterprise", {"Enterprise.Code": "x" * 1000}, {}, (), f"e{number}")
        for number in range(1100)
    )
    written = write_document(Document("agencies", tops), AGENCIES)
    with pytest.raises(QnsError, match="bytes of XML"):
        read_document(written, AGENCIES)
    assert len(read_document(written, AGENCIES, max_bytes=1 << 22).objects) == 1100
    with pytest.raises(QnsError, match="at most 1,000"):
        read_document(written, AGENCIES, max_bytes=1 << 22, max_elements=1000)
