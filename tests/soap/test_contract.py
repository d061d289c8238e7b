"""The WSDL: stored and served alike, documented everywhere, readable by others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zeep
from lxml import etree

from qns.d2q.xml import shipped_file
from qns.soap.contract import STORED_BASE
from qns.soap.endpoint import Endpoint
from qns.soap.operations import EXCHANGES
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


def test_the_stored_wsdl_is_the_one_that_is_served() -> None:
    served = Endpoint(ALL_TYPES).wsdl(STORED_BASE)
    assert served == STORED.read_bytes(), (
        "schemas/qns.wsdl is not the contract any more; store it anew with\n"
        "  .venv/bin/python -m qns.soap.contract > schemas/qns.wsdl"
    )


def test_the_command_writes_the_same_whatever_the_order_of_sets() -> None:
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


def test_the_addresses_are_those_of_the_peer_that_serves_it() -> None:
    served = etree.fromstring(Endpoint(ALL_TYPES).wsdl("http://127.0.0.1:9/"))
    addresses = {port.get("name"): port[0].get("location") for port in served.iter(f"{WSDL}port")}
    assert addresses == {"Peer": "http://127.0.0.1:9/peer", "Local": "http://127.0.0.1:9/local"}


def test_every_operation_and_every_field_is_documented(root: etree._Element) -> None:
    operations = [
        operation
        for port_type in root.iter(f"{WSDL}portType")
        for operation in port_type.iter(f"{WSDL}operation")
    ]
    assert {operation.get("name") for operation in operations} == set(EXCHANGES)
    for operation in operations:
        assert operation.findtext(f"{WSDL}documentation")
        assert len(operation.findall(f"{WSDL}fault")) == 3
    declared = [*root.iter(f"{XSD}complexType"), *root.iter(f"{XSD}simpleType"), *_fields(root)]
    assert len(declared) > 150
    for node in declared:
        assert node.findtext(f"{XSD}annotation/{XSD}documentation"), node.get("name")


def test_nothing_may_be_nil(root: etree._Element) -> None:
    assert not [field.get("name") for field in _fields(root) if field.get("nillable")]


def test_the_only_elements_are_requests_replies_and_faults(root: etree._Element) -> None:
    schema = root.find(f".//{XSD}schema")
    assert schema is not None
    assert {element.get("name") for element in schema.findall(f"{XSD}element")} == set(MESSAGES)


def test_only_soap_1_1_is_spoken(root: etree._Element) -> None:
    assert b"soap12" not in STORED.read_bytes()
    actions = {operation.get("soapAction") for operation in root.iter(f"{SOAP}operation")}
    assert actions == set(EXCHANGES)


def test_every_type_has_a_name_of_its_own_when_case_does_not_count(root: etree._Element) -> None:
    # Generators of Java and C# turn both into classes, beginning with a capital letter.
    names = [node.get("name", "").casefold() for node in root.iter(f"{XSD}complexType")]
    assert len(names) == len(set(names))


def _fields(root: etree._Element) -> Iterator[etree._Element]:
    for kind in root.iter(f"{XSD}complexType"):
        yield from kind.iter(f"{XSD}element")


# -- zeep, which nobody here wrote ------------------------------------------------------------


@pytest.fixture(scope="module")
def client() -> zeep.Client:
    return zeep.Client(str(STORED))


def test_zeep_finds_both_ports_and_all_operations(client: zeep.Client) -> None:
    for port in Port:
        found = client.bind("QNS", port.value)._operations
        assert set(found) == {each.name for each in EXCHANGES.values() if each.port is port}


def test_what_zeep_writes_is_what_we_read(client: zeep.Client) -> None:
    entry = {
        "receiver": "INAIL",
        "joined": 1,
        "epoch": 2,
        "number": 3,
        "confirmed": 2,
        "fence": [{"epoch": 2, "first": 1}],
        "child": [{"receiver": "CoC", "joined": 1, "epoch": 1, "number": 1, "confirmed": 1}],
    }
    notification = {  # zeep would write the number infinity as `inf`, which no schema accepts
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
