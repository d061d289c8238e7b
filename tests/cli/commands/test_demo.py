"""Tests of `qns demo`, with three real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import pytest

from qns.cli.demo import peers as demo_peers
from qns.cli.demo.scenario import EVENTS, SUBSCRIPTIONS
from tests.cli.conftest import ROOT, Cli

pytestmark = pytest.mark.slow

AGENCIES = ROOT / "examples" / "agencies"
DEMO = [sys.executable, "-m", "qns.cli", "demo"]
PLAIN_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
EXPECTED = """\
S1 ⊃ S2 ⊃ S3 ⊃ S4
INPS   U11 S1, U12 S2, U13 S3    M = {S1}
INAIL  U21 S3, U22 S4            M = {S3}
CoC    INPS → {S1}   INAIL → {S3}
INAIL  INPS → {S1}
INPS   INAIL → {S3}
sent once to INPS   → U11, U12, U13
sent once to INAIL  → U21            not U22: S4 excludes CoC
sent once to INPS   → U11, U12       not U13
erratum: the thesis prints U11 only, but e2 matches S2 of U12 too
U14 joins INPS with S2  M = {S1}   nothing is sent
U11 leaves INPS         M = {S2}   2 messages
changeSub to CoC     −{S1}  +{S2}
changeSub to INAIL   −{S1}  +{S2}
kill -9 of INAIL
INPS   U11  S1  e1 e2        left
INPS   U12  S2  e1 e2 e3 e4
INPS   U13  S3  e1 e3 e4
INPS   U14  S2  e3 e4
INAIL  U21  S3  e1 e3 e4
INAIL  U22  S4  nothing
changeSub: 6 messages instead of 13
notify:    3 messages instead of 6
"""


@pytest.fixture
def started(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts the demo as a process with its own folder for temporary files.

    Its locale is C; its output is UTF-8 nevertheless.
    """

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*DEMO, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **PLAIN_LOCALE, "TMPDIR": str(tmp_path), "COLUMNS": "80"},
        )

    return start


def running(folder: Path) -> list[int]:
    """Returns the ids of the processes that were started with a file in the folder."""
    listed = subprocess.run(["ps", "-Aww", "-o", "pid=,args="], capture_output=True, check=True)
    lines = listed.stdout.decode(errors="replace").splitlines()
    return [int(line.split()[0]) for line in lines if f"{folder}/" in line]


def test_example_files_have_the_inputs_of_the_demo() -> None:
    text = (AGENCIES / "subscriptions.tsv").read_text(encoding="utf-8")
    assert dict(line.split("\t") for line in text.splitlines() if "\t" in line) == SUBSCRIPTIONS
    events = (AGENCIES / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in events] == list(EVENTS)


def test_demo_plays_the_worked_case_and_a_crash_and_stops_its_peers(
    started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with started() as demo:
        out, err = demo.communicate()
    assert (demo.returncode, err) == (0, b"")
    shown = out.decode()
    for line in EXPECTED.splitlines():
        assert line in shown
    second_event = shown.partition("e2  ")[2].partition("\n\n")[0]
    assert second_event.count("sent once to") == 1
    lines = shown.splitlines()
    assert len(lines) <= 64
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    assert not list(tmp_path.iterdir())
    assert not running(tmp_path)


def test_kept_demo_prints_its_addresses_and_how_to_stop_it(
    started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with started("--keep") as demo:
        shown = demo.communicate()[0].decode()
    assert demo.returncode == 0
    numbers = [int(number) for number in shown.rpartition(" kill ")[2].partition(";")[0].split()]
    try:
        assert sorted(numbers) == sorted(running(tmp_path))
        addresses = re.findall(r"^ +(\w+) +http://(127\.0\.0\.1:\d+)/", shown, re.MULTILINE)
        for name, address in addresses:
            connection = HTTPConnection(address)
            connection.request("GET", "/health")
            assert json.loads(connection.getresponse().read())["organisation"] == name
            connection.close()
        assert len(addresses) == len(numbers) == 3
    finally:
        for number in numbers:
            os.kill(number, signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_stops_its_peers(
    started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, number: signal.Signals
) -> None:
    with started() as demo:
        assert demo.stdout is not None
        while b"Two events" not in demo.stdout.readline():
            assert demo.poll() is None
        assert len(running(tmp_path)) == 3
        demo.send_signal(number)
        err = demo.communicate()[1]
    assert (demo.returncode, err) == (130, b"")
    assert not running(tmp_path)


def test_failed_demo_prints_the_reason_and_stops_its_peers(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(demo_peers, "_TUNING", "[tunning]\n")
    outcome = cli("demo")
    assert outcome.status == 1
    assert "did not start" in outcome.err
    assert "did you mean tuning?" in outcome.err
    (folder,) = tmp_path.iterdir()
    assert f"the logs of the peers are in {folder}" in outcome.err
    assert not running(tmp_path)


def test_match_prints_the_matches_of_the_worked_case(cli: Cli) -> None:
    outcome = cli(
        *("match", "--schema", "agencies"),
        *("--subscriptions", AGENCIES / "subscriptions.tsv"),
        *("--events", AGENCIES / "events.jsonl"),
    )
    assert outcome.status == 0
    assert outcome.json_lines == [
        {"event": "e1", "matches": ["S1", "S2", "S3"]},
        {"event": "e2", "matches": ["S1", "S2"]},
    ]
