"""The federations that come with QNS, the example file and the page about it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from qns.errors import QnsError
from qns.federation.document_xml import read_federation, write_federation
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


def test_the_shipped_federations_are_known_by_name() -> None:
    assert FEDERATIONS == {
        "agencies": AGENCIES_FEDERATION,
        "weather": WEATHER_FEDERATION,
        "weather-partial": WEATHER_PARTIAL_FEDERATION,
    }


def test_they_host_what_the_mappings_say() -> None:
    assert AGENCIES_FEDERATION.mapping == AGENCIES_MAPPING
    assert WEATHER_FEDERATION.mapping == WEATHER_FULL
    assert WEATHER_PARTIAL_FEDERATION.mapping == WEATHER_PARTIAL


@pytest.mark.parametrize("name", FEDERATIONS)
def test_they_can_be_written_and_read(name: str) -> None:
    assert read_federation(write_federation(FEDERATIONS[name])) == FEDERATIONS[name]


def test_the_example_is_the_agencies_with_a_peer_each() -> None:
    example = read_federation(EXAMPLE)
    assert write_federation(example) == EXAMPLE
    endpoints = {each.endpoint for each in example.organisations.values()}
    assert len(endpoints) == 3
    assert all(endpoint.startswith("http://127.0.0.1:") for endpoint in endpoints)
    bare = {name: replace(each, endpoint="") for name, each in example.organisations.items()}
    assert replace(example, organisations=bare) == AGENCIES_FEDERATION


def test_the_page_shows_the_example_and_an_error_as_they_are() -> None:
    (shown,) = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)
    assert shown.encode() == EXAMPLE
    (said,) = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
    with pytest.raises(QnsError) as caught:
        read_federation(shown.replace('<hosts class="Enterprise/', '<hosts class="'))
    assert str(caught.value) == said
