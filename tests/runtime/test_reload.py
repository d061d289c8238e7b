"""SIGHUP makes a peer process read its configuration again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qns.federation.document import Federation
from tests.runtime.peers import (
    QUICK,
    PeerProcess,
    agencies_on_loopback,
    configure,
    eventually,
    free_ports,
    peer_in,
    running,
)

FIRST = agencies_on_loopback()


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[PeerProcess]:
    inps = peer_in(tmp_path, FIRST, "INPS")
    with running([inps]):
        yield inps


def reload(peer: PeerProcess, federation: Federation, more: str = QUICK) -> None:
    """Writes a configuration and sends SIGHUP."""
    configure(peer.configuration.parent, federation, "INPS", more)
    hang_up(peer)


def hang_up(peer: PeerProcess) -> None:
    assert peer.process is not None
    peer.process.send_signal(signal.SIGHUP)


def logged(peer: PeerProcess, message: str) -> list[dict[str, Any]]:
    return eventually(
        lambda: [each for each in peer.records() if each["message"] == message], message
    )


def test_reload_puts_a_newer_document_in_force(peer: PeerProcess) -> None:
    reload(peer, FIRST.without("CoC"))
    (line,) = logged(peer, "the configuration was reloaded")
    assert line["document"] == 2
    assert peer.health()["document"] == 2


def test_health_names_an_endpoint_in_the_document_at_which_the_peer_does_not_listen(
    peer: PeerProcess,
) -> None:
    assert not [each for each in peer.health()["details"] if each["kind"] == "moved"]
    elsewhere = f"http://127.0.0.1:{free_ports(1)[0]}/"
    reload(peer, FIRST.with_endpoints({"INPS": elsewhere}))
    logged(peer, "the configuration was reloaded")
    (moved,) = [each for each in peer.health()["details"] if each["kind"] == "moved"]
    assert elsewhere in moved["words"]
    assert f"still listens on {peer.endpoint}" in moved["words"]
    assert "restart the peer" in moved["remedy"]
    assert peer.metrics()['qns_health_reasons{kind="moved"}'] == 1
    assert peer.stop() == 0
    peer.endpoint = elsewhere
    peer.start()
    assert not [each for each in peer.health()["details"] if each["kind"] == "moved"]


def test_health_says_nothing_of_the_endpoint_of_a_peer_behind_a_proxy(tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    inps = peer_in(tmp_path, FIRST, "INPS", f'listen = "{listen}"\n{QUICK}')
    inps.endpoint = f"http://{listen}/"
    with running([inps]):
        elsewhere = f"http://127.0.0.1:{free_ports(1)[0]}/"
        configure(tmp_path, FIRST.with_endpoints({"INPS": elsewhere}), "INPS")
        hang_up(inps)
        logged(inps, "the configuration was reloaded")
        assert inps.health()["document"] == 2
        assert not [each for each in inps.health()["details"] if each["kind"] == "moved"]


def test_reload_changes_the_log_level(peer: PeerProcess) -> None:
    peer.health()
    assert not [each for each in peer.records() if each["level"] == "debug"]
    reload(peer, FIRST, f'{QUICK}[log]\nlevel = "debug"\n')
    eventually(
        lambda: [each for each in peer.records() if each["level"] == "debug"], "calls are logged"
    )


def test_settings_that_cannot_change_are_logged_as_needing_a_restart(peer: PeerProcess) -> None:
    reload(peer, FIRST, 'history = true\nstore = "other.db"\n[tuning]\nlease_s = 7.0\n')
    logged(peer, "the configuration was reloaded")
    settings = {each["setting"] for each in logged(peer, "restart needed")}
    assert {"history", "store", "tuning.lease_s"} <= settings
    assert not (peer.configuration.parent / "other.db").exists()


@pytest.mark.parametrize("broken", ["configuration", "document", "schema"])
def test_invalid_file_is_logged_and_changes_nothing(peer: PeerProcess, broken: str) -> None:
    folder, debug = peer.configuration.parent, f'{QUICK}[log]\nlevel = "debug"\n'
    if broken == "configuration":
        peer.configuration.write_text("organisation = 7\n")
        hang_up(peer)
    elif broken == "document":
        configure(folder, FIRST.without("CoC"), "INPS", debug)
        (folder / "federation.xml").write_text("<federation/>")
        hang_up(peer)
    else:
        reload(peer, Federation("other", FIRST.schema, FIRST.organisations, 2), debug)
    (line,) = logged(peer, "the configuration was not reloaded")
    assert line["level"] == "error"
    assert line["reason"]
    assert peer.health()["document"] == 1
    assert not [each for each in peer.records() if each["level"] == "debug"]
    reload(peer, FIRST.without("CoC"))
    logged(peer, "the configuration was reloaded")


def test_health_names_the_refusal_of_a_reloaded_document_until_the_file_is_corrected(
    peer: PeerProcess,
) -> None:
    reload(peer, Federation("other", FIRST.schema, FIRST.organisations, 2))
    (line,) = logged(peer, "the configuration was not reloaded")
    said = f"the configured document is not in force: {line['reason']}"
    assert [each for each in peer.health()["reasons"] if said in each]
    reload(peer, FIRST)
    logged(peer, "the configuration was reloaded")
    assert not [each for each in peer.health()["reasons"] if "not in force" in each]
