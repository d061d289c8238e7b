"""Tests of the `qns` process: exit statuses, streams, terminals and signals."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qns import __version__
from qns.cli.main import main
from tests.cli.conftest import ROOT, Cli

QNS = [sys.executable, "-m", "qns.cli"]
CONTAINS = [*QNS, "contains", "--schema", "agencies", "Enterprise", "Enterprise/Holder"]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}


def on_a_terminal(
    command: list[str], *, only_errors: bool = False, **environment: str
) -> tuple[int, bytes]:
    """Runs a command with its output, or only its errors, on a pseudo-terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if only_errors else follower,
        stderr=follower,
        cwd=ROOT,
        env={**ENVIRONMENT, "TERM": "xterm-256color", **environment},
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(leader)
    return process.returncode, shown


def run(
    command: list[str], *, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env={**ENVIRONMENT, **environment},
        timeout=120,
        check=False,
    )


def started_in_own_group(*words: str) -> subprocess.Popen[bytes]:
    """Starts qns as the shell does: as a group of processes, which Ctrl-C interrupts."""
    return subprocess.Popen(
        [*QNS, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=ENVIRONMENT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_version_and_help_are_printed(cli: Cli) -> None:
    assert cli("--version") == (0, f"qns {__version__}\n", "")
    assert cli("--help").out.startswith("usage: qns")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["match"],
        ["check"],
        ["--nothing"],
        ["contains", "--schema", "agencies", "x"],
    ],
)
def test_wrong_usage_exits_with_status_2(arguments: list[str], cli: Cli) -> None:
    outcome = cli(*arguments)
    assert outcome.status == 2
    assert outcome.err.startswith("usage: ")
    assert not outcome.out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["mtach"], "qns: error: unknown command 'mtach' (did you mean match or watch?)"),
        (["subscrib", "Enterprise"], "unknown command 'subscrib' (did you mean subscribe or "),
        (["peer", "chek", "x.toml"], "qns peer: error: unknown command 'chek' (did you mean check"),
        (["pipeline", "macth"], "unknown command 'macth' (did you mean match?)"),
        (["zzzzzz"], "qns: error: unknown command 'zzzzzz' (see qns --help)"),
        (["peer", "zzzzzz"], "qns peer: error: unknown command 'zzzzzz' (see qns peer --help)"),
    ],
)
def test_mistyped_command_is_answered_with_near_misses(
    words: list[str], problem: str, cli: Cli
) -> None:
    outcome = cli(*words)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("usage: ")
    assert problem in outcome.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["renew", "s", "--fro", "30d"],
            "qns renew: error: unknown argument '--fro' (did you mean --for?)",
        ),
        (
            ["pull", "s", "--zzzzzz", "5"],
            "qns pull: error: unknown argument '--zzzzzz' (see qns pull --help)",
        ),
        (
            ["peer", "status", "a.toml", "b.toml"],
            "unknown argument 'b.toml' (see qns peer status --help)",
        ),
    ],
)
def test_unknown_argument_is_answered_by_its_command(
    words: list[str], problem: str, cli: Cli
) -> None:
    outcome = cli(*words)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"usage: qns {words[0]} ")
    assert problem in outcome.err


def test_script_and_module_print_the_same(tmp_path: Path) -> None:
    done = run(CONTAINS)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"yes: every event that matches B matches A\n"
    script = Path(sys.executable).with_name("qns")
    assert run([str(script), *CONTAINS[3:]]).stdout == done.stdout


def test_output_is_coloured_only_on_terminals_that_support_it() -> None:
    assert b"\x1b[" in on_a_terminal(CONTAINS)[1]
    assert b"\x1b" not in on_a_terminal(CONTAINS, NO_COLOR="1")[1]
    assert b"\x1b" not in on_a_terminal(CONTAINS, TERM="dumb")[1]
    assert b"\x1b" not in run(CONTAINS, FORCE_COLOR="1", CLICOLOR_FORCE="1").stdout
    assert b"\x1b" not in on_a_terminal([*CONTAINS, "--json"])[1]


@pytest.mark.slow
def test_demo_is_coloured_on_a_terminal() -> None:
    status, shown = on_a_terminal([*QNS, "demo"], COLUMNS="80")
    assert status == 0
    assert b"\x1b[" in shown


