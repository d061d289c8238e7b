"""The users' commands, end to end: real processes that talk to a real peer."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import pytest

from qns.cli import publish as publish_command
from qns.cli.main import main
from qns.client import Client
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.schema_files import load_schema
from tests.cli.conftest import ROOT, Cli
from tests.cli.test_main import ENVIRONMENT, QNS
from tests.cli.test_transcripts import help_examples
from tests.client.peers import PeerProcess, holder

USERS_COMMANDS = ("subscribe", "unsubscribe", "subscriptions", "publish", "pull", "watch")


@pytest.fixture(scope="module")
def coc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerProcess]:
    process = PeerProcess(tmp_path_factory.mktemp("coc"), "CoC")
    try:
        process.start()
        yield process
    finally:
        process.kill()


@pytest.fixture
def owner() -> str:
    return f"user-{uuid4().hex[:8]}"


@pytest.fixture
def at_coc(coc: PeerProcess, owner: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """The environment says which peer and who asks; a client to look behind the commands."""
    monkeypatch.setenv("QNS_PEER", coc.url)
    monkeypatch.setenv("QNS_OWNER", owner)
    with Client(coc.url, owner) as client:
        yield client


def event(id: str, mark: str, **more: Any) -> dict[str, Any]:
    data = {"Name": "M. Mecalla", "FiscalCode": mark}
    return holder(f"{id}-{mark}", **{"source": "CoC", "data": data, **more})


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in events)


def started(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*QNS, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ,
    )


def ended(process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> tuple[int, bytes]:
    """Interrupts it; its status, and what it had left to say on standard error."""
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_the_story_of_a_user(coc: PeerProcess, owner: str, tmp_path: Path) -> None:
    def qns(*words: str) -> str:
        done = subprocess.run(
            [*QNS, *words, "--peer", coc.url, "--owner", owner],
            capture_output=True,
            cwd=ROOT,
            env=ENVIRONMENT,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    file = tmp_path / "events.jsonl"
    file.write_bytes(lines(event("e1", owner), event("e2", owner, previous={"Name.accuracy": 1})))
    text = f'Enterprise/Holder where FiscalCode = "{owner}"'
    assert qns("subscribe", text, "--id", owner) == f"subscribed as {owner}\n"
    assert qns("subscribe", text, "--id", owner) == f"subscribed as {owner}\n"
    assert qns("publish", str(file)) == "published 2 events\n"
    assert qns("publish", str(file)) == "published 2 events; 2 of them had been published before\n"
    assert qns("subscriptions").splitlines()[1].split() == [
        *(owner, "2", "2", "0", "active"),
        *text.split(),
    ]
    first, second = qns("pull", owner).splitlines()
    assert first == (
        f"1    CoC e1-{owner}  Enterprise/Holder  Name.accuracy 0.3"
        f'  Name "M. Mecalla", FiscalCode "{owner}"'
    )
    assert "Name.accuracy 1.0 → 0.3" in second
    assert qns("pull", owner, "--after", "1") == f"{second}\n"
    assert qns("pull", owner, "--limit", "1", "--ack") == f"{first}\n"
    assert qns("pull", owner, "--ack") == f"{second}\n"
    assert qns("pull", owner) == "nothing was delivered\n"
    assert qns("unsubscribe", owner) == f"unsubscribed {owner}\n"
    assert qns("subscriptions") == f"{owner} has no subscriptions\n"


def test_json_for_programs(at_coc: Client, owner: str, cli: Cli) -> None:
    made = cli("subscribe", "Enterprise/Holder", "--json", "--for", "2h", "--group", owner).json
    assert made["pending"] == []
    assert made["expires"].endswith("Z")
    (listed,) = cli("subscriptions", "--json").json_lines
    assert (listed["id"], listed["group"], listed["waiting"]) == (made["id"], owner, 0)
    published = cli("publish", "-", "--json", stdin=lines(event("e1", owner))).json
    assert published == {"event": f"e1-{owner}", "sentTo": [], "again": False}
    pulled = cli("pull", made["id"], "--json", "--schema", "agencies").json
    assert pulled["number"] == 1
    assert pulled["event"]["quality"] == {"Enterprise/Holder.Name.accuracy": 0.3}
    assert EventReader(load_schema("agencies")).from_fields(pulled["event"])
    assert cli("unsubscribe", made["id"], "--json").json == {"id": made["id"], "dropped": 1}


def test_a_subscription_may_come_from_standard_input(at_coc: Client, cli: Cli) -> None:
    assert cli("subscribe", "-", stdin=b"Enterprise\n").status == 0
    (listed,) = at_coc.subscriptions()
    assert listed.text == "Enterprise\n"


def test_wrong_events_are_told_and_the_others_published(
    at_coc: Client, owner: str, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "events.jsonl"
    bad = [event("e2", owner, source="INPS"), event("e3", owner, data={"Nmae": "x"})]
    file.write_bytes(lines(event("e1", owner), *bad) + b"{oops\n\n" + lines(event("e4", owner)))
    outcome = cli("publish", file)
    assert outcome.status == 2
    assert outcome.out == "published 2 events; 3 refused\n"
    told = [line for line in outcome.err.splitlines() if line.startswith("qns: error: ")]
    assert [line.partition(f"{file}:")[2].partition(":")[0] for line in told] == ["2", "3", "4"]
    assert "CoC cannot publish for INPS" in told[0]
    assert "no property 'Nmae' (did you mean Name" in told[1]


def test_an_event_in_xml_is_published(at_coc: Client, owner: str, cli: Cli, tmp_path: Path) -> None:
    schema = load_schema("agencies")
    file = tmp_path / "event.xml"
    file.write_bytes(write_event(EventReader(schema).from_fields(event("x1", owner)), schema))
    id = at_coc.subscribe("Enterprise/Holder").id
    assert cli("publish", file).out == "published 1 event\n"
    assert [each.id for each in at_coc.pull(id)] == [f"x1-{owner}"]
    file.write_bytes(b"<event xmlns='urn:qns:d2q:1'/>")
    outcome = cli("publish", file)
    assert (outcome.status, outcome.out) == (2, "published 0 events; 1 refused\n")
    assert outcome.err.startswith(f"qns: error: {file}:1: ")


@pytest.mark.parametrize("other", ["federation.xml", "subscriptions.xml"])
def test_xml_that_is_no_event_is_one_mistake(
    at_coc: Client, cli: Cli, tmp_path: Path, other: str
) -> None:
    root = other.removesuffix(".xml")
    (tmp_path / other).write_text(f"<{root} xmlns='urn:qns:d2q:1'>\n<a/>\n</{root}>\n", "utf-8")
    outcome = cli("publish", tmp_path / other)
    assert (outcome.status, outcome.out) == (2, "published 0 events; 1 refused\n")
    assert outcome.err.count("qns: error: ") == 1
    assert at_coc.subscriptions() == ()


def test_publishing_tells_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(publish_command, "_PATIENCE_S", 0.0)
    peer = PeerProcess(tmp_path, "CoC")
    peer.start()
    readable, writable = os.pipe()
    try:
        with Client(peer.url, "maria") as client:
            id = client.subscribe("Enterprise/Holder").id

            def write() -> None:
                os.write(writable, lines(event("e1", "x")))
                client.pull(id, wait_s=60)
                peer.kill()
                os.write(writable, lines(event("e2", "x"), event("e3", "x")))
                os.close(writable)

            writing = Thread(target=write)
            writing.start()
            with os.fdopen(readable, "r", encoding="utf-8") as stdin:
                monkeypatch.setattr("sys.stdin", stdin)
                status = main(["publish", "-", "--peer", peer.url])
            writing.join()
    finally:
        peer.kill()
    out, err = capsys.readouterr()
    assert (status, out) == (2, "published 1 event\n")
    assert err.startswith("qns: error: standard input:2: no answer from the peer")
    assert "this line and what follows is not published" in err
    assert "give the same command again" in err


def test_watch_follows_a_subscription_until_it_is_interrupted(tmp_path: Path) -> None:
    peer = PeerProcess(tmp_path, "CoC")
    peer.start()
    try:
        with Client(peer.url, "maria") as client:
            client.subscribe("Enterprise/Holder", id="bad-names")
            client.publish(event("e1", "x"))
            watching = started("watch", "bad-names", "--peer", peer.url, "--owner", "maria")
            assert watching.stdout is not None
            assert watching.stderr is not None
            assert watching.stderr.readline() == b"watching bad-names; Ctrl-C ends it\n"
            assert watching.stdout.readline().startswith(b"1    CoC e1-x  Enterprise/Holder")
            peer.kill()
            assert b"waiting for it" in watching.stderr.readline()
            peer.start()
            assert watching.stderr.readline() == b"the peer is back\n"
            client.publish(event("e2", "x"))
            assert watching.stdout.readline().startswith(b"2    CoC e2-x")
            while client.pull("bad-names"):  # what was printed is acknowledged
                assert watching.poll() is None
            assert ended(watching) == (0, b"")
    finally:
        peer.kill()


def test_watch_subscribes_for_as_long_as_it_runs(at_coc: Client, owner: str) -> None:
    watching = started("watch", f"Enterprise/Holder where FiscalCode = '{owner}'", "--json")
    assert watching.stdout is not None
    while not at_coc.subscriptions():
        assert watching.poll() is None
    at_coc.publish(event("e1", owner))
    shown = json.loads(watching.stdout.readline())
    assert (shown["number"], shown["event"]["id"]) == (1, f"e1-{owner}")
    assert ended(watching) == (0, b"")
    assert at_coc.subscriptions() == ()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["pull", "bad-naems"], "unknown subscription 'bad-naems' (did you mean bad-names?)"),
        (["unsubscribe", "nothing"], "unknown subscription 'nothing'"),
        (["pull", "bad-names", "--limit", "-1"], "--limit is negative"),
        (["watch", "bad-naems"], "unknown class 'bad-naems'"),
        (["subscribe", "Enterprise/Holder where Nmae = 'x'"], "(did you mean Name?)"),
        (["subscriptions", "--peer", "http://127.0.0.1:1/"], "(start it with qns peer run"),
        (["subscriptions", "--peer", "https://127.0.0.1:1/"], "only http is spoken yet"),
        (["publish", "nothing.jsonl"], "nothing.jsonl: cannot be read"),
        (["publish", "examples/agencies/events.jsonl", "--peer", "http://127.0.0.1:1/"], "refused"),
    ],
)
def test_errors_name_the_thing_and_the_remedy(
    words: list[str], problem: str, coc: PeerProcess, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QNS_PEER", coc.url)
    monkeypatch.setenv("QNS_OWNER", "errors")
    with Client(coc.url, "errors") as client:
        client.subscribe("Enterprise", id="bad-names")
        outcome = cli(*words)
    assert outcome.status == 2
    assert problem in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("time", ["30", "d", "0s", "-1d", "1y", "1e9s"])
def test_a_wrong_duration_is_wrong_usage(time: str, cli: Cli) -> None:
    outcome = cli("subscribe", "Enterprise", f"--for={time}")
    assert outcome.status == 2
    assert "write it as 90s, 45m, 12h, 30d or 2w" in outcome.err


@pytest.mark.parametrize("command", USERS_COMMANDS)
def test_the_examples_of_the_help_work_at_a_peer(
    command: str, at_coc: Client, coc: PeerProcess, owner: str, cli: Cli
) -> None:
    id = f"bad-names-{owner}"  # nobody may use an id again, and the tests share a peer
    if command != "subscribe":
        at_coc.subscribe("Enterprise/Holder", id=id)
    examples = help_examples(cli(command, "--help").out)
    assert examples
    for example in examples:
        example = example.replace("http://127.0.0.1:8703/", coc.url).replace("bad-names", id)
        words, _, stdin = example.replace("--owner maria", f"--owner {owner}").partition(" < ")
        if command == "watch":
            watching = started(*shlex.split(words)[1:])
            while "qns_pulls_waiting 0.0" in urlopen(f"{coc.url}metrics").read().decode():
                assert watching.poll() is None
            if "--json" not in words:
                assert watching.stderr is not None
                assert watching.stderr.readline().startswith(b"watching ")
            assert ended(watching) == (0, b"")
            continue
        given = (ROOT / stdin).read_bytes() if stdin else b""
        outcome = cli(*shlex.split(words)[1:], stdin=given)
        assert (outcome.status, outcome.err) == (0, ""), example
        assert outcome.out or "--json" in words
