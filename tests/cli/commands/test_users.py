"""Tests of the users' commands, end to end with a real peer."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import time
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import pytest

from qns.cli.commands import publish as publish_command
from qns.cli.commands import watch
from qns.cli.main import main
from qns.client import Client
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.schema_files import load_schema
from tests.cli.conftest import ROOT, Cli
from tests.cli.test_main import ENVIRONMENT, QNS
from tests.cli.test_transcripts import help_examples
from tests.client.peers import PeerProcess, holder, running_peer

USERS_COMMANDS = (
    *("subscribe", "unsubscribe", "subscriptions", "pause", "resume", "renew"),
    *("publish", "pull", "watch"),
)


@pytest.fixture(scope="module")
def coc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerProcess]:
    with running_peer(tmp_path_factory.mktemp("coc"), "CoC") as process:
        yield process


@pytest.fixture
def owner() -> str:
    return f"user-{uuid4().hex[:8]}"


@pytest.fixture
def at_coc(coc: PeerProcess, owner: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Sets the peer and the owner in the environment. Yields a client for checks."""
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
    """Interrupts a process. Returns its status and the rest of its standard error."""
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_user_subscribes_publishes_pulls_and_unsubscribes(
    coc: PeerProcess, owner: str, tmp_path: Path
) -> None:
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


def test_commands_print_json_with_the_json_option(at_coc: Client, owner: str, cli: Cli) -> None:
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
    after = cli("pull", made["id"], "--after", pulled["cursor"])
    assert after.out == f"nothing was delivered after {pulled['cursor']}\n"
    refused = cli("pull", made["id"], "--after", "1@0123456789abcdef")
    assert refused.status == 2
    assert f"subscription {made['id']} has had 1 deliveries, the cursor is at 1" in refused.err
    assert cli("unsubscribe", made["id"], "--json").json == {"id": made["id"], "dropped": 1}


def test_user_pauses_resumes_and_renews(at_coc: Client, owner: str, cli: Cli) -> None:
    at_coc.subscribe(f'Enterprise/Holder where FiscalCode = "{owner}"', id=owner)
    assert cli("pause", owner).out == f"paused {owner}\n"
    at_coc.publish(event("e1", owner))
    assert (at_coc.pull(owner), at_coc.subscriptions()[0].paused) == ([], True)
    assert "is paused already" in cli("pause", owner).err
    assert cli("resume", owner, "--json").json == {"id": owner, "paused": False}
    assert [each.id for each in at_coc.pull(owner)] == [f"e1-{owner}"]
    assert cli("renew", owner, "--for", "2h").out.startswith(f"renewed {owner}, ends 2")
    assert at_coc.subscriptions()[0].expires_at < time() + 7200
    assert cli("renew", owner).out == f"renewed {owner}, does not end\n"
    assert cli("renew", owner, "--json").json == {"id": owner, "expires": None}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerProcess]:
    """A peer whose queues hold two deliveries."""
    folder = tmp_path_factory.mktemp("limited")
    process = PeerProcess(folder, "CoC", "[tuning]\nlongest_queue = 2\n")
    try:
        process.start()
        yield process
    finally:
        process.kill()


def overflow(client: Client) -> str:
    id = client.subscribe("Enterprise/Holder").id
    for number in range(1, 6):
        client.publish(holder(f"{id}-{number}", source="CoC"))
    return id


def test_pull_reports_the_numbers_that_a_limit_dropped(
    cli: Cli, limited: PeerProcess, owner: str
) -> None:
    peer = ("--peer", limited.url, "--owner", owner)
    with Client(limited.url, owner) as client:
        id = overflow(client)
        shown = cli("pull", id, *peer)
        assert [line.split()[0] for line in shown.out.splitlines()] == ["4", "5"]
        assert shown.err == (
            f"warning: deliveries 1 to 3 of subscription {id} were dropped: they were not read, "
            "and the operator's limit was reached\n"
        )
        as_json = cli("pull", id, *peer, "--json", "--ack")
        assert as_json.json_lines[0] == {"dropped": {"first": 1, "last": 3}}
        assert [each["number"] for each in as_json.json_lines[1:]] == [4, 5]
        again = cli("pull", id, *peer)
        assert (again.out, again.err) == ("nothing was delivered\n", "")


