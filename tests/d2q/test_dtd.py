"""A schema as a D2Q DTD: the export is complete, and reading it is strict."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from qns.d2q.dtd import read_dtd, write_dtd
from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, SHIPPED
from qns.d2q.xml import shipped_file
from qns.errors import QnsError
from tests.d2q.test_document import schemas
from tests.strategies import ALL_TYPES

WRITTEN = write_dtd(AGENCIES)


@given(schemas())
def test_exported_schema_is_read_back_unchanged(schema: Schema) -> None:
    found = read_dtd(write_dtd(schema))
    assert found == schema
    assert found.classes == schema.classes
    assert list(found.labels.items()) == list(schema.labels.items())
    assert write_dtd(found) == write_dtd(schema)


@pytest.mark.parametrize("schema", [*SHIPPED.values(), ALL_TYPES], ids=lambda s: s.name)
def test_bytes_and_encoding_declarations_are_accepted(schema: Schema) -> None:
    text = write_dtd(schema)
    assert read_dtd(text.encode()) == schema
    assert read_dtd(b'<?xml version="1.0" encoding="UTF-8"?>\n' + text.encode()) == schema
    assert read_dtd('<?xml version="1.0" encoding="UTF-16"?>\n' + text) == schema


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_dtd_equals_the_output_of_the_code(name: str) -> None:
    shipped = shipped_file(f"{name}.dtd").read_bytes()
    assert shipped == write_dtd(SHIPPED[name]).encode(), f"export schemas/{name}.dtd again"


def test_comments_and_layout_do_not_change_the_schema() -> None:
    edited = "<!-- by hand: 100% & more -->\n" + WRITTEN.replace(" | ", "|").replace("\n  ", "   ")
    assert read_dtd(edited) == AGENCIES


def test_types_are_written_as_fixed_attributes() -> None:
    dtd = write_dtd(SHIPPED["weather"])
    assert "<!ELEMENT Gust (Peak?, Dangerous?)>" in dtd
    assert (
        'property CDATA #FIXED "Report/Wind/Gust.Dangerous"\n  type CDATA #FIXED "boolean"' in dtd
    )
    assert 'labels CDATA #FIXED "low=0.3 medium=0.6 high=0.9"' in dtd


def test_reader_never_opens_external_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.dtd"
    secret.write_text("<!ELEMENT leaked EMPTY>")
    for declared in (
        f'<!ENTITY % x SYSTEM "{secret.as_uri()}">%x;',
        f'<?a <!-- ?><!ENTITY % x SYSTEM "{secret.as_uri()}">%x;<?b --> ?>',
    ):
        with pytest.raises(QnsError, match="nothing external"):
            read_dtd(declared + WRITTEN)


def edited(old: str, new: str) -> str:
    assert old in WRITTEN
    return WRITTEN.replace(old, new)


REFUSED: list[tuple[str, str | bytes, str, int]] = [
    ("empty", "", "no element d2q:document", 1),
    ("not a DTD", "hello", "malformed DTD", 1),
    ("an XML document", "<Enterprise/>", "malformed DTD", 1),
    ("unfinished", "\n<!ELEMENT a (b", "malformed DTD", 2),
    ("entity", WRITTEN + '<!ENTITY a "b">', "'<!ENTITY' in a D2Q DTD", 113),
    ("parameter entity", '<!ENTITY % a "b">' + WRITTEN, "'<!ENTITY'", 1),
    ("billion laughs", '<!ENTITY a "aa"><!ENTITY b "&a;&a;">' + WRITTEN, "'<!ENTITY'", 1),
    ("external notation", '<!NOTATION a SYSTEM "b">' + WRITTEN, "'<!NOTATION'", 1),
    ("conditional section", "<![INCLUDE[" + WRITTEN + "]]>", "'<!['", 1),
    ("DOCTYPE", "<!DOCTYPE a [" + WRITTEN + "]>", "'<!DOCTYPE'", 1),
    ("reference to nothing", "\n%a;" + WRITTEN, "'%a;' in a D2Q DTD", 2),
    ("NUL", "\n" + WRITTEN + "\0", "in a D2Q DTD", 114),
    ("UTF-16", WRITTEN.encode("utf-16"), "is not UTF-8", 1),
    ("UTF-16 without a mark", WRITTEN.encode("utf-16-le"), "in a D2Q DTD", 1),
    ("another charset", b'<?xml version="1.0" encoding="IBM037"?>', "'IBM037'", 1),
    ("invalid UTF-8", b"\n<!-- \xff -->", "byte 0xFF", 2),
    ("too long", "<!-- " + "x" * (1 << 24) + " -->", "at most 16,777,216", 1),
    ("no schema name", edited("schema (agencies) #REQUIRED", ""), "is not a schema's name", 3),
    ("another document element", edited("d2q:document", "d2q:doc"), "no element d2q:doc", 1),
    ("unknown type", edited('"string"', '"text"'), "unknown type 'text'", 3),
    ("no type", edited('\n  type CDATA #FIXED "string"', ""), "unknown type ''", 3),
    ("label out of range", edited("0.9", "1.9"), "label 'high'", 3),
    ("label without a number", edited("high=0.9", "high"), "label 'high'", 3),
    ("property of no class", edited('"Enterprise.Code"', '"Firm.Code"'), "has no class", 3),
    ("class of no class", edited('"Enterprise"', '"Firm"'), "has no class", 3),
    ("a class named twice", edited('"Enterprise/Holder"', '"Enterprise"'), "has no class", 3),
    ("property not in its class", edited("(Code?, ", "("), "declaration of 'Enterprise' d", 12),
    ("property required", edited("Code?, ", "Code, "), "declaration of 'Enterprise' d", 12),
    ("quality of nothing", edited("<!ELEMENT Name.accuracy", "<!ELEMENT N.a"), "'N.a'", 50),
    ("no quality element", WRITTEN[: WRITTEN.rindex("<!ELEMENT")], "is missing", 1),
    ("ID that is no ID", edited("id ID #REQUIRED", "id CDATA #REQUIRED"), "'Enterprise' d", 12),
]


@pytest.mark.parametrize(
    ("data", "said", "line"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_dtd_that_exports_no_schema_is_rejected(data: str | bytes, said: str, line: int) -> None:
    with pytest.raises(QnsError) as caught:
        read_dtd(data)
    assert said in str(caught.value)
    assert caught.value.line == line
    assert len(str(caught.value)) < 600


def test_schema_with_a_name_that_a_dtd_cannot_carry_is_rejected() -> None:
    with pytest.raises(QnsError, match="is not a schema's name"):
        write_dtd(Schema("a & b", {"A": {}}))


def test_large_schema_is_exported_and_read_in_linear_time() -> None:
    classes = {f"C{number}": {"P": "integer"} for number in range(2_000)}
    schema = Schema("large", {"Root": {}} | {f"Root/{name}": own for name, own in classes.items()})
    assert read_dtd(write_dtd(schema)) == schema
