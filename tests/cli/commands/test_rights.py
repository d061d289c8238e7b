"""`qns federation group`, `grant`, `revoke` and `rights`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qns.federation.document_xml import read_federation
from qns.federation.rights import ReadRule
from tests.cli.conftest import Cli


@pytest.fixture
def document(cli: Cli, tmp_path: Path) -> str:
    """Returns a file with a group and a rule."""
    name = str(tmp_path / "rights.xml")
    cli("federation", "group", "agencies", "insurers", "--members", "INPS, INAIL", "-o", name)
    rule = ("enterprise/holder", "--to", "insurers", "--from", "CoC")
    assert cli("federation", "grant", name, *rule, "-o", name).out.splitlines() == [
        f"version 3 of agencies is in {name}",
        "  rights are in force from now on: nobody may read what no rule grants",
        "  granted: insurers may read Enterprise/Holder of CoC",
    ]
    return name


def test_rule_is_granted_and_revoked(cli: Cli, document: str) -> None:
    read = read_federation(Path(document).read_bytes())
    assert read.rights == {ReadRule("Enterprise/Holder", "insurers", "CoC")}
    rule = ("Enterprise/Holder", "--to", "insurers", "--from", "CoC")
    without = read_federation(cli("federation", "revoke", document, *rule).out)
    assert (without.rights, without.version) == (frozenset(), 4)
    assert read_federation(cli("federation", "revoke", document).out).rights is None
    only = read_federation(cli("federation", "grant", document, "Enterprise", "--only").out)
    assert only.rights == read.rights | {ReadRule("Enterprise", only=True)}


def test_matrix_shows_who_may_read_what_of_whom(cli: Cli, document: str) -> None:
    assert cli("federation", "rights", document, "--to", "INPS").out.splitlines() == [
        "group insurers: INAIL, INPS",
        "insurers may read Enterprise/Holder of CoC",
        "organisation  of     may read",
        "INPS          CoC    Enterprise/Holder",
        "INPS          INAIL  nothing",
    ]
    found = json.loads(cli("federation", "rights", document, "--from", "CoC", "--json").out)
    assert found["groups"] == {"insurers": ["INAIL", "INPS"]}
    assert found["rules"] == [
        {"class": "Enterprise/Holder", "only": False, "to": "insurers", "from": "CoC"}
    ]
    assert {each["organisation"]: each["classes"] for each in found["may_read"]} == {
        "INAIL": ["Enterprise/Holder"],
        "INPS": ["Enterprise/Holder"],
    }


def test_document_is_shown_and_compared_with_its_rights(cli: Cli, document: str) -> None:
    line = "rights: 1 group, 1 rule; qns federation rights shows them"
    assert cli("federation", "show", document).out.splitlines()[1] == line
    shown = json.loads(cli("federation", document, "--json").out)
    assert (shown["groups"], len(shown["rules"])) == ({"insurers": ["INAIL", "INPS"]}, 1)
    compared = cli("federation", "diff", "agencies", document, "--json").out
    kinds = [each["change"] for each in json.loads(compared)["changes"]]
    assert kinds == ["group", "rights", "rights"]


def test_group_can_be_changed_and_removed(cli: Cli, document: str) -> None:
    smaller = cli("federation", "group", document, "insurers", "--members", "INPS").out
    assert read_federation(smaller).groups == {"insurers": {"INPS"}}
    refused = cli("federation", "group", document, "insurers", "--members", "")
    assert "a rule names the group: insurers may read Enterprise/Holder of CoC" in refused.err
    cli("federation", "revoke", document, "-o", document)
    assert not read_federation(
        cli("federation", "group", document, "insurers", "--members", "").out
    ).groups


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["grant", "agencies", "Enterprse"],
            "unknown class 'Enterprse' (did you",
        ),
        (["grant", "agencies", "Enterprise", "--to", "IMPS"], "'IMPS' (did you mean INPS?)"),
        (["grant", "agencies", "Enterprise", "--from", "coc"], "'coc' (did you mean CoC?)"),
        (["revoke", "agencies", "Enterprise", "--to", "CoC"], "there is no rule that CoC may read"),
        (["revoke", "agencies"], "the document is like this already"),
        (["group", "agencies", "g", "--members", "IMPS"], "unknown organisation 'IMPS'"),
        (["group", "agencies", "CoC", "--members", "INPS"], "CoC is an organisation and a group"),
        (["group", "agencies", "g", "--members", ""], "unknown group 'g'"),
        (
            ["rights", "agencies", "--to", "IMPS"],
            "unknown organisation 'IMPS' (did you",
        ),
    ],
)
def test_error_names_the_problem_and_the_remedy(words: list[str], message: str, cli: Cli) -> None:
    outcome = cli("federation", *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


def test_rule_that_is_granted_already_makes_no_version(cli: Cli, document: str) -> None:
    rule = ("Enterprise/Holder", "--to", "insurers", "--from", "CoC")
    assert "like this already" in cli("federation", "grant", document, *rule).err
