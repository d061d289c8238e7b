"""Federation documents as XML: writing, reading, and errors with their lines."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES
from qns.d2q.xml import NAMESPACE, shipped_file
from qns.errors import (
    DocumentError,
    DuplicateId,
    FederationError,
    LimitExceeded,
    NameNotKnown,
    QnsError,
    ValueRefused,
)
from qns.federation.document import (
    DEFAULT_CAPABILITY,
    MAX_CAPABILITY,
    Federation,
    Organisation,
)
from qns.federation.document_xml import (
    MAX_FEDERATION_BYTES,
    MAX_ORGANISATIONS,
    read_federation,
    write_federation,
)
from qns.federation.rights import ReadRule
from tests.certificates import certificate
from tests.d2q.test_document import schemas, texts

ENDPOINTS = ["", "http://127.0.0.1:8701/", "https://[::1]/qns?a=<b>&c='d'", "HTTPS://QNS.Example"]


def block(content: bytes) -> str:
    """Returns a block in PEM that need not be a certificate."""
    body = base64.b64encode(content).decode()
    return f"-----BEGIN CERTIFICATE-----{body}-----END CERTIFICATE-----"


PEM, OTHER_PEM = (certificate("INPS", number).certificate for number in (1, 2))
NAMES = texts(12).filter(lambda name: name == name.strip() != "") | st.sampled_from(
    ["INPS", "inps", "CoC"]
)


def certificates(owner: int, most: int) -> st.SearchStrategy[tuple[str, ...]]:
    """Draws certificates that no other owner has."""
    known = [certificate(f"owner {owner}", number).certificate for number in range(3)]
    return st.lists(st.sampled_from(known), max_size=most, unique=True).map(tuple)


@st.composite
def federations(draw: st.DrawFn) -> Federation:
    """Draws documents in which every field takes all kinds of values."""
    schema = draw(schemas())
    version = draw(st.sampled_from([1, 2, 7, 2**53]))
    organisations = {}
    for name in draw(st.lists(NAMES, max_size=4, unique=True)):
        organisations[name] = Organisation(
            name,
            draw(st.frozensets(st.sampled_from(schema.classes))),
            draw(st.sampled_from(ENDPOINTS)),
            draw(certificates(len(organisations), most=2)),
            draw(st.integers(1, MAX_CAPABILITY)),
            draw(st.integers(1, version)),
            draw(certificates(len(organisations) + 4, most=3)),
        )
        rest = sorted(set(schema.classes) - organisations[name].hosts)
        hosted = draw(st.frozensets(st.sampled_from(rest))) if rest else frozenset()
        organisations[name] = replace(organisations[name], hosted=hosted)
    document = Federation(draw(texts(12).filter(bool)), schema, organisations, version)
    return replace(document, **draw(groups_and_rights(schema, list(organisations))))


@st.composite
def groups_and_rights(draw: st.DrawFn, schema: Schema, members: list[str]) -> dict[str, Any]:
    names = draw(st.lists(NAMES.filter(lambda name: name not in members), max_size=2, unique=True))
    drawn = st.frozensets(st.sampled_from(members)) if members else st.just(frozenset[str]())
    groups = {name: draw(drawn) for name in names}
    known = st.sampled_from(["", *members, *groups])
    rules = st.builds(ReadRule, st.sampled_from(schema.classes), known, known, st.booleans())
    return {"groups": groups, "rights": draw(st.none() | st.frozensets(rules, max_size=4))}


def reordered(federation: Federation) -> Federation:
    """Returns an equal document in which all unordered parts are reversed."""
    schema = federation.schema
    backwards = sorted(schema.classes, key=lambda path: (path.count("/"), path[::-1]))
    classes = {
        path: {prop.name: prop.domain.name for prop in schema.properties[path]}
        for path in backwards
    }
    organisations = dict(reversed(federation.organisations.items()))
    labels = dict(reversed(schema.labels.items()))
    return replace(
        federation, schema=Schema(schema.name, classes, labels), organisations=organisations
    )


@given(federations())
def test_reading_what_was_written_gives_the_same_document(federation: Federation) -> None:
    written = write_federation(federation)
    assert read_federation(written) == federation
    assert read_federation(written.decode()) == federation
    assert write_federation(read_federation(written)) == written


@given(federations())
def test_equal_documents_give_equal_bytes(federation: Federation) -> None:
    other = reordered(federation)
    assert other == federation
    assert write_federation(other) == write_federation(federation)


PLAIN = Federation.of("agencies", AGENCIES, {"INPS": AGENCIES.classes, "CoC": ["Enterprise"]})
FULL = replace(
    PLAIN,
    organisations={
        **PLAIN.organisations,
        "INPS": replace(
            PLAIN["INPS"], endpoint="https://qns.inps.example/", tls=(PEM,), incarnation=2
        ),
    },
    version=2,
)
WRITTEN = write_federation(FULL)


def test_document_is_written_in_this_form() -> None:
    lines = WRITTEN.decode().splitlines()
    assert lines[1] == '<federation xmlns="urn:qns:d2q:1" name="agencies" version="2">'
    assert lines[2] == '  <schema name="agencies">'
    assert lines[16:19] == [
        '  <organisation name="CoC" capability="4" joined="1">',
        '    <hosts class="Enterprise"/>',
        "  </organisation>",
    ]
    assert lines[19].startswith('  <organisation name="INPS" endpoint="https://qns.inps.example/"')
    assert lines[20:24] == [
        '    <hosts class="Enterprise"/>',
        '    <hosts class="Enterprise/Holder"/>',
        "    <tls>-----BEGIN CERTIFICATE-----",
        PEM.splitlines()[1],
    ]


def test_classes_are_read_in_any_spelling_and_written_as_in_the_schema() -> None:
    sloppy = WRITTEN.replace(b'class="Enterprise/Holder"', b'class=" ENTERPRISE/holder\n"')
    assert read_federation(sloppy) == FULL
    assert write_federation(read_federation(sloppy)) == WRITTEN


def test_capability_endpoint_and_certificate_are_optional() -> None:
    brief = WRITTEN.replace(b' capability="4"', b"")
    assert read_federation(brief) == FULL
    assert read_federation(write_federation(PLAIN))["INPS"].endpoint == ""
    assert read_federation(write_federation(PLAIN))["INPS"].tls == ()


@pytest.mark.parametrize(
    "sloppy",
    [
        PEM.strip(),
        PEM.replace("\n", "\r\n"),
        "\n\t" + PEM.replace("\n", "  \n    "),
        PEM.replace("\n", ""),
    ],
    ids=["no last line break", "CRLF", "indented", "one line"],
)
def test_certificate_is_normalised(sloppy: str) -> None:
    changed = replace(FULL["INPS"], tls=(sloppy,))
    federation = replace(FULL, organisations={**FULL.organisations, "INPS": changed})
    assert write_federation(federation) == WRITTEN
    assert read_federation(WRITTEN.replace(PEM.encode(), sloppy.encode()))["INPS"] == FULL["INPS"]


def test_former_element_certificate_is_read_as_a_tls_certificate() -> None:
    former = re.sub(rb"(</?)tls>", rb"\1certificate>", WRITTEN)
    assert former.count(b"certificate>") == 2
    assert read_federation(former) == FULL
    useless = former.replace(PEM.encode(), block(b"no certificate").encode())
    assert read_federation(useless)["INPS"].tls == ()


def test_certificates_are_written_in_the_order_of_their_validity() -> None:
    both = FULL.with_certificates("INPS", tls=(OTHER_PEM, PEM), seals=[OTHER_PEM])
    assert both.version == FULL.version + 1
    assert both["INPS"].tls == (PEM, OTHER_PEM)
    assert both["INPS"].seals == (OTHER_PEM,)
    assert read_federation(write_federation(both)) == both
    assert both.with_certificates("INPS", seals=())["INPS"].tls == (PEM, OTHER_PEM)


def test_certificate_of_two_organisations_is_refused_with_both_names() -> None:
    with pytest.raises(FederationError, match="INPS and CoC have the same certificate") as caught:
        FULL.with_certificates("CoC", tls=[PEM])
    assert "of its own" in caught.value.remedy
    cases = ((OTHER_PEM, OTHER_PEM), [certificate("x", number).certificate for number in (1, 2, 3)])
    for tls in cases:
        with pytest.raises(QnsError, match="INPS: TLS certificates"):
            FULL.with_certificates("INPS", tls=tls)


INPS = b'<organisation name="INPS"'
HOLDER = b'<hosts class="Enterprise/Holder"/>'
URL = b"https://qns.inps.example/"

REFUSED: list[tuple[str, bytes, bytes, type[QnsError], str, int]] = [
    ("no version", b' version="2"', b"", DocumentError, "'version' is required", 2),
    ("version 0", b'version="2"', b'version="0"', FederationError, "1 is the first", 2),
    ("version x", b'version="2"', b'version="two"', DocumentError, "'two' is not a valid value", 2),
    ("version 2^60", b'version="2"', b'version="%d"' % 2**60, ValueRefused, "out of range", 2),
    (
        "version of many noughts",
        b'version="2"',
        b'version="%s1"' % (b"0" * 9_000),
        ValueRefused,
        "is not an integer",
        2,
    ),
    ("no name", b'name="agencies" v', b'name="" v', DocumentError, "minimum length of '1'", 2),
    (
        "a long name",
        b'name="agencies" v',
        b'name="%s" v' % (b"x" * 201),
        LimitExceeded,
        "a federation's name of 201 characters (at most 200)",
        2,
    ),
    ("unknown element", b"<hosts ", b"<host ", DocumentError, "'host': This element is not", 18),
    ("a bad schema", b'"FiscalCode"', b'"Accuracy"', QnsError, "like a quality dimension", 11),
    ("no schema", b"schema", b"scheme", DocumentError, "'scheme': This element is not", 3),
    (
        "organisation twice",
        b'"INPS"',
        b'"CoC"',
        DuplicateId,
        "line 20: organisation 'CoC' is named twice, first in line 17 (remove one)",
        20,
    ),
    ("a blank around", b'"INPS"', b'" INPS"', ValueRefused, "remove the blanks around it", 20),
    ("a long organisation", b"INPS", b"I" * 201, LimitExceeded, "of 201 characters", 20),
    (
        "unknown class",
        b'"Enterprise/Holder"/>',
        b'"Enterprise/Houlder"/>',
        NameNotKnown,
        "line 22: organisation 'INPS': unknown class 'Enterprise/Houlder' (did you mean "
        "Enterprise/Holder",
        22,
    ),
    (
        "class twice",
        HOLDER,
        b'<hosts class="ENTERPRISE"/>',
        DuplicateId,
        "organisation 'INPS': the class Enterprise is named twice (remove one)",
        22,
    ),
    (
        "capability 0",
        b'capability="4" joined="2"',
        b'capability="0" joined="2"',
        FederationError,
        "line 20: INPS has capability 0 (give a fan-out from 1 to 1000)",
        20,
    ),
    (
        "capability 1001",
        b'capability="4" joined="2"',
        b'capability="1001" joined="2"',
        FederationError,
        "INPS has capability 1001 (give a fan-out from 1 to 1000)",
        20,
    ),
    (
        "joined later",
        b'joined="2"',
        b'joined="3"',
        FederationError,
        "line 20: INPS joined with version 3 of a document that is at version 2",
        20,
    ),
    (
        "joined with 0",
        b'joined="1"',
        b'joined="0"',
        FederationError,
        "CoC joined with version 0",
        17,
    ),
    ("no joined", b' joined="1"', b"", DocumentError, "'joined' is required", 17),
    *(
        (
            f"endpoint {bad.decode()[:30]!r}",
            URL,
            bad,
            ValueRefused,
            "organisation 'INPS': the endpoint",
            20,
        )
        for bad in (
            b"",
            b"qns.inps.example",
            b"ftp://qns.inps.example/",
            b"https://",
            b"https:///qns",
            b"https://:8443/",
            b"https://qns.inps.example:port/",
            b"https://qns.inps.example:0/",
            b"https://qns.inps.example:65536/",
            b"https://[::1/",
            b"https://qns.inps.example/a b",
            b" https://qns.inps.example/",
            b"https://qns.inps.example/&#10;",
            "https://qns.inps.example/è".encode(),
            b"https://qns.inps.example/" + b"x" * 2_000,
            b"javascript:alert(1)",
        )
    ),
    ("a password", URL, b"https://me:secret@qns.example/", ValueRefused, "before the @", 20),
    *(
        (f"certificate {what}", PEM.encode(), bad, ValueRefused, f"organisation 'INPS': {said}", 23)
        for what, bad, said in (
            ("empty", b"", "the certificate is not one block in PEM"),
            ("text", b"to be done", "the certificate is not one block"),
            ("twice", (PEM + PEM).encode(), "the certificate is not one block"),
            ("begun", PEM.partition("-----END")[0].encode(), "the certificate is not one block"),
            ("half", PEM.partition("\n")[2].encode(), "the certificate is not one block"),
            (
                "without content",
                b"-----BEGIN CERTIFICATE----------END CERTIFICATE-----",
                "the certificate is not one block",
            ),
            ("not X.509", block(b"x" * 200).encode(), "the certificate is not X.509"),
            ("not base64", PEM.replace("M", "*").encode(), "the certificate is not one block"),
            (
                "a private key",
                PEM.replace("CERTIFICATE", "PRIVATE KEY").encode(),
                "a private key in the place of a certificate (everybody reads",
            ),
            (
                "with a key",
                (PEM + PEM.replace("CERTIFICATE", "RSA PRIVATE KEY")).encode(),
                "a private key in the place",
            ),
        )
    ),
    (
        "certificate of 70 KB",
        PEM.encode(),
        b"A" * 70_000,
        LimitExceeded,
        "organisation 'INPS': a string of 70,000 characters",
        23,
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "kind", "said", "line"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_invalid_document_is_rejected_with_the_line(
    old: bytes, new: bytes, kind: type[QnsError], said: str, line: int
) -> None:
    assert old in WRITTEN
    with pytest.raises(kind) as caught:
        read_federation(WRITTEN.replace(old, new))
    assert said in str(caught.value)
    assert caught.value.line == line
    assert caught.value.remedy or "1 is the first" in said
    assert len(str(caught.value)) < 600


def test_other_root_element_is_rejected() -> None:
    with pytest.raises(DocumentError, match="the root element is 'schema'") as caught:
        read_federation(b'<schema xmlns="urn:qns:d2q:1" name="x"/>')
    assert caught.value.remedy == "'federation' in the namespace urn:qns:d2q:1 is expected"


def with_inps(**fields: object) -> Callable[[], Federation]:
    return lambda: replace(
        FULL,
        organisations={**FULL.organisations, "INPS": replace(FULL["INPS"], **fields)},  # type: ignore[arg-type]
    )


UNWRITABLE: dict[str, tuple[Callable[[], Federation], type[QnsError], str]] = {
    "endpoint": (with_inps(endpoint="inps"), ValueRefused, "organisation 'INPS': the endpoint"),
    "certificate": (with_inps(tls=("x",)), ValueRefused, "the certificate is not one block"),
    "no name": (lambda: replace(FULL, name=""), ValueRefused, "a federation's name is empty"),
    "name": (lambda: replace(FULL, name="a\0"), ValueRefused, "U+0000"),
    "version": (lambda: replace(FULL, version=2**53 + 1), ValueRefused, "out of range"),
    "schema": (
        lambda: Federation.of("f", Schema("two words", {"A": {}}), {}),
        QnsError,
        "'two words' is not a schema's name",
    ),
    "organisation": (
        lambda: Federation.of("f", AGENCIES, {"x" * 201: []}),
        LimitExceeded,
        "an organisation's name of 201 characters",
    ),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_document_that_could_not_be_read_again_is_not_written(name: str) -> None:
    make, kind, said = UNWRITABLE[name]
    with pytest.raises(kind) as caught:
        write_federation(make())
    assert said in str(caught.value)


def test_more_than_ten_thousand_organisations_are_rejected() -> None:
    full = Federation.of("f", AGENCIES, {f"o{n}": ["Enterprise"] for n in range(MAX_ORGANISATIONS)})
    written = write_federation(full)
    assert read_federation(written) == full
    with pytest.raises(LimitExceeded, match="10,001 organisations"):
        write_federation(full.with_organisation(Organisation("one more", frozenset())))
    one_more = written.replace(
        b"</federation>", b'<organisation name="x" joined="1"/></federation>'
    )
    with pytest.raises(LimitExceeded, match="10,001 organisations") as caught:
        read_federation(one_more)
    assert caught.value.line is not None


def test_document_above_the_byte_limit_is_neither_written_nor_read() -> None:
    heavy = Federation.of("f", AGENCIES, {})
    endpoint = f"http://{'x' * 1_900}/"
    organisations = {f"o{n}": Organisation(f"o{n}", frozenset(), endpoint) for n in range(2_000)}
    with pytest.raises(LimitExceeded, match="a federation document of 3,"):
        write_federation(replace(heavy, organisations=organisations))
    with pytest.raises(LimitExceeded, match="bytes of XML"):
        read_federation(WRITTEN + b" " * MAX_FEDERATION_BYTES)
    with pytest.raises(LimitExceeded, match="bytes of XML"):
        read_federation(WRITTEN, max_bytes=len(WRITTEN) - 1)


XS = "{http://www.w3.org/2001/XMLSchema}"


def test_xsd_is_valid_documented_and_has_the_limits_of_the_code() -> None:
    tree = etree.parse(shipped_file("federation.xsd"))
    etree.XMLSchema(tree)
    assert tree.getroot().get("targetNamespace") == NAMESPACE
    for declared in tree.getroot().iterchildren(f"{XS}complexType", f"{XS}simpleType"):
        assert any(text.strip() for text in declared.itertext(f"{XS}documentation"))
    capability = tree.find(f".//{XS}attribute[@name='capability']")
    assert capability is not None
    assert capability.get("default") == str(DEFAULT_CAPABILITY)
    assert f"1 to {MAX_CAPABILITY:,}" in "".join(capability.itertext())
    assert f"at most {MAX_ORGANISATIONS:,}" in "".join(tree.getroot().itertext())


def test_xsd_can_be_combined_with_the_others() -> None:
    """The SOAP contract includes all of them, and this one includes one of them itself."""
    includes = "".join(
        f'<xs:include schemaLocation="{shipped_file(f"{name}.xsd").as_uri()}"/>'
        for name in ("event", "subscription", "schema", "federation")
    )
    whole = etree.XMLSchema(
        etree.fromstring(
            f'<xs:schema xmlns:xs="{XS[1:-1]}" targetNamespace="{NAMESPACE}">{includes}</xs:schema>'
        )
    )
    assert whole.validate(etree.fromstring(WRITTEN))
