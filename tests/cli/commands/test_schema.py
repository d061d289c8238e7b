"""Tests of `qns schemas` and `qns schema`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qns.d2q.schema_files import load_schema
from qns.d2q.shipped import SHIPPED
from tests.cli.conftest import ROOT, Cli

Write = Callable[[str, str | bytes], Path]


def test_every_shipped_schema_is_listed(cli: Cli) -> None:
    outcome = cli("schemas")
    assert [line.split()[0] for line in outcome.out.splitlines()] == list(SHIPPED)
    as_json = cli("schemas", "--json").json
    assert [row["name"] for row in as_json] == list(SHIPPED)
    assert as_json[1]["organisations"][0] == "Met01"
    assert len(as_json[1]["organisations"]) == 10


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("form", ["dtd", "xml"])
def test_printed_schema_can_be_read_again(name: str, form: str, cli: Cli, file: Write) -> None:
    printed = cli("schema", name, f"--{form}").out
    assert load_schema(str(file(f"x.{form}", printed))) == SHIPPED[name]


@pytest.mark.parametrize("name", SHIPPED)
def test_tree_has_every_class_and_property(name: str, cli: Cli) -> None:
    outcome = cli("schema", name.upper())
    schema = SHIPPED[name]
    assert len(outcome.out.splitlines()) == 1 + len(schema.classes) + sum(
        map(len, schema.properties.values())
    )
    as_json = cli("schema", name, "--json").json
    assert list(as_json["classes"]) == list(schema.classes)
    assert as_json["labels"] == schema.labels


def test_shipped_dtds_equal_the_output_of_the_command(cli: Cli) -> None:
    for name in SHIPPED:
        shipped = (ROOT / "schemas" / f"{name}.dtd").read_text(encoding="utf-8")
        assert cli("schema", name, "--dtd").out == shipped


def test_only_one_output_form_is_accepted(cli: Cli) -> None:
    assert cli("schema", "weather", "--dtd", "--xml").status == 2
    assert cli("schema", "wether").status == 2
