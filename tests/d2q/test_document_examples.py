"""The examples in docs/d2q.md equal the output of the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from qns.d2q.document_xml import read_document, write_document
from qns.d2q.dtd import write_dtd
from qns.d2q.event_xml import read_event, write_event
from qns.d2q.schema_xml import read_schema, write_schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.d2q.subscription_xml import (
    read_subscription,
    read_subscriptions,
    write_subscription,
    write_subscriptions,
)
from qns.errors import QnsError

PAGE = (Path(__file__).parents[2] / "docs" / "d2q.md").read_text(encoding="utf-8")
XML, DTD = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) for kind in ("xml", "dtd"))

AGAIN: dict[str, Callable[[str], bytes]] = {
    "event": lambda text: write_event(read_event(text, AGENCIES), AGENCIES),
    "subscription": lambda text: write_subscription(read_subscription(text, AGENCIES), AGENCIES),
    "subscriptions": lambda text: write_subscriptions(read_subscriptions(text, WEATHER), WEATHER),
    "schema": lambda text: write_schema(read_schema(text)),
    "d2q:document": lambda text: write_document(read_document(text, AGENCIES), AGENCIES),
}


def root_name(example: str) -> str:
    return example.split("?>")[1].strip().lstrip("<").split()[0]


@pytest.mark.parametrize("example", XML, ids=root_name)
def test_example_equals_the_output_of_the_code(example: str) -> None:
    assert AGAIN[root_name(example)](example).decode() == example


def test_every_vocabulary_has_an_example() -> None:
    assert [root_name(example) for example in XML] == list(AGAIN)


@pytest.mark.parametrize("excerpt", DTD)
def test_dtd_excerpt_equals_the_output_of_the_code(excerpt: str) -> None:
    assert excerpt in write_dtd(AGENCIES)


def test_error_on_the_page_equals_the_error_of_the_code() -> None:
    said = re.search(r"```text\n(line .*)\n", PAGE)
    event = next(example for example in XML if root_name(example) == "event")
    line = event.splitlines().index('    <value of="p1">0.3</value>') + 1
    with pytest.raises(QnsError) as caught:
        read_event(event.replace("0.3", "1.2"), AGENCIES)
    assert said is not None
    assert str(caught.value) == said[1]
    assert caught.value.line == line
