"""The WSDL: the stored one equals the served one, is documented, and other stacks can read it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import zeep
from lxml import etree

from qns.d2q.xml import shipped_file
from qns.edl.merge_subscriptions_table import Digest
from qns.soap.contract import STORED_BASE
from qns.soap.digest_text import EXAMPLE_DIGEST, EXAMPLE_ELEMENTS
from qns.soap.endpoint import Endpoint
from qns.soap.operations import OPERATION_CODECS
from qns.soap.shapes import Port
from tests.soap.messages import MESSAGES
from tests.strategies import ALL_TYPES

WSDL = "{http://schemas.xmlsoap.org/wsdl/}"
SOAP = "{http://schemas.xmlsoap.org/wsdl/soap/}"
XSD = "{http://www.w3.org/2001/XMLSchema}"
STORED = shipped_file("qns.wsdl")


@pytest.fixture(scope="module")
def root() -> etree._Element:
    return etree.parse(str(STORED)).getroot()


def test_stored_wsdl_equals_the_served_wsdl() -> None:
    served = Endpoint(ALL_TYPES).wsdl(STORED_BASE)
    assert served == STORED.read_bytes(), (
        "schemas/qns.wsdl is outdated; regenerate it with\n"
        "  .venv/bin/python -m qns.soap.contract > schemas/qns.wsdl"
    )


def test_command_writes_the_same_wsdl_for_every_hash_seed() -> None:
    for seed in ("1", "2"):
        written = subprocess.run(
            [sys.executable, "-m", "qns.soap.contract"],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        )
        assert written.stdout == STORED.read_bytes()
        assert not written.stderr


def test_served_wsdl_has_the_addresses_of_the_peer() -> None:
    served = etree.fromstring(Endpoint(ALL_TYPES).wsdl("http://127.0.0.1:9/"))
    addresses = {port.get("name"): port[0].get("location") for port in served.iter(f"{WSDL}port")}
    assert addresses == {"Peer": "http://127.0.0.1:9/peer", "Local": "http://127.0.0.1:9/local"}


@pytest.mark.parametrize("first", Port)
def test_wsdl_of_a_port_lists_that_port_first(first: Port) -> None:
    # zeep and other libraries call the first port of the service, unless the program names another.
    served = etree.fromstring(Endpoint(ALL_TYPES).wsdl(STORED_BASE, first=first))
    names = [port.get("name") for port in served.iter(f"{WSDL}port")]
    assert names == [first.value, *(port.value for port in Port if port is not first)]


def test_wsdl_defines_the_digest_of_a_view_with_an_example(root: etree._Element) -> None:
    (change,) = (k for k in root.iter(f"{XSD}complexType") if k.get("name") == "changeSub")
    (digest,) = (field for field in change.iter(f"{XSD}element") if field.get("name") == "digest")
    text = digest.findtext(f"{XSD}annotation/{XSD}documentation") or ""
    elements = re.findall(r"the element (<subscription [^>]*/>)", text)
    hashes = [sha256(element.encode("utf-8")).hexdigest() for element in elements]
    assert len(elements) == 2
    assert re.findall(r"has the hash ([0-9a-f]{64})", text) == hashes
    total = sum(int.from_bytes(bytes.fromhex(each), "big") for each in hashes)
    assert total >= 2**256, "the example shows the modulus"
    assert re.findall(r"has the digest ([0-9a-f]{64})", text) == [f"{total % 2**256:064x}"]
    assert "The digest of an empty view is 64 zeros." in text


def test_digest_of_the_example_is_that_of_the_merge_subscriptions_table() -> None:
    assert str(Digest(EXAMPLE_ELEMENTS)) == EXAMPLE_DIGEST
    assert str(Digest()) == "0" * 64


def test_wsdl_documents_every_operation_type_and_field(root: etree._Element) -> None:
    operations = [
        operation
        for port_type in root.iter(f"{WSDL}portType")
        for operation in port_type.iter(f"{WSDL}operation")
    ]
    assert {operation.get("name") for operation in operations} == set(OPERATION_CODECS)
    for operation in operations:
        assert operation.findtext(f"{WSDL}documentation")
        assert len(operation.findall(f"{WSDL}fault")) == 3
    declared = [*root.iter(f"{XSD}complexType"), *root.iter(f"{XSD}simpleType"), *_fields(root)]
    assert len(declared) > 150
    for node in declared:
        assert node.findtext(f"{XSD}annotation/{XSD}documentation"), node.get("name")


def test_wsdl_declares_no_field_nillable(root: etree._Element) -> None:
    assert not [field.get("name") for field in _fields(root) if field.get("nillable")]


def test_wsdl_declares_only_requests_replies_and_faults_as_elements(root: etree._Element) -> None:
    schema = root.find(f".//{XSD}schema")
    assert schema is not None
    assert {element.get("name") for element in schema.findall(f"{XSD}element")} == set(MESSAGES)


def test_wsdl_binds_every_operation_to_soap_1_1_only(root: etree._Element) -> None:
    assert b"soap12" not in STORED.read_bytes()
    actions = {operation.get("soapAction") for operation in root.iter(f"{SOAP}operation")}
    assert actions == set(OPERATION_CODECS)


def test_type_names_differ_in_more_than_upper_and_lower_case(root: etree._Element) -> None:
    # Generators for Java and C# turn types into classes whose names begin with a capital letter.
    names = [node.get("name", "").casefold() for node in root.iter(f"{XSD}complexType")]
    assert len(names) == len(set(names))


def _fields(root: etree._Element) -> Iterator[etree._Element]:
    for kind in root.iter(f"{XSD}complexType"):
        yield from kind.iter(f"{XSD}element")


# -- zeep, an independent SOAP stack ----------------------------------------------------------


@pytest.fixture(scope="module")
def client() -> zeep.Client:
    return zeep.Client(str(STORED))


def test_zeep_finds_both_ports_and_all_operations(client: zeep.Client) -> None:
    for port in Port:
        found = client.bind("QNS", port.value)._operations
        assert set(found) == {each.name for each in OPERATION_CODECS.values() if each.port is port}


def test_endpoint_reads_a_request_that_zeep_writes(client: zeep.Client) -> None:
    entry = {
        "receiver": "INAIL",
        "joined": 1,
        "epoch": 2,
        "number": 3,
        "confirmed": 2,
        "fence": [{"epoch": 2, "first": 1}],
        "child": [{"receiver": "CoC", "joined": 1, "epoch": 1, "number": 1, "confirmed": 1}],
    }
    notification = {  # zeep would write a float infinity as `inf`, which the schema rejects
        "source": "INPS",
        "joined": 1,
        "epoch": 2,
        "sequence": 3,
        "event": "e1",
        "xml": b"<event/>",
        "remaining": "INF",
        "entry": entry,
        "path": ["INPS"],
    }
    service = client.bind("QNS", "Peer")
    written = client.create_message(
        service,
        "notify",
        origin={"organisation": "INPS", "document": 1},
        notification=[notification, notification],
    )
    headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '"notify"'}
    call = Endpoint(ALL_TYPES).decode(Port.PEER, headers, etree.tostring(written))
    items = call.input.envelope.body.items  # type: ignore[union-attr]
    assert len(items) == 2
    assert items[0].entry.children[0].receiver == "CoC"
    assert items[0].remaining_s == float("inf")
    assert items[0].xml == b"<event/>"
