"""Schemas as XML files, schemas by name, and the XSDs themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from lxml import etree

from qns.cbr.domains import DATA_DOMAINS
from qns.d2q.dtd import write_dtd
from qns.d2q.schema import DIMENSIONS, Schema
from qns.d2q.schema_files import load_schema
from qns.d2q.schema_xml import read_schema, write_schema
from qns.d2q.shipped import AGENCIES, SHIPPED, WEATHER
from qns.d2q.terms import Operator
from qns.d2q.xml import NAMESPACE, shipped_file
from qns.errors import QnsError
from tests.d2q.test_document import schemas

XSDS = ["event", "subscription", "schema", "federation"]
XS = "{http://www.w3.org/2001/XMLSchema}"
WRITTEN = write_schema(AGENCIES)


@given(schemas())
def test_written_schema_is_read_back_unchanged(schema: Schema) -> None:
    found = read_schema(write_schema(schema))
    assert found == schema
    assert found.classes == schema.classes
    assert list(found.labels.items()) == list(schema.labels.items())


REFUSED = [
    ("no name", b' name="agencies"', b"", "'name' is required", 2),
    ("empty name", b' name="agencies"', b' name=""', "is not a schema's name", 2),
    ("wrong root", b"schema ", b"schemas ", "malformed XML", 15),
    ("wrong namespace", b"urn:qns:d2q:1", b"urn:other", "urn:other", 2),
    ("unknown type", b'"string"', b'"text"', "'text' is not an element of the set", 7),
    ("class twice", b'"Enterprise/Holder"', b'"Enterprise"', "'Enterprise' is declared twice", 10),
    ("property twice", b'"EntName"', b'"Code"', "property 'Code' is declared twice", 8),
    ("label twice", b'"high"', b'"low"', "label 'low' is declared twice", 5),
    ("label twice, by case", b'"high"', b'"LOW"', "label 'LOW' is declared twice", 5),
    ("label that is no name", b'"high"', b'"very high"', "'very high' is not a name", 5),
    ("label 1.2", b'"0.9"', b'"1.2"', "outside [0, 1]", 5),
    ("label NaN", b'"0.9"', b'"NaN"', "is not a number from 0 to 1", 5),
    ("label of 1 MB", b'"0.9"', b'"' + b"1" * 1_000_000 + b'"', "is not a number", 5),
    ("class of no class", b'"Enterprise/Holder"', b'"Firm/Holder"', "enclosing class first", 10),
    ("class that is no name", b'"Enterprise/Holder"', b'"Enterprise/"', "'' is not a name", 10),
    ("property that is no name", b'"FiscalCode"', b'"Fiscal Code"', "is not a name", 10),
    ("property like a dimension", b'"FiscalCode"', b'"Accuracy"', "like a quality dimension", 10),
    ("names that differ by case", b'"FiscalCode"', b'"name"', "only by case", 10),
    ("a name that XML refuses", b'"FiscalCode"', '"m²"'.encode(), "is not a name", 10),
    ("unknown element", b"<label", b"<labl", "'labl': This element is not expected", 3),
]


@pytest.mark.parametrize(
    ("old", "new", "said", "line"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_invalid_schema_is_rejected_with_the_line(
    old: bytes, new: bytes, said: str, line: int
) -> None:
    assert old in WRITTEN
    with pytest.raises(QnsError) as caught:
        read_schema(WRITTEN.replace(old, new))
    assert said in str(caught.value)
    assert caught.value.line == line
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", ["agencies", "Agencies", "WEATHER", "weather"])
def test_shipped_schema_is_loaded_by_name(name: str) -> None:
    assert load_schema(name) is SHIPPED[name.lower()]


def test_schema_is_loaded_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.dtd").write_text(write_dtd(WEATHER), encoding="utf-8")
    (tmp_path / "Mine.XML").write_bytes(write_schema(WEATHER))
    assert load_schema(str(tmp_path / "mine.dtd")) == WEATHER
    assert load_schema(str(tmp_path / "Mine.XML")) == WEATHER


def test_loading_error_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "bad.xml").write_bytes(WRITTEN.replace(b"string", b"text"))
    (tmp_path / "bad.dtd").write_text("<!ELEMENT a EMPTY>")
    (tmp_path / "folder.xml").mkdir()
    for name in ("bad.xml", "bad.dtd"):
        with pytest.raises(QnsError) as caught:
            load_schema(str(tmp_path / name))
        assert caught.value.place.startswith(str(tmp_path / name) + ": line ")
    for name in ("missing.xml", "missing.dtd", "folder.xml", "nul\0.xml", "x" * 5000 + ".dtd"):
        with pytest.raises(QnsError) as caught:
            load_schema(str(tmp_path / name))
        assert caught.value.place.startswith(str(tmp_path))
        assert "agencies or weather" in caught.value.remedy
    for name in ("wether", "", "schema.json", "/"):
        with pytest.raises(QnsError) as caught:
            load_schema(name)
        assert "agencies or weather" in caught.value.remedy
        assert name in str(caught.value)


@pytest.mark.parametrize("name", XSDS)
def test_xsd_is_valid_and_documented(name: str) -> None:
    tree = etree.parse(shipped_file(f"{name}.xsd"))
    etree.XMLSchema(tree)
    assert tree.getroot().get("targetNamespace") == NAMESPACE
    assert tree.getroot()[0].tag == f"{XS}annotation"
    for declared in tree.getroot().iterchildren(f"{XS}complexType", f"{XS}simpleType"):
        texts = [text.strip() for text in declared.itertext(f"{XS}documentation")]
        attributes = len(declared.findall(f".//{XS}attribute"))
        assert any(texts) or attributes < 3, f"{declared.get('name')} says nothing of itself"


def test_xsds_can_be_combined_in_one_namespace(tmp_path: Path) -> None:
    """The SOAP contract includes all of them."""
    includes = "".join(
        f'<xs:include schemaLocation="{shipped_file(f"{name}.xsd").as_uri()}"/>' for name in XSDS
    )
    whole = tmp_path / "all.xsd"
    whole.write_text(
        f'<xs:schema xmlns:xs="{XS[1:-1]}" targetNamespace="{NAMESPACE}">{includes}</xs:schema>'
    )
    schema = etree.XMLSchema(etree.parse(whole))
    assert schema.validate(etree.fromstring(WRITTEN))


@pytest.mark.parametrize(
    ("xsd", "type_name", "wanted"),
    [
        ("event", "Dimension", DIMENSIONS),
        ("schema", "PropertyType", DATA_DOMAINS),
        ("subscription", "Operator", [operator.value for operator in Operator]),
    ],
)
def test_xsd_enumerations_equal_those_of_the_code(
    xsd: str, type_name: str, wanted: dict[str, object] | list[str] | tuple[str, ...]
) -> None:
    tree = etree.parse(shipped_file(f"{xsd}.xsd"))
    found = tree.findall(f"{XS}simpleType[@name='{type_name}']//{XS}enumeration")
    assert [element.get("value") for element in found] == list(wanted)
