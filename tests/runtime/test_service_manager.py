"""The service manager learns when a peer is ready, reloads, stops, and that it is alive."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qns.runtime.service_manager import ServiceManager
from tests.runtime.peers import PATIENCE_S, PeerProcess, agencies_on_loopback, configure

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no systemd")


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(PATIENCE_S)
        yield sock


def received(listener: socket.socket) -> dict[str, str]:
    lines = listener.recv(4_096).decode().splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def received_with(listener: socket.socket, name: str) -> dict[str, str]:
    """Waits for a message that has this variable; signs of life may come before it."""
    while name not in (found := received(listener)):
        pass
    return found


def test_peer_reports_ready_reload_stop_and_signs_of_life(
    tmp_path: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    federation = agencies_on_loopback()
    endpoint = federation["INPS"].endpoint
    peer = PeerProcess(configure(tmp_path, federation, "INPS"), endpoint)
    peer.start()
    try:
        ready = received_with(listener, "READY")
        assert ready["STATUS"] == f"INPS listens on {endpoint}"
        assert peer.http("GET", "/health")[0] == 200
        for _ in range(3):
            assert received(listener) == {"WATCHDOG": "1"}
        assert peer.process is not None
        peer.process.send_signal(signal.SIGHUP)
        assert int(received_with(listener, "RELOADING")["MONOTONIC_USEC"]) > 0
        assert received_with(listener, "READY")["READY"] == "1"
    finally:
        assert peer.stop() == 0
    assert received_with(listener, "STOPPING") == {"STOPPING": "1", "STATUS": "stopping"}


def test_abstract_socket_is_supported() -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux has abstract sockets")
    name = f"qns-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0{name}")
        sock.settimeout(PATIENCE_S)
        ServiceManager(f"@{name}").stopping()
        assert received(sock)["STOPPING"] == "1"


def test_nothing_is_sent_without_a_service_manager() -> None:
    manager = ServiceManager.from_environment({})
    assert manager == ServiceManager()
    manager.ready("nobody listens")
    ServiceManager("/nowhere/at/all").ready("nobody listens")


@pytest.mark.parametrize(
    ("environment", "watchdog_s"),
    [
        ({"WATCHDOG_USEC": "60000000"}, 60.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 60.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "banana"}, 0.0),
    ],
)
def test_watchdog_of_another_process_is_ignored(
    environment: dict[str, str], watchdog_s: float
) -> None:
    assert ServiceManager.from_environment(environment).watchdog_s == watchdog_s