def test_watch_reports_the_numbers_that_a_limit_dropped(limited: PeerProcess, owner: str) -> None:
    with Client(limited.url, owner) as client:
        id = overflow(client)
        process = started("watch", id, "--peer", limited.url, "--owner", owner, "--json")
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert ended(process) == (0, b"")
        assert lines[0] == {"dropped": {"first": 1, "last": 3}}
        assert [each["number"] for each in lines[1:]] == [4, 5]


def test_pull_goes_on_after_half_a_mebibyte_until_its_limit(
    at_coc: Client, owner: str, cli: Cli
) -> None:
    at_coc.subscribe(f'Enterprise/Holder where FiscalCode = "{owner}"', id=owner)
    for number in range(12):  # 60 kB each, of which one answer has at most 512 KiB
        data = {"Name": "x" * 60_000, "FiscalCode": owner}
        at_coc.publish(event(f"e{number}", owner, data=data))
    assert len(at_coc.pull(owner, limit=100_000)) < 12
    pulled = cli("pull", owner, "--limit", "100000", "--json").json_lines
    assert [each["number"] for each in pulled] == list(range(1, 13))
    assert len(cli("pull", owner, "--limit", "11", "--ack", "--json").json_lines) == 11
    assert [each.number for each in at_coc.pull(owner)] == [12]


def test_subscribe_warns_of_a_source_that_is_no_member(
    at_coc: Client, owner: str, cli: Cli
) -> None:
    warning = "the source 'Coc' is not a member of agencies (did you mean CoC?)"
    outcome = cli("subscribe", "Enterprise from Coc", "--id", owner)
    assert outcome.out == f"subscribed as {owner}\nwarning: {warning}\n"
    made = cli("subscribe", "Enterprise from Coc", "--id", owner, "--json").json
    assert made["warnings"] == [warning]
    assert at_coc.subscribe("Enterprise from CoC").warnings == ()


def test_subscription_is_read_from_standard_input(at_coc: Client, cli: Cli) -> None:
    assert cli("subscribe", "-", stdin=b"Enterprise\n").status == 0
    (listed,) = at_coc.subscriptions()
    assert listed.text == "Enterprise\n"


