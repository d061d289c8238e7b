"""Tests of `qns federation`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.shipped import AGENCIES_FEDERATION, FEDERATIONS
from tests.cli.conftest import Cli

Write = Callable[[str, str | bytes], Path]

WRITTEN = write_federation(AGENCIES_FEDERATION)


@pytest.mark.parametrize("name", FEDERATIONS)
def test_document_is_shown_as_a_table(name: str, cli: Cli) -> None:
    outcome = cli("federation", name.upper())
    assert outcome.status == 0
    head, columns, *rows = outcome.out.splitlines()
    assert head.startswith(f"{name}, version 1: ")
    assert columns.split() == ["organisation", "joined", "capability", "endpoint", "hosts"]
    assert [row.split()[0] for row in rows] == list(FEDERATIONS[name].organisations)


def test_columns_are_aligned_for_names_of_any_width(cli: Cli, file: Write) -> None:
    document = AGENCIES_FEDERATION
    for name, hosts in (("統計局", []), ("7", ["Enterprise"]), ("two\nlines", [])):
        outcome = cli("federation", "add", "-", name, "--hosts", ",".join(hosts),
                      stdin=write_federation(document))  # fmt: skip
        document = read_federation(outcome.out)
    rows = cli("federation", file("f.xml", write_federation(document))).out.splitlines()
    assert rows[2:] == [
        "7                  3           4  none      Enterprise",
        "CoC                1           4  none      every class",
        "INAIL              1           4  none      every class",
        "INPS               1           4  none      every class",
        "two\\nlines         4           4  none      nothing",
        "統計局             2           4  none      nothing",
    ]


def test_json_output_has_every_field(cli: Cli, file: Write) -> None:
    shown = cli("federation", "agencies", "--json").json
    assert shown["name"] == shown["schema"] == "agencies"
    assert shown["version"] == 1
    assert shown["organisations"][2] == {
        "name": "CoC",
        "joined": 1,
        "capability": 4,
        "endpoint": None,
        "tls": [],
        "seals": [],
        "hosts": ["Enterprise", "Enterprise/Holder"],
        "hosted": [],
    }


@pytest.mark.parametrize("name", FEDERATIONS)
def test_xml_of_a_shipped_document_can_be_read_again(name: str, cli: Cli, tmp_path: Path) -> None:
    assert cli("federation", name, "--xml").out.encode() == write_federation(FEDERATIONS[name])
    mine = tmp_path / "mine.xml"
    outcome = cli("federation", name, "--xml", "-o", mine)
    assert outcome == (0, f"version 1 of {name} is in {mine}\n", "")
    assert read_federation(mine.read_bytes()) == FEDERATIONS[name]


def test_join_adds_an_organisation(cli: Cli) -> None:
    words = ["--hosts", " enterprise/HOLDER, Enterprise", "--endpoint", "https://x.example/"]
    outcome = cli("federation", "add", "agencies", "ISTAT", *words, "--capability", 8)
    found = read_federation(outcome.out)
    assert found.version == 2
    assert found["ISTAT"].hosts == set(AGENCIES_FEDERATION.schema.classes)
    assert found["ISTAT"].endpoint == "https://x.example/"
    assert (found["ISTAT"].capability, found["ISTAT"].incarnation) == (8, 2)


def test_organisation_that_left_and_came_back_has_a_new_incarnation(cli: Cli) -> None:
    left = cli("federation", "remove", "agencies", "CoC").out
    assert read_federation(left) == AGENCIES_FEDERATION.without("CoC")
    back = cli("federation", "add", "-", "CoC", "--hosts", "", stdin=left.encode()).out
    assert read_federation(back)["CoC"].incarnation == 3
    found = cli("federation", "diff", "agencies", "-", stdin=back.encode())
    assert found.out == (
        "agencies, from version 1 to 3\n"
        "  CoC left and comes back (joined with version 3), and hosts nothing\n"
    )


def test_change_can_replace_the_file_of_the_document(cli: Cli, file: Write) -> None:
    path = file("f.xml", WRITTEN)
    path.chmod(0o640)
    outcome = cli("federation", "host", path, "CoC", "--hosts", "Enterprise", "-o", path)
    assert outcome.out == (
        f"version 2 of agencies is in {path}\n  CoC stops hosting Enterprise/Holder\n"
    )
    assert read_federation(path.read_bytes())["CoC"].hosts == {"Enterprise"}
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["f.xml"]


def test_symbolic_link_is_kept_when_its_target_is_replaced(cli: Cli, file: Write) -> None:
    path = file("f.xml", WRITTEN)
    link = path.with_name("link.xml")
    link.symlink_to(path)
    assert cli("federation", "remove", link, "CoC", "-o", link).status == 0
    assert link.is_symlink()
    assert read_federation(path.read_bytes()).version == 2


def test_unwritable_file_is_named_in_error(cli: Cli, tmp_path: Path) -> None:
    for place, reason in (
        (tmp_path, "Is a directory"),
        (tmp_path / "no" / "f.xml", "No such file or directory"),
        ("/dev/full", "No space left on device"),
        ("nul\0.xml", ""),
    ):
        outcome = cli("federation", "agencies", "--xml", "-o", place)
        assert (outcome.status, outcome.out) == (2, "")
        assert f"cannot be written: {reason}" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_diff_is_printed_as_text_and_as_json(cli: Cli, file: Write) -> None:
    new = AGENCIES_FEDERATION.without("CoC").hosting("INPS", ["Enterprise"])
    path = file("new.xml", write_federation(new))
    assert cli("federation", "diff", "agencies", path).out.splitlines() == [
        "agencies, from version 1 to 3",
        "  CoC leaves; it hosted Enterprise, Enterprise/Holder",
        "  INPS stops hosting Enterprise/Holder",
    ]
    as_json = cli("federation", "diff", "agencies", path, "--json").json
    assert (as_json["name"], as_json["from"], as_json["to"]) == ("agencies", 1, 3)
    assert as_json["changes"][1] == {
        "change": "stops hosting",
        "organisation": "INPS",
        "classes": ["Enterprise/Holder"],
        "text": "INPS stops hosting Enterprise/Holder",
    }


def test_version_without_changes_is_reported(cli: Cli, file: Write) -> None:
    path = file("new.xml", WRITTEN.replace(b'version="1"', b'version="2"', 2))
    assert cli("federation", "diff", "agencies", path).out == (
        "agencies, from version 1 to 2\n  only the version changes\n"
    )


def test_schema_begins_a_new_document_to_which_members_are_added(cli: Cli, tmp_path: Path) -> None:
    mine = tmp_path / "mine.xml"
    mine.write_text(cli("schema", "weather", "--xml").out, "utf-8")
    path = str(tmp_path / "federation.xml")
    begun = cli(*("federation", "init", "--schema", str(mine), "--name", "storms", "-o", path))
    assert begun == (0, f"version 1 of storms is in {path}\n", "")
    words = ("--hosts", "Report", "--endpoint", "http://127.0.0.1:1/", "-o", path)
    cli("federation", "add", path, "Met01", *words)
    document = read_federation(Path(path).read_bytes())
    assert (document.name, document.version) == ("storms", 2)
    assert document.schema == WEATHER
    assert document["Met01"].endpoint == "http://127.0.0.1:1/"
    assert document["Met01"].incarnation == 2


def test_new_document_has_the_name_of_its_schema_and_no_members(cli: Cli) -> None:
    document = read_federation(cli("federation", "init", "--schema", "weather").out.encode())
    assert document == Federation("weather", WEATHER, {})


def test_endpoints_of_several_members_change_in_one_version(cli: Cli, file: Write) -> None:
    path = file("f.xml", WRITTEN)
    moved = cli(
        *("federation", "endpoint", path, "CoC=http://127.0.0.1:2/"),
        *("INPS=http://127.0.0.1:3/?a=b", "-o", path),
    )
    assert moved.status == 0, moved.err
    document = read_federation(Path(path).read_bytes())
    assert document.version == 2
    assert document["CoC"].endpoint == "http://127.0.0.1:2/"
    assert document["INPS"].endpoint == "http://127.0.0.1:3/?a=b"
    assert len(moved.out.splitlines()) == 3


def test_schema_of_a_document_can_grow_and_is_hosted_in_the_same_version(
    cli: Cli, file: Write, tmp_path: Path
) -> None:
    schema = cli("schema", "agencies", "--xml").out
    mine = tmp_path / "mine.xml"
    mine.write_text(schema.replace("</schema>", '<class path="Person"/></schema>'), "utf-8")
    path = file("f.xml", WRITTEN)
    grown = cli(
        *("federation", "schema", path, str(mine), "--host", "CoC", "--hosts", "Person"),
        *("-o", path),
    )
    assert grown.status == 0, grown.err
    document = read_federation(Path(path).read_bytes())
    assert (document.version, document["CoC"].hosts) == (2, frozenset(["Person"]))
    assert "the class Person is new" in grown.out
    mine.write_text(schema.replace('name="Code" type="string"', 'name="Code" type="date"'), "utf-8")
    refused = cli("federation", "schema", "agencies", str(mine))
    assert refused.status == 2
    assert "the property Enterprise.Code was string and becomes date" in refused.err


ERRORS = [
    (["agncies"], "unknown federation 'agncies' (did you mean agencies? or give agencies, weather"),
    (["nothing"], "unknown federation 'nothing' (give agencies, weather, weather-partial or an"),
    (["missing.xml"], "missing.xml: cannot be read: No such file or directory"),
    (["examples"], "examples: cannot be read: Is a directory"),
    (["schemas/schema.xsd"], "schemas/schema.xsd:3: the root element is 'schema' in the namespace"),
    (["remove", "agencies", "inps"], "unknown organisation 'inps' (did you mean INPS?)"),
    (["host", "agencies", "Istat", "--hosts", ""], "unknown organisation 'Istat'"),
    (
        ["add", "agencies", "INPS", "--hosts", ""],
        "INPS is a member already (change it with qns federation host)",
    ),
    (["add", "agencies", " x", "--hosts", ""], "remove the blanks around it"),
    (["add", "agencies", "", "--hosts", ""], "an organisation's name is empty"),
    (
        ["host", "agencies", "CoC", "--hosts", "Holder"],
        "--hosts: unknown class 'Holder' (did you mean Enterprise/Holder?)",
    ),
    (
        ["host", "agencies", "CoC", "--hosts", "Enterprise/Holder,Enterprise"],
        "CoC hosts these classes already (no new version is needed)",
    ),
    (
        ["add", "agencies", "x", "--hosts", "", "--endpoint", "x.example"],
        "organisation 'x': the endpoint 'x.example' is not an http or https URL with a host",
    ),
    (
        ["add", "agencies", "x", "--hosts", "", "--capability", "0"],
        "x has capability 0 (give a fan-out from 1 to 1000)",
    ),
    (["capability", "agencies", "CoC", "1001"], "CoC has capability 1001 (give a fan-out from 1"),
    (["capability", "agencies", "CoC", "4"], "the document is like this already"),
    (
        ["endpoint", "agencies", "http://x/"],
        "http://x/ names no organisation (write NAME=http://x/)",
    ),
    (["endpoint", "agencies", "Coc=http://x/"], "unknown organisation 'Coc' (did you mean CoC?)"),
    (["endpoint", "agencies", "CoC=", "CoC=http://x/"], "two endpoints for CoC"),
    (
        ["endpoint", "agencies", "CoC=http://x/", "INPS=http://x/"],
        "CoC and INPS have the same address x (give each organisation an endpoint of its own)",
    ),
    (["endpoint", "agencies", "CoC="], "the document is like this already (no new version"),
    (["schema", "agencies", "agencies"], "the document is like this already"),
    (["schema", "agencies", "weather"], "unknown class 'Enterprise"),
    (["schema", "agencies", "agencies", "--host", "CoC"], "--host and --hosts go together"),
    (["certificates", "agencies", "CoC"], "no certificate is given (give --tls FILE"),
    (["certificates", "agencies", "CoC", "--tls", "README.md"], "is not one block in PEM"),
    (
        ["certificates", "agencies", "CoC", "--tls", "x", "--no-tls"],
        "--tls and --no-tls contradict each other",
    ),
    (["init", "--schema", "wether"], "unknown schema 'wether' (did you mean weather?"),
    (["init", "--schema", "weather", "--threshold", "1"], "has no threshold, anchor or expiry"),
    (["init", "--schema", "weather", "--root-key", "x.pub"], "no file for the anchor (every peer"),
    (["renew", "agencies"], "only a signed document expires (qns federation rotate adds root"),
    (["remove", "agencies", "CoC", "--expires", "9d"], "only a signed document expires"),
    (["rotate", "agencies"], "no root key is given"),
    (["rotate", "agencies", "--root-key", "README.md"], "README.md: it is not a public key in PEM"),
    (["sign", "agencies", "--key", "x"], "a signature needs a file (name one with -o)"),
    (["agencies", "-o", "x.xml"], "-o goes with --xml"),
    (["diff", "agencies", "agencies"], "version 1 of agencies is not later than version 1"),
    (["diff", "agencies", "weather"], "a document of the federation 'weather'"),
    (["diff", "agencies", "agncies"], "unknown federation 'agncies'"),
    (["diff", "-", "-"], "standard input cannot be both documents (name a file for one)"),
]


@pytest.mark.parametrize(("words", "message"), ERRORS, ids=[" ".join(words) for words, _ in ERRORS])
def test_error_names_the_problem_and_the_remedy(words: list[str], message: str, cli: Cli) -> None:
    outcome = cli("federation", *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("qns: error: ")
    assert message in outcome.err


def test_wrong_usage_exits_with_status_2(cli: Cli) -> None:
    for words in (
        [],
        ["remove", "agencies"],
        ["remov", "agencies", "CoC"],
        ["add", "agencies", "x"],
        ["agencies", "--leave", "CoC"],
        ["add", "agencies", "x", "--hosts", "", "--capability", "many"],
        ["init"],
        ["key"],
    ):
        outcome = cli("federation", *words)
        assert outcome.status == 2
        assert outcome.err.startswith("usage: ")


def test_error_in_a_file_is_reported_with_its_line_as_text_and_json(cli: Cli, file: Write) -> None:
    path = file("f.xml", WRITTEN.replace(b'<hosts class="Enterprise/', b'<hosts class="'))
    for words in ([path], ["diff", "agencies", path]):
        outcome = cli("federation", *words)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err == (
            f"qns: error: {path}:19: organisation 'CoC': unknown class 'Holder' "
            "(did you mean Enterprise/Holder?)\n"
        )
        as_json = cli("federation", *words, "--json")
        assert f'"file": "{path}", "line": 19' in as_json.err
    refused = cli("federation", "agencies", "--xml", "--json")
    assert refused.status == 2
    assert '"remedy": "leave out --json"' in refused.err
