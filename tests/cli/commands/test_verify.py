"""Tests of `qns verify`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qns.client import Client
from qns.history.records import write_record
from tests.cli.conftest import ROOT, Cli
from tests.client.peers import PeerProcess, holder
from tests.history.builder import History

Write = Callable[[str, str | bytes], Path]

HOLDS = "examples/histories/holds.jsonl"
BROKEN = "examples/histories/broken.jsonl"


def lines(history: History) -> str:
    return "".join(map(write_record, history.records))


def test_history_that_keeps_all_rules_exits_with_status_0(cli: Cli) -> None:
    outcome = cli("verify", HOLDS)
    assert (outcome.status, outcome.err) == (0, "")
    table = outcome.out.splitlines()
    assert table[0].split() == ["rule", "checks", "violations"]
    assert [line.split()[-1] for line in table[1:10]] == ["0"] * 9


def test_violation_exits_with_status_1_and_prints_a_paragraph(cli: Cli) -> None:
    outcome = cli("verify", BROKEN)
    assert (outcome.status, outcome.err) == (1, "")
    (paragraph,) = (x for x in outcome.out.splitlines() if x.startswith("Liveness: "))
    assert "e1 of CoC" in paragraph
    assert "subscription U21 of INAIL" in paragraph


def test_only_the_selected_rules_decide(cli: Cli) -> None:
    outcome = cli("verify", BROKEN, "--rule", "NO-GAP", "--rule", "fifo")
    assert outcome.status == 0
    assert "Liveness" not in outcome.out
    assert cli("verify", BROKEN, "--rule", "liveness").status == 1


def test_unknown_rule_is_answered_with_a_near_miss(cli: Cli) -> None:
    outcome = cli("verify", BROKEN, "--rule", "minimalty")
    assert (outcome.status, outcome.out) == (2, "")
    assert "did you mean Minimality?" in outcome.err


def test_json_output_is_one_object(cli: Cli) -> None:
    stdin = (ROOT / BROKEN).read_bytes()
    outcome = cli("verify", "--json", "-", stdin=stdin)
    assert outcome.status == 1
    verdict = outcome.json
    assert verdict["ok"] is False
    assert verdict["rules"]["Liveness"] == {"checks": 3, "violations": 1}
    assert verdict["counts"]["records"] == len(stdin.splitlines())
    (violation,) = verdict["violations"]
    assert violation["rule"] == "Liveness"
    assert violation["records"] == [10, 11, 13, 29]
    only = cli("verify", "--json", "--rule", "FIFO", "-", stdin=stdin)
    assert (only.status, only.json["ok"], only.json["violations"]) == (0, True, [])
    assert list(only.json["rules"]) == ["FIFO"]


def test_missing_delivery_is_reported(cli: Cli, file: Write) -> None:
    history = History("P", "F", "R").pub("P", "e1").take("F", "P", 1, "e1")
    history.promise("F", "R", "P", "e1").lull("P")
    path = file("h.jsonl", lines(history))
    outcome = cli("verify", path, "--rule", "custody")
    assert outcome.status == 1
    assert "Custody: F took event e1 of P in custody for R at 3 s (record 7)" in outcome.out
    assert cli("verify", path, "--rule", "liveness").status == 0


def test_violations_beyond_the_limit_are_counted(cli: Cli, file: Write) -> None:
    history = History("A", "B").pub("B", "e1")
    for number in range(25):
        history.ntfy("A", f"U{number}", "B", "e1")
    outcome = cli("verify", file("h.jsonl", lines(history)))
    assert outcome.status == 1
    assert outcome.out.count("Legality: A committed") == 20
    assert "Legality: 5 more\n" in outcome.out


def test_events_that_are_counted_apart_are_printed_apart(cli: Cli, file: Write) -> None:
    history = History("A", "B").sub("A", "U1").stable("A", "U1", "B").pub("B", "e1")
    history.cross("B", "A", 1, "e1").skip("A", "B", 1, 1).pub("B", "e2").restore("B", 5.0).calm()
    outcome = cli("verify", file("h.jsonl", lines(history)))
    assert outcome.status == 0
    assert "; apart: 1 lost by a restore, 1 skipped, 1 excused\n" in outcome.out


def test_history_without_calm_names_the_rules_not_judged(cli: Cli, file: Write) -> None:
    outcome = cli("verify", file("h.jsonl", lines(History("A"))))
    assert outcome.status == 0
    assert "never calm: Liveness and Completeness were not judged" in outcome.out
    assert "never calm" not in cli("verify", HOLDS).out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the first record is not the schema"),
        (b'{"t": 1, "do": "calm"}\n', ":1: record 1: the first record is not the schema"),
        (b"\n\n{\n", ":3: not JSON"),
        (b"\xff\n", ":1: byte 0xFF is not UTF-8"),
        (lines(History("A")).encode() + b'{"t": 1, "do": "calmed"}', ":3: unknown record 'calmed'"),
        (
            lines(History("A").sub("A", "U1", "Thing wher Count > 3")).encode(),
            ":3: record 3: the text of subscription U1, column 7: expected 'from'",
        ),
    ],
)
def test_wrong_history_exits_with_status_2_and_its_line(
    content: bytes, words: str, cli: Cli, file: Write
) -> None:
    path = file("h.jsonl", content)
    outcome = cli("verify", path)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"qns: error: {path}")
    assert words in outcome.err


def test_error_is_json_with_the_json_option(cli: Cli, file: Write) -> None:
    path = file("h.jsonl", lines(History("A")) + '{"t": 1}\n')
    outcome = cli("verify", "--json", path)
    assert (outcome.status, outcome.out) == (2, "")
    assert f'"file": "{path}", "line": 3' in outcome.err


def test_missing_file_exits_with_status_2(cli: Cli) -> None:
    outcome = cli("verify", "nothing.jsonl")
    assert (outcome.status, outcome.out) == (2, "")
    assert "nothing.jsonl: cannot be read" in outcome.err


def test_blank_lines_and_carriage_returns_are_accepted(cli: Cli, file: Write) -> None:
    content = (ROOT / HOLDS).read_bytes().replace(b"\n", b"\r\n\r\n")
    assert cli("verify", file("h.jsonl", content)).out == cli("verify", HOLDS).out


def test_control_characters_of_a_history_are_escaped(cli: Cli, file: Write) -> None:
    history = History("A", "B").ntfy("A", "\x1b[31mU1\n", "B", "\x07")
    outcome = cli("verify", file("h.jsonl", lines(history)))
    assert outcome.status == 1
    assert "\x1b" not in outcome.out
    assert "\x07" not in outcome.out
    assert "\\x1b[31mU1\\n" in outcome.out


def test_history_of_a_peer_with_limited_queues_declares_every_drop(
    cli: Cli, file: Write, tmp_path: Path
) -> None:
    """A limit of two and five events: without the records of the drops, a rule is broken."""
    peer = PeerProcess(tmp_path, settings="history = true\n[tuning]\nlongest_queue = 2\n")
    try:
        peer.start()
        with Client(peer.url, "ann") as client:
            client.subscribe("Enterprise/Holder", id="s")
            for number in range(1, 6):
                client.publish(holder(f"e{number}"))
            assert cli("pull", "s", "--peer", peer.url, "--owner", "ann", "--ack").status == 0
    finally:
        peer.stop()
    history = cli("history", tmp_path / "INPS.db").out
    held = cli("verify", file("declared.jsonl", history))
    assert held.status == 0
    assert "5 notifications; apart: 3 dropped from queues\n" in held.out
    lines = [line for line in history.splitlines() if '"overflow"' not in line]
    silent = cli("verify", file("silent.jsonl", "\n".join(lines)))
    assert silent.status == 1
    assert "No gap: INPS removed 0 deliveries of subscription s" in silent.out