def test_wrong_events_are_reported_and_the_others_published(
    at_coc: Client, owner: str, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "events.jsonl"
    bad = [event("e2", owner, source="INPS"), event("e3", owner, data={"Nmae": "x"})]
    file.write_bytes(lines(event("e1", owner), *bad) + b"{oops\n\n" + lines(event("e4", owner)))
    outcome = cli("publish", file)
    assert outcome.status == 2
    assert outcome.out == "published 2 events; 3 refused\n"
    found = [line for line in outcome.err.splitlines() if line.startswith("qns: error: ")]
    assert [line.partition(f"{file}:")[2].partition(":")[0] for line in found] == ["2", "3", "4"]
    assert "CoC cannot publish for INPS" in found[0]
    assert "no property 'Nmae' (did you mean Name" in found[1]


def test_event_in_xml_is_published(at_coc: Client, owner: str, cli: Cli, tmp_path: Path) -> None:
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
def test_xml_that_is_no_event_is_reported_once(
    at_coc: Client, cli: Cli, tmp_path: Path, other: str
) -> None:
    root = other.removesuffix(".xml")
    (tmp_path / other).write_text(f"<{root} xmlns='urn:qns:d2q:1'>\n<a/>\n</{root}>\n", "utf-8")
    outcome = cli("publish", tmp_path / other)
    assert (outcome.status, outcome.out) == (2, "published 0 events; 1 refused\n")
    assert outcome.err.count("qns: error: ") == 1
    assert at_coc.subscriptions() == ()


def test_publish_reports_where_it_stopped(
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


def test_watch_prints_deliveries_until_it_is_interrupted(tmp_path: Path) -> None:
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


def test_watch_with_a_text_subscribes_while_it_runs(at_coc: Client, owner: str) -> None:
    watching = started("watch", f"Enterprise/Holder where FiscalCode = '{owner}'", "--json")
    assert watching.stdout is not None
    while not at_coc.subscriptions():
        assert watching.poll() is None
    at_coc.publish(event("e1", owner))
    shown = json.loads(watching.stdout.readline())
    assert (shown["number"], shown["event"]["id"]) == (1, f"e1-{owner}")
    assert ended(watching) == (0, b"")
    assert at_coc.subscriptions() == ()


def test_subscription_of_a_killed_watch_ends_within_ten_minutes(at_coc: Client) -> None:
    watching = started("watch", "Enterprise/Holder")
    assert watching.stderr is not None
    assert watching.stderr.readline().startswith(b"watching ")
    assert ended(watching, signal.SIGKILL)[0] == -signal.SIGKILL
    (left,) = at_coc.subscriptions()
    assert left.expires_at < time() + 600


def test_watch_subscribes_again_after_its_subscription_has_ended(at_coc: Client) -> None:
    watching = started("watch", "Enterprise/Holder from Coc")
    assert watching.stderr is not None
    assert b"did you mean CoC?" in watching.stderr.readline()
    assert watching.stderr.readline().startswith(b"watching ")
    (first,) = at_coc.subscriptions()
    at_coc.unsubscribe(first.id)  # as if the peer had been away for longer than its lifetime
    assert b"events of the time between are missing" in watching.stderr.readline()
    watching.stderr.readline()
    assert watching.stderr.readline().startswith(b"watching ")
    (second,) = at_coc.subscriptions()
    assert second.id != first.id
    assert ended(watching) == (0, b"")
    assert at_coc.subscriptions() == ()


def test_interrupt_that_was_lost_is_raised_at_the_next_check() -> None:
    before = signal.getsignal(signal.SIGINT)  # Spark's own, if its tests ran in this process
    with watch._Interrupt() as interrupt:
        interrupt.check()
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["pull", "bad-naems"], "unknown subscription 'bad-naems' (did you mean bad-names?)"),
        (["unsubscribe", "nothing"], "unknown subscription 'nothing'"),
        (["pull", "bad-names", "--limit", "-1"], "--limit is negative"),
        (["pull", "bad-names", "--after=-1"], "'-1' is no cursor"),
        (["pull", "bad-names", "--after", "1@"], "'1@' is no cursor"),
        (["watch", "bad-naems"], "unknown class 'bad-naems'"),
        (["subscribe", "Enterprise/Holder where Nmae = 'x'"], "(did you mean Name?)"),
        (["subscriptions", "--peer", "http://127.0.0.1:1/"], "(start it with qns peer run"),
        (["subscriptions", "--peer", "https://127.0.0.1:1/"], "only http is supported"),
        (["publish", "nothing.jsonl"], "nothing.jsonl: cannot be read"),
        (["publish", "examples/agencies/events.jsonl", "--peer", "http://127.0.0.1:1/"], "refused"),
    ],
)
def test_error_names_the_problem_and_the_remedy(
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
def test_wrong_duration_exits_with_status_2(time: str, cli: Cli) -> None:
    outcome = cli("subscribe", "Enterprise", f"--for={time}")
    assert outcome.status == 2
    assert "write it as 90s, 45m, 12h, 30d or 2w" in outcome.err


@pytest.mark.parametrize("command", USERS_COMMANDS)
def test_examples_of_the_help_work_at_a_peer(
    command: str, at_coc: Client, coc: PeerProcess, owner: str, cli: Cli
) -> None:
    id = f"bad-names-{owner}"  # nobody may use an id again, and the tests share a peer
    if command != "subscribe":
        at_coc.subscribe("Enterprise/Holder", id=id)
    if command == "resume":
        at_coc.pause(id)
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
