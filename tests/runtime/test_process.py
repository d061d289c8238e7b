"""Peers as processes on loopback, used over HTTP."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qns.errors import QnsError
from qns.federation.document_xml import write_federation
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Deliveries,
    ListSubscriptions,
    Published,
    PullDeliveries,
    Subscribe,
    Subscribed,
    Subscriptions,
    Unsubscribe,
)
from qns.soap.hardening import LOCAL
from qns.soap.local_client import write_local
from tests.runtime.peers import (
    PATIENCE_S,
    QUICK,
    PeerProcess,
    address,
    agencies,
    agencies_on_loopback,
    change,
    configure,
    eventually,
    post,
)

Peers = dict[str, PeerProcess]
DEBUG = f'{QUICK}[log]\nlevel = "debug"\n'


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    """Starts three peers that all tests share and must not stop."""
    with agencies(tmp_path_factory.mktemp("agencies"), DEBUG) as started:
        yield started


def subscribe(
    peer: PeerProcess, id: str, owner: str = "anna", text: str = "Enterprise/Holder"
) -> None:
    """Subscribes and waits until the subscription is stable at all producers."""
    assert isinstance(peer.ask(Subscribe(owner, text, id=id)), Subscribed)

    def is_stable() -> bool:
        listed = peer.ask(ListSubscriptions(owner))
        assert isinstance(listed, Subscriptions)
        return not any(each.pending for each in listed.subscriptions)

    eventually(is_stable, f"{id} is stable")


def read(peer: PeerProcess, id: str, number: int, owner: str = "anna") -> list[str]:
    """Waits for a number of deliveries and returns their events."""

    def look() -> list[str] | None:
        found = peer.ask(PullDeliveries(owner, id), wait_s=1.0)
        assert isinstance(found, Deliveries)
        events = [each.event for each in found.deliveries]
        return events if len(events) >= number else None

    return eventually(look, f"{number} deliveries of {id}")


# --- the service ----------------------------------------------------------------------------------


def test_event_is_delivered_from_one_organisation_to_another(peers: Peers) -> None:
    subscribe(peers["CoC"], "way")
    published = peers["INPS"].ask(change("way-1"))
    assert isinstance(published, Published)
    assert published.sent_to == ("CoC",)
    assert read(peers["CoC"], "way", 1) == ["way-1"]
    peers["CoC"].ask(AcknowledgeDeliveries("anna", "way", 1))
    empty = peers["CoC"].ask(PullDeliveries("anna", "way", after=1))
    assert empty == Deliveries(())


def test_pull_waits_for_a_first_delivery(peers: Peers) -> None:
    subscribe(peers["INAIL"], "poll")
    body, action = write_local(PullDeliveries("anna", "poll"), wait_s=60.0)
    with socket.create_connection(address(peers["INAIL"]), timeout=PATIENCE_S) as sock:
        sock.sendall(post("/local", body, action))
        eventually(lambda: peers["INAIL"].metrics()["qns_pulls_waiting"], "the pull waits")
        peers["INPS"].ask(change("poll-1"))
        answer = sock.recv(100_000)
        while b"Envelope>" not in answer[-20:]:
            answer += sock.recv(100_000)
    assert b"poll-1" in answer


def test_waiting_pull_is_refused_as_soon_as_its_subscription_ends(peers: Peers) -> None:
    subscribe(peers["INAIL"], "over")
    body, action = write_local(PullDeliveries("anna", "over"), wait_s=60.0)
    with socket.create_connection(address(peers["INAIL"]), timeout=20.0) as sock:
        sock.sendall(post("/local", body, action))
        eventually(lambda: peers["INAIL"].metrics()["qns_pulls_waiting"], "the pull waits")
        peers["INAIL"].ask(Unsubscribe("anna", "over"))
        answer = sock.recv(100_000)
        while b"Envelope>" not in answer[-20:]:
            answer += sock.recv(100_000)
    assert b"unknown subscription" in answer


def test_fault_names_the_problem(peers: Peers) -> None:
    with pytest.raises(QnsError, match="unknown subscription 'nothing'"):
        peers["CoC"].ask(PullDeliveries("anna", "nothing"))


def test_peer_serves_its_wsdl_with_the_port_of_the_address_first(peers: Peers) -> None:
    for path, first, second in (("/peer?wsdl", "peer", "local"), ("/local?WSDL", "local", "peer")):
        status, wsdl = peers["CoC"].http("GET", path)
        assert status == 200
        addresses = [f'location="{peers["CoC"].endpoint}{each}"' for each in (first, second)]
        places = [wsdl.decode().index(each) for each in addresses]
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/elsewhere", 404),
        ("GET", "/peer", 405),
        ("PUT", "/local", 405),
        ("POST", "/health", 405),
        ("DELETE", "/metrics", 405),
    ],
)
def test_unknown_paths_and_methods_are_rejected(
    peers: Peers, method: str, path: str, status: int
) -> None:
    assert peers["CoC"].http(method, path, b"x")[0] == status


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 500, b"Fault"),
        (b"<a/>", 500, b"Fault"),
        (b"<!DOCTYPE a><a/>", 500, b"Fault"),
        (b"x" * (LOCAL.bytes + 1), 413, b"at most"),
        (b"x" * (4 * LOCAL.bytes), 413, b"at most"),
    ],
    ids=["empty", "no envelope", "DOCTYPE", "too long", "far too long"],
)
def test_body_that_is_no_request_gives_a_fault(
    peers: Peers, body: bytes, status: int, words: bytes
) -> None:
    headers = {"Content-Type": "text/xml; charset=utf-8"}
    answered, answer = peers["CoC"].http("POST", "/local", body, **headers)
    assert answered == status
    assert b"Fault>" in answer
    assert words in answer
    assert b"Traceback" not in answer
    refused = [each for each in peers["CoC"].records() if each["message"].endswith("was refused")]
    assert refused
    assert refused[-1]["level"] == "warning"


def test_client_that_expects_100_continue_gets_it(peers: Peers) -> None:
    body, action = write_local(ListSubscriptions("nobody"))
    with socket.create_connection(address(peers["CoC"]), timeout=PATIENCE_S) as sock:
        head, _, _ = post("/local", body, action).partition(b"\r\n\r\n")
        sock.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 100 Continue")
        sock.sendall(body)
        assert sock.recv(100).startswith(b"HTTP/1.1 200")


# --- observability --------------------------------------------------------------------------------


def test_health_reports_the_identity_and_state_of_the_peer(peers: Peers) -> None:
    state = eventually(
        lambda: (found := peers["INPS"].health())["status"] == "ok" and found, "all is well"
    )
    assert state["organisation"] == "INPS"
    assert state["federation"] == "agencies"
    assert (state["epoch"], state["document"], state["reasons"]) == (1, 1, [])


def test_metrics_count_what_happened(peers: Peers) -> None:
    subscribe(peers["CoC"], "count", "carla")
    subscribe(peers["CoC"], "count too", "carla")
    peers["INPS"].ask(change("count-1"))
    read(peers["CoC"], "count", 1, "carla")
    consumer = peers["CoC"].metrics()
    assert consumer["qns_subscription_stable_seconds_count"] >= 2
    assert consumer["qns_diffusion_seconds_count"] >= 2
    assert consumer["qns_deliveries_waiting"] >= 2
    assert consumer['qns_view_elements{producer="INPS"}'] == 1
    merged = consumer["qns_subscriptions"]
    assert merged >= 2
    assert consumer['qns_merge_ratio{producer="INPS"}'] == pytest.approx(1 / merged)
    assert consumer["qns_commit_seconds_count"] >= 2
    assert consumer['qns_soap_bytes_total{direction="in"}'] > 1_000
    notified = 'direction="received",operation="notify",outcome="ok",port="peer"'
    assert consumer[f"qns_soap_messages_total{{{notified}}}"] >= 1
    eventually(
        lambda: peers["INPS"].metrics()['qns_consumer_lag_events{consumer="CoC"}'] == 0,
        "CoC has acknowledged all events",
    )
    for name in ("inputs_waiting", "custody_parcels", "early_entries", "dead_letters"):
        assert consumer[f"qns_{name}"] == 0


def test_log_has_calls_but_not_their_content(peers: Peers) -> None:
    subscribe(peers["INAIL"], "log")
    peers["INPS"].ask(change("log-1"))
    read(peers["INAIL"], "log", 1)
    records = peers["INAIL"].records()
    started = next(each for each in records if each["message"] == "started")
    assert started["organisation"] == "INAIL"
    notified = [each for each in records if each.get("operation") == "notify"]
    assert notified[-1]["caller"] == "INPS"
    assert notified[-1]["outcome"] == "ok"
    assert notified[-1]["message_id"].startswith("urn:uuid:")
    assert notified[-1]["ms"] > 0
    assert "Mecalla" not in peers["INAIL"].log.read_text()


def test_log_of_a_caller_in_a_loop_stays_short(peers: Peers) -> None:
    before = len(peers["INAIL"].records())
    for _ in range(100):
        with pytest.raises(QnsError):
            peers["INAIL"].ask(PullDeliveries("loop", "nothing"))
    lines = [each for each in peers["INAIL"].records()[before:] if each.get("caller") == "loop"]
    refused = [each for each in lines if each["message"] == "a request was refused"]
    assert 1 <= len(refused) <= 20  # the limit of one or two periods
    assert refused[0]["reason"] == "unknown subscription 'nothing'"
    assert len([each for each in lines if each["level"] == "debug"]) == 100


# --- start and stop -------------------------------------------------------------------------------


def test_killed_peer_loses_nothing(tmp_path: Path) -> None:
    with agencies(tmp_path) as peers:
        subscribe(peers["CoC"], "S1")
        peers["INPS"].ask(change("e1"))
        assert read(peers["CoC"], "S1", 1) == ["e1"]
        peers["CoC"].kill()
        peers["INPS"].ask(change("e2"))
        eventually(lambda: peers["INPS"].health()["reasons"], "INPS notices")
        peers["CoC"].start()
        assert read(peers["CoC"], "S1", 2) == ["e1", "e2"]
        assert peers["CoC"].health()["epoch"] > 1
        again = peers["INPS"].ask(change("e2"))
        assert isinstance(again, Published)
        assert again.again
        assert peers["CoC"].stop(signal.SIGTERM) == 0
        assert peers["INPS"].stop(signal.SIGINT) == 0
        ends = [each["message"] for each in peers["CoC"].records()][-2:]
        assert ends == ["stopping", "stopped"]


def test_waiting_pull_is_answered_when_the_peer_stops(tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    peer = PeerProcess(configure(tmp_path, federation, "INPS"), federation["INPS"].endpoint)
    peer.start()
    peer.ask(Subscribe("anna", "Enterprise/Holder", id="S1"))
    body, action = write_local(PullDeliveries("anna", "S1"), wait_s=60.0)
    with socket.create_connection(address(peer), timeout=PATIENCE_S) as sock:
        sock.sendall(post("/local", body, action))
        eventually(lambda: peer.metrics()["qns_pulls_waiting"], "the pull waits")
        assert peer.stop() == 0
        assert sock.recv(100).startswith(b"HTTP/1.1 200")


def test_second_process_with_the_same_store_or_port_is_refused(tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    path = configure(tmp_path, federation, "INPS")
    peer = PeerProcess(path, federation["INPS"].endpoint)
    ready = peer.start()
    try:
        assert ready == f"INPS listens on {federation['INPS'].endpoint}\n"
        other = tmp_path / "other.toml"
        settings = path.read_text("utf-8").replace("federation.xml", "moved.xml")
        other.write_text(f'listen = "127.0.0.1:0"\n{settings}', "utf-8")
        moved = agencies_on_loopback()  # nobody answers there
        (tmp_path / "moved.xml").write_bytes(write_federation(moved))
        refused = _run(other)
        assert refused.returncode == 2
        assert "INPS.db: is in use by another process (stop that process first)" in refused.stderr
        refused = _run(path)
        assert refused.returncode == 2
        assert "cannot listen on" in refused.stderr
        assert "Traceback" not in refused.stderr
    finally:
        assert peer.stop() == 0


def test_restored_copy_is_reported_in_health_and_log(tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    path = configure(tmp_path, federation, "INPS")
    peer = PeerProcess(path, federation["INPS"].endpoint)
    peer.start()
    assert peer.stop() == 0
    store = tmp_path / "INPS.db"
    copy = store.read_bytes()
    peer.start()
    assert peer.stop() == 0
    store.write_bytes(copy)
    peer.start()
    try:
        state = peer.health()
        assert state["status"] == "degraded"
        assert any("older copy" in reason for reason in state["reasons"])
        warned = [each for each in peer.records() if each["level"] == "warning"]
        assert any("older copy" in each["message"] for each in warned)
    finally:
        assert peer.stop() == 0


def _run(configuration: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qns.cli", "peer", "run", str(configuration)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
