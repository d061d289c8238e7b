"""Programs that were written for the contract of QNS 0.2.0 work with this version.

`released/qns-0.2.0.wsdl` is the WSDL of that version. Its clients reject unknown elements.
"""

from __future__ import annotations

from functools import cache
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from qns.d2q.xml import shipped_file
from qns.iil.requests import Subscribe, Subscribed
from qns.soap.endpoint import Endpoint
from qns.soap.local_client import read_local, write_local
from qns.soap.operations import OPERATION_CODECS
from qns.soap.shapes import CONTRACT, Port
from tests.soap.messages import messages
from tests.strategies import ALL_TYPES

RELEASED = Path(__file__).parent / "released" / "qns-0.2.0.wsdl"
XSD = "{http://www.w3.org/2001/XMLSchema}"
HEADERS = {"Content-Type": "text/xml; charset=utf-8"}
LOCAL_OPERATIONS = [each.name for each in OPERATION_CODECS.values() if each.port is Port.LOCAL]


@cache
def released_schema() -> etree.XMLSchema:
    schema = etree.parse(str(RELEASED)).getroot().find(f".//{XSD}schema")
    assert schema is not None
    return etree.XMLSchema(etree.fromstring(etree.tostring(schema)))


def types_of(wsdl: Path) -> dict[str, list[dict[str, str]]]:
    """Returns the elements of each complex type, as their attributes."""
    return {
        kind.get("name", ""): [dict(field.attrib) for field in kind.iter(f"{XSD}element")]
        for kind in etree.parse(str(wsdl)).getroot().iter(f"{XSD}complexType")
    }


def test_every_released_type_has_only_gained_optional_elements() -> None:
    today = types_of(shipped_file("qns.wsdl"))
    for name, released in types_of(RELEASED).items():
        known = {field["name"] for field in released}
        assert [field for field in today[name] if field["name"] in known] == released, name
        added = [field for field in today[name] if field["name"] not in known]
        assert all(field.get("minOccurs") == "0" for field in added), name


@pytest.mark.parametrize("name", LOCAL_OPERATIONS)
@settings(max_examples=max(20, settings.default.max_examples // 10))
@given(data=st.data())
def test_reply_for_a_caller_of_version_1_is_valid_in_the_released_schema(
    name: str, data: st.DataObject
) -> None:
    reply = OPERATION_CODECS[name].reply
    answer = data.draw(messages(reply.shape))
    written = etree.fromstring(reply.write(answer, contract=1).encode())
    released_schema().assertValid(written)


@pytest.mark.parametrize("name", LOCAL_OPERATIONS)
@given(data=st.data())
def test_request_of_version_1_is_valid_in_the_released_schema(
    name: str, data: st.DataObject
) -> None:
    request = OPERATION_CODECS[name].request
    call = data.draw(messages(request.shape))._replace(contract=1)
    released_schema().assertValid(etree.fromstring(request.write(call, contract=1).encode()))


@pytest.mark.parametrize(("contract", "has_ends"), [(1, False), (CONTRACT, True)])
def test_only_a_caller_of_version_2_gets_the_end_as_a_date_time(
    contract: int, has_ends: bool
) -> None:
    endpoint = Endpoint(ALL_TYPES)
    request = Subscribe("me", "Thing", lifetime_s=60)
    call = endpoint.decode(Port.LOCAL, HEADERS, write_local(request, contract=contract)[0])
    answer = Subscribed("s1", (), 1_706_702_400.5)
    reply = endpoint.reply(call, answer)
    assert (b"<ends>2024-01-31T12:00:00.500000Z</ends>" in reply.body) is has_ends
    assert b"<expires>1706702400.5</expires>" in reply.body
    assert read_local(request, reply.status, reply.body) == answer


def test_subscription_without_end_has_no_date_time() -> None:
    reply = OPERATION_CODECS["subscribe"].reply
    for expires_at in (inf, 1e15):  # the second is later than the last year of a dateTime
        assert "<ends>" not in reply.write(Subscribed("s1", (), expires_at))