def test_progress_is_shown_on_a_terminal_and_not_in_the_output(tmp_path: Path) -> None:
    event = '{"id": 1, "class": "Report/Wind", "source": "Met03", "data": {"Speed": 3}}\n'
    events = tmp_path / "events.jsonl"
    events.write_text(event * 2_000, encoding="utf-8")
    words = ["match", "--schema", "weather", "--events", str(events)]
    words += ["--subscriptions", "examples/weather/subscriptions.tsv"]
    status, shown = on_a_terminal([*QNS, *words], only_errors=True)
    assert status == 0
    assert b"matching events" in shown
    done = run([*QNS, *words])
    assert done.stderr == b""
    assert done.stdout == b'{"event":1,"matches":["all-wind"]}\n' * 2_000


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1"])
def test_output_is_utf8_in_every_locale(locale: str, tmp_path: Path) -> None:
    """The tests of the demo, which starts three peers, run it in the locale C."""
    text = 'Enterprise where EntName = "Società ⊃"'
    path = tmp_path / "subscriptions.tsv"
    path.write_text(f"S1\t{text}\n", encoding="utf-8")
    words = ["merge", "--schema", "agencies", str(path)]
    done = run([*QNS, *words], LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0
    assert text in done.stdout.decode("utf-8")


def test_broken_pipe_exits_with_status_141_without_message(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"id": 1, "class": "Report", "source": "x"}\n' * 100_000, encoding="utf-8")
    match = "match --schema weather --subscriptions examples/weather/subscriptions.tsv --events"
    for words in (f"{match} {events}", f"check agencies {events}"):
        script = f'"{sys.executable}" -m qns.cli {words} | head -1; echo "${{PIPESTATUS[0]}}"'
        done = run(["bash", "-c", script])
        assert done.stderr == b""
        assert done.stdout.endswith(b"\n141\n")


def test_full_disk_is_reported() -> None:
    script = f'"{sys.executable}" -m qns.cli demo > /dev/full'
    done = run(["bash", "-c", script])
    assert done.returncode == 2
    assert done.stderr == b"qns: error: cannot write: No space left on device\n"


def test_closed_streams_cause_no_stack_trace() -> None:
    done = run(["bash", "-c", f'"{sys.executable}" -m qns.cli demo >&-'])
    assert (done.returncode, done.stderr) == (0, b"")
    done = run(["bash", "-c", f'"{sys.executable}" -m qns.cli schema nothing >&- 2>&-'])
    assert done.returncode == 2
    done = run(["bash", "-c", f'"{sys.executable}" -m qns.cli check weather - <&-'])
    assert done.returncode == 2
    assert done.stderr == b"qns: error: standard input: cannot be read: it is closed\n"


def test_interruption_exits_with_status_130_without_message() -> None:
    words = ["match", "--schema", "weather", "--events", "-"]
    words += ["--subscriptions", "examples/weather/subscriptions.tsv"]
    with subprocess.Popen(
        [*QNS, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"id": 1, "class": "Report", "source": "x"}\n')
        process.stdin.flush()
        # The answer comes before the end of the input, because events are matched as they arrive.
        assert process.stdout.readline() == b'{"event":1,"matches":[]}\n'
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.returncode == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_endless_line_is_read_in_bounded_memory(tmp_path: Path) -> None:
    endless = tmp_path / "endless.jsonl"
    with endless.open("wb") as file:
        file.write(b'{"id": 1, "class": "Report", "source": "x"}\n{"id": "')
        file.truncate(1_000_000_000)  # a sparse file: the zeros take no disk space
        file.seek(0, os.SEEK_END)
        file.write(b'"}\n{"id": 2, "class": "Report", "source": "x"}\n')

    def limit_memory() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (400_000_000, 400_000_000))

    done = subprocess.run(
        [*QNS, "check", "weather", str(endless)],
        capture_output=True,
        cwd=ROOT,
        preexec_fn=limit_memory,
        check=False,
    )
    assert done.stderr == b""
    assert done.stdout.decode() == (
        f"{endless}:2: a line that is too long (at most 1,048,576 bytes)\n1 error; fine: 2 events\n"
    )


def test_main_without_arguments_uses_sys_argv(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["qns", "schemas"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("agencies")
