"""Tests of `qns check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qns.cbr.event import Event
from qns.d2q.document import DataObject, Document
from qns.d2q.document_xml import write_document
from qns.d2q.dtd import write_dtd
from qns.d2q.event_xml import write_event
from qns.d2q.language import parse_subscription
from qns.d2q.schema_xml import write_schema
from qns.d2q.shipped import AGENCIES
from qns.d2q.subscription_xml import write_subscription, write_subscriptions
from tests.cli.conftest import Cli

Write = Callable[[str, str | bytes], Path]

HOLDER = parse_subscription("Enterprise/Holder where Name.accuracy <= medium", AGENCIES)
EVENT = Event("e1", "Enterprise/Holder", "INPS", {"Enterprise/Holder.Name": "Rossi"})
DOCUMENT = Document("agencies", (DataObject("Enterprise", {"Enterprise.Code": "x"}, id="e"),))


def test_every_error_is_reported_with_its_line_and_a_caret(cli: Cli, file: Write) -> None:
    subscriptions = file(
        "s.tsv", 'S1\tEnterprise/Holder where Nmae = "x"\nS2\tEnterprise\nS3\tEnterprise wher\n'
    )
    events = file("e.jsonl", '{"id": 1, "class": "Firm", "source": "x"}\n{"id": NaN}\n')
    outcome = cli("check", "agencies", subscriptions, events)
    assert outcome.status == 1
    assert outcome.out == (
        f"{subscriptions}:1: Enterprise/Holder has no property 'Nmae' (did you mean Name?)\n"
        '  S1 Enterprise/Holder where Nmae = "x"\n'
        "                             ^\n"
        f"{subscriptions}:3: expected 'from', 'where' or the end, found 'wher' "
        "(did you mean where?)\n"
        "  S3 Enterprise wher\n"
        "                ^\n"
        f"{events}:1: event 1: unknown class 'Firm' (known: Enterprise, Enterprise/Holder)\n"
        f"{events}:2: not JSON: unexpected character, expected a JSON value\n"
        '  {"id": NaN}\n'
        "         ^\n"
        "4 errors; fine: 1 subscription\n"
    )
    assert not outcome.err


def test_json_output_is_one_object_with_the_same_errors(cli: Cli, file: Write) -> None:
    path = file("s.tsv", "S1\tEnterprise\nS1\tEnterprise\n\tEnterprise\nS2\tFirm\n")
    outcome = cli("check", "--json", "agencies", path)
    assert outcome.status == 1
    assert outcome.json["ok"] is False
    assert outcome.json["checked"] == {
        "subscriptions": 1,
        "events": 0,
        "documents": 0,
        "schemas": 0,
    }
    errors = outcome.json["errors"]
    assert [error["line"] for error in errors] == [2, 3, 4]
    assert errors[2] == {
        "file": str(path),
        "line": 4,
        "column": 4,
        "problem": "unknown class 'Firm'",
        "remedy": "known: Enterprise, Enterprise/Holder",
    }


KINDS = [
    ("list.xml", write_subscriptions([("a", HOLDER), ("b", HOLDER)], AGENCIES), "2 subscriptions"),
    ("one", write_subscription(HOLDER, AGENCIES), "1 subscription"),
    ("event", write_event(EVENT, AGENCIES), "1 event"),
    ("document.xml", write_document(DOCUMENT, AGENCIES), "1 document"),
    ("schema.xml", write_schema(AGENCIES), "1 schema"),
    ("export", write_dtd(AGENCIES), "1 schema"),
    ("export.dtd", write_dtd(AGENCIES), "1 schema"),
    ("lines", b'\n{"id": 1, "class": "Enterprise", "source": "x"}\n', "1 event"),
    ("x.ndjson", b'{"id": 1, "class": "Enterprise", "source": "x"}', "1 event"),
    ("lines", "# a comment\r\n\r\n#1\tEnterprise\r\nS2\t⟨Enterprise⟩", "2 subscriptions"),
    ("{odd}.tsv", "{1}\tEnterprise", "1 subscription"),
    ("lines", b"\xef\xbb\xbfS1\tEnterprise", "1 subscription"),
    ("xml", b"x\t" + write_subscription(HOLDER, AGENCIES).replace(b"\n", b""), "1 subscription"),
    ("empty", b"", "nothing"),
    ("blank.jsonl", b"\n \n", "nothing"),
]


@pytest.mark.parametrize(("name", "content", "fine"), KINDS, ids=[f"{k[0]}-{k[2]}" for k in KINDS])
def test_kind_of_a_file_is_recognised(
    name: str, content: str | bytes, fine: str, cli: Cli, file: Write
) -> None:
    outcome = cli("check", "agencies", file(name, content))
    assert outcome.out == f"ok: {fine}\n"
    assert outcome.status == 0


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("s.tsv", b"no tab\n", ":1: no TAB between an id and a subscription"),
        ("s.tsv", b"\tEnterprise\n", ":1: no id before the TAB"),
        ("s.tsv", b"a\tEnterprise\na\tEnter\n", ":2: the id 'a' is given twice, first on line 1"),
        ("s.tsv", b"a\tEnt\na\tEnterprise\n", ":2: the id 'a' is given twice, first on line 1"),
        ("s.tsv", b"a\tEnterpr\xe8se\n", ":1: byte 0xE8 is not UTF-8"),
        ("s.tsv", b"a\t\n", ":1: expected a class, found the end"),
        ("s.tsv", b"a\tEnterprise where Code = 5\n", ":1: Enterprise.Code is a string"),
        ("e.jsonl", b"\n[1]\n", ":2: an event is a JSON object"),
        ("e.jsonl", b"{} {}", ":1: not JSON"),
        ("e.jsonl", b'{"id": "\xff"}', ":1: byte 0xFF is not UTF-8"),
        ("e.jsonl", b'{"id": 1, "source": "x"}', ":1: event 1: 'class' is missing"),
        (
            "e.jsonl",
            b'{"id": 1, "class": "Enterprise", "source": "x"}\n' * 2,
            ":2: the event id '1' is given twice, first on line 1",
        ),
        (
            "e.jsonl",
            b'{"id": 1, "class": "Enterprise", "source": "x", "data": {"Cod": "x"}}',
            "Enterprise has no property 'Cod' (did you mean Code?)",
        ),
        ("e.jsonl", b"[" * 10_000, ":1: not JSON: depth limit exceeded"),
        ("x.xml", b"", ":1: malformed XML"),
        ("x.xml", b"<html/>", "the root element is unknown"),
        ("x.xml", b"<?xml version='1.0'?>\n<!DOCTYPE x><x/>", ":2: a DOCTYPE is not accepted"),
        ("x.xml", b"<event", ":1: malformed XML"),
        ("x.xml", b"<event/>", ":1: the root element is 'event' in no namespace"),
        ("x.xml", b"<!-- \xff --><event/>", ":1: byte 0xFF is not UTF-8"),
        ("x.dtd", b"<!ELEMENT a EMPTY>", "no element d2q:document"),
    ],
)
def test_wrong_file_is_reported_without_a_stack_trace(
    name: str, content: bytes, found: str, cli: Cli, file: Write
) -> None:
    outcome = cli("check", "agencies", file(name, content))
    assert outcome.status == 1
    assert found in outcome.out
    assert "Traceback" not in outcome.out + outcome.err


def test_every_wrong_subscription_of_an_xml_list_is_reported(cli: Cli, file: Write) -> None:
    good = write_subscriptions([("a", HOLDER)], AGENCIES).decode()
    bad = (
        '<subscription id="b" class="Firm"/>\n<subscription id="a" class="Enterprise"/>\n'
        '<subscription id="c" class="Enterprise"><constraint attribute="Cod" operator="exists"/>'
        "</subscription>"
    )
    path = file("s.xml", good.replace("</subscriptions>", f"{bad}\n</subscriptions>"))
    outcome = cli("check", "agencies", path)
    assert outcome.status == 1
    for found in ("unknown class 'Firm'", "the id 'a' is given twice", "no property 'Cod'"):
        assert found in outcome.out
    assert outcome.out.endswith("3 errors; fine: 1 subscription\n")


def test_long_expressions_and_strings_are_rejected_with_short_messages(
    cli: Cli, file: Write
) -> None:
    terms = " and ".join(["Code exists"] * 10_000)
    megabyte = "x" * 1_000_000
    path = file(
        "s.tsv",
        f'terms\tEnterprise where {terms}\nstring\tEnterprise where Code = "{megabyte}"\n'
        f"{megabyte}\nname\t{megabyte[:200_000]}\nfine\tEnterprise\n",
    )
    event = '{{"id": "{}", "class": "Enterprise", "source": "x", "data": {{"Code": "{}"}}}}\n'
    events = file("e.jsonl", event.format(1, megabyte) + event.format(2, megabyte * 2))
    outcome = cli("check", "agencies", path, events)
    assert outcome.status == 1
    assert f"{path}:1: a list of more than 8,192 elements" in outcome.out
    assert f"{path}:2: a string of 1,000,000 characters" in outcome.out
    assert f"{path}:3: no TAB" in outcome.out
    assert f"{path}:4: unknown class" in outcome.out
    assert "a string of 1,000,000 characters" in outcome.out
    assert f"{events}:2: a line that is too long" in outcome.out
    assert outcome.out.endswith("6 errors; fine: 1 subscription\n")
    assert max(map(len, outcome.out.splitlines())) < 400


def test_missing_file_does_not_prevent_checks_of_other_files(cli: Cli, file: Write) -> None:
    path = file("s.tsv", "a\tEnterprise\nb\tFirm\n")
    outcome = cli("check", "agencies", "nowhere.tsv", path)
    assert outcome.status == 2
    assert outcome.err == "qns: error: nowhere.tsv: cannot be read: No such file or directory\n"
    assert f"{path}:2: unknown class" in outcome.out
    assert outcome.out.endswith("2 errors; fine: 1 subscription\n")
    as_json = cli("check", "agencies", "nowhere.tsv", path, "--json")
    assert as_json.status == 2
    assert [error["file"] for error in as_json.json["errors"]] == [str(path), "nowhere.tsv"]
    assert not as_json.err


def test_unknown_schema_is_an_error_and_wrong_schema_file_a_finding(cli: Cli, file: Write) -> None:
    unknown = cli("check", "agency")
    assert unknown.status == 2
    assert unknown.err.startswith("qns: error: unknown schema 'agency'")
    assert cli("check", "nowhere.dtd").status == 2
    wrong = file("s.xml", write_schema(AGENCIES).replace(b'"string"', b'"text"', 1))
    outcome = cli("check", wrong, "whatever")
    assert outcome.status == 1
    assert outcome.out.startswith(f"{wrong}:7: ")
    assert not outcome.err


def test_schema_file_works_like_a_shipped_schema(cli: Cli, file: Write) -> None:
    schema = file("mine.dtd", write_dtd(AGENCIES))
    assert cli("check", schema).out == "ok: 1 schema\n"
    subscriptions = file("s", b"a\tEnterprise\n")
    assert cli("check", schema, subscriptions).out == "ok: 1 subscription\n"


def test_standard_input_is_checked_like_a_file(cli: Cli) -> None:
    outcome = cli("check", "agencies", "-", stdin=b"a\tEnterprise\nb\n")
    assert "standard input:2: no TAB" in outcome.out


def test_caret_is_right_after_wide_characters_and_in_long_lines(cli: Cli, file: Write) -> None:
    path = file(
        "s.tsv",
        'a\tEnterprise where Code = "日本" and Cod exists\n'
        f'b\tEnterprise where Code = "{"x" * 500}" and Cod exists and Code != "{"y" * 500}"\n',
    )
    lines = cli("check", "agencies", path).out.splitlines()
    assert lines[1:3] == [
        '  a Enterprise where Code = "日本" and Cod exists',
        "                                       ^",
    ]
    assert lines[4].startswith("  …xxx")
    assert lines[4].endswith("yyy…")
    assert lines[4][lines[5].index("^") :].startswith("Cod exists")


def test_control_characters_are_escaped(cli: Cli, file: Write) -> None:
    path = file("s.tsv", b"\x1b[31mred\tEnterprise\n\x1b[31mred\tFirm\n\x1b]0;title\x07\n")
    outcome = cli("check", "agencies", path)
    assert outcome.status == 1
    assert "\x1b" not in outcome.out
    assert "\x07" not in outcome.out
