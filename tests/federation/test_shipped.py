"""The federations that come with QNS, the example file, and the page about it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from qns.errors import QnsError
from qns.federation.changes import check_follows
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.mapping import SchemaMapping
from qns.federation.shipped import (
    AGENCIES_FEDERATION,
    AGENCIES_MAPPING,
    FEDERATIONS,
    WEATHER_FEDERATION,
    WEATHER_FULL,
    WEATHER_PARTIAL,
    WEATHER_PARTIAL_FEDERATION,
)

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples/agencies/federation.xml").read_bytes()
PAGE = (ROOT / "docs/federation.md").read_text(encoding="utf-8")


def test_shipped_federations_are_found_by_name() -> None:
    assert FEDERATIONS == {
        "agencies": AGENCIES_FEDERATION,
        "weather": WEATHER_FEDERATION,
        "weather-partial": WEATHER_PARTIAL_FEDERATION,
    }


@pytest.mark.parametrize(
    ("federation", "mapping"),
    [
        (AGENCIES_FEDERATION, AGENCIES_MAPPING),
        (WEATHER_FEDERATION, WEATHER_FULL),
        (WEATHER_PARTIAL_FEDERATION, WEATHER_PARTIAL),
    ],
)
def test_members_of_a_shipped_federation_host_the_classes_of_its_mapping(
    federation: Federation, mapping: SchemaMapping
) -> None:
    assert federation.version == 1
    hosts = {name: each.hosts for name, each in federation.organisations.items()}
    assert hosts == mapping.hosts


@pytest.mark.parametrize("name", FEDERATIONS)
def test_shipped_federation_can_be_written_and_read(name: str) -> None:
    assert read_federation(write_federation(FEDERATIONS[name])) == FEDERATIONS[name]


def test_example_file_is_the_agencies_federation_with_endpoints() -> None:
    example = read_federation(EXAMPLE)
    assert write_federation(example) == EXAMPLE
    endpoints = {each.endpoint for each in example.organisations.values()}
    assert len(endpoints) == 3
    assert all(endpoint.startswith("http://127.0.0.1:") for endpoint in endpoints)
    bare = {name: replace(each, endpoint="") for name, each in example.organisations.items()}
    assert replace(example, organisations=bare) == AGENCIES_FEDERATION


def test_page_shows_the_example_file_and_error_messages_verbatim() -> None:
    (shown,) = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)
    assert shown.encode() == EXAMPLE
    grown, said = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
    code = b'"Code" type="string"'
    changed = EXAMPLE.replace(b'version="1"', b'version="2"').replace(
        code, b'"Code" type="integer"'
    )
    with pytest.raises(QnsError) as caught:
        check_follows(read_federation(EXAMPLE), read_federation(changed))
    assert str(caught.value).startswith(grown)
    with pytest.raises(QnsError) as caught:
        read_federation(shown.replace('<hosts class="Enterprise/', '<hosts class="'))
    assert str(caught.value) == said
