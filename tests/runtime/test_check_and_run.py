"""`qns peer check` reports in the same words what `qns peer run` does."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from qns.d2q.schema import Schema
from qns.federation.document import Federation, Organisation
from qns.runtime import health as health_module
from qns.runtime.checks import check
from qns.runtime.configuration import read_configuration
from qns.runtime.findings import Verdict
from qns.store.sqlite import LOW_WATER_BYTES
from tests.runtime.peers import (
    PATIENCE_S,
    PeerProcess,
    agencies_on_loopback,
    configure,
    eventually,
    peer_in,
)

pytestmark = pytest.mark.slow

FIRST = agencies_on_loopback()
LISTENERS: list[socket.socket] = []
SECOND = FIRST.hosting("CoC", ["Enterprise"])


def at_the_address_of(federation: Federation, name: str, other: str) -> Federation:
    moved = replace(federation[name], endpoint=federation[other].endpoint)
    return replace(federation, organisations={**federation.organisations, name: moved})


def with_integer_code(federation: Federation) -> Federation:
    classes = {
        path: {prop.name: prop.domain.name for prop in federation.schema.properties[path]}
        for path in federation.schema.classes
    }
    classes["Enterprise"]["Code"] = "integer"
    return federation.with_schema(Schema("agencies", classes, federation.schema.labels))


def inps_has_run(folder: Path, document: Federation) -> PeerProcess:
    peer = peer_in(folder, document, "INPS")
    peer.start()
    assert peer.stop() == 0
    return peer


def command(name: str, configuration: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qns.cli", "peer", name, str(configuration)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def store_of_another_organisation(folder: Path) -> Path:
    inps_has_run(folder, FIRST)
    return configure(folder, FIRST, "CoC", 'store = "INPS.db"\n')


def two_members_on_one_address(folder: Path) -> Path:
    return configure(folder, at_the_address_of(FIRST, "CoC", "INAIL"), "INPS")


def unreadable_lineage(folder: Path) -> Path:
    peer = inps_has_run(folder, FIRST)
    (folder / "INPS.db.lineage").write_text("nothing")
    return peer.configuration


def admin_port_in_a_missing_folder(folder: Path) -> Path:
    return configure(folder, FIRST, "INPS", 'admin = "none/inps.admin"\n')


def admin_port_at_an_ordinary_file(folder: Path) -> Path:
    (folder / "notes.txt").write_text("precious")
    return configure(folder, FIRST, "INPS", 'admin = "notes.txt"\n')


def admin_port_of_another_process(folder: Path) -> Path:
    path = folder / "inps.admin"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    LISTENERS.append(listener)
    return configure(folder, FIRST, "INPS", 'admin = "inps.admin"\n')


@pytest.fixture(autouse=True)
def closed_listeners() -> Iterator[None]:
    yield
    while LISTENERS:
        LISTENERS.pop().close()


@pytest.mark.parametrize(
    ("situation", "said"),
    [
        (store_of_another_organisation, "this is the store of INPS, not of CoC"),
        (two_members_on_one_address, "CoC and INAIL have the same address"),
        (unreadable_lineage, "the lineage cannot be read"),
        (admin_port_in_a_missing_folder, "the admin port cannot be opened: there is no folder"),
        (admin_port_at_an_ordinary_file, "this is a file of another kind"),
        (admin_port_of_another_process, "the admin port is in use by another process"),
    ],
)
def test_check_fails_with_the_words_with_which_run_refuses_to_start(
    tmp_path: Path, situation: Callable[[Path], Path], said: str
) -> None:
    configuration = situation(tmp_path)
    checked, refused = command("check", configuration), command("run", configuration)
    assert (checked.returncode, refused.returncode) == (1, 2)
    assert said in refused.stderr
    (line,) = [each for each in checked.stdout.splitlines() if each.startswith("FAIL")]
    assert said in line


@pytest.mark.parametrize(
    ("stored", "configured", "said"),
    [
        (FIRST, replace(FIRST, name="bureaus", version=2), "of the federation 'bureaus', not of"),
        (FIRST, with_integer_code(FIRST), "the property Enterprise.Code was string and becomes"),
        (FIRST, at_the_address_of(SECOND, "CoC", "INAIL"), "CoC and INAIL have the same address"),
        (SECOND, replace(FIRST.hosting("CoC", []), version=2), "another document of version 2 is"),
        (FIRST, replace(SECOND, version=1), "another document of version 1 is in force"),
    ],
    ids=["federation", "schema", "address", "unchanged version", "unchanged first version"],
)
def test_check_fails_with_the_words_with_which_run_refuses_the_document(
    tmp_path: Path, stored: Federation, configured: Federation, said: str
) -> None:
    peer = inps_has_run(tmp_path, stored)
    configure(tmp_path, configured, "INPS")
    checked = command("check", peer.configuration)
    assert checked.returncode == 1
    (line,) = [each for each in checked.stdout.splitlines() if each.startswith("FAIL")]
    assert said in line
    peer.start()
    try:
        (reason,) = [each for each in peer.health()["reasons"] if "document" in each]
        assert said in reason
        assert peer.health()["document"] == stored.version
        warned = [each for each in peer.records() if each["level"] == "warning"]
        assert any(said in each.get("reason", "") for each in warned)
        again = command("check", peer.configuration)  # while the peer runs
        assert again.returncode == 1
        assert [each for each in again.stdout.splitlines() if said in each] != []
    finally:
        assert peer.stop() == 0


def test_check_warns_of_an_older_file_and_run_keeps_the_newer_document(tmp_path: Path) -> None:
    peer = inps_has_run(tmp_path, SECOND)
    configure(tmp_path, FIRST, "INPS")
    said = "version 2 of the federation document is in force; the configured file has version 1"
    checked = command("check", peer.configuration)
    assert checked.returncode == 0
    assert [each for each in checked.stdout.splitlines() if said in each and "WARN" in each]
    peer.start()
    try:
        assert peer.health()["document"] == 2
        assert any(each.get("reason") == said for each in peer.records())
    finally:
        assert peer.stop() == 0


def test_check_and_run_accept_a_newer_document(tmp_path: Path) -> None:
    peer = inps_has_run(tmp_path, FIRST)
    configure(tmp_path, SECOND, "INPS")
    checked = command("check", peer.configuration)
    assert checked.returncode == 0
    assert "the peer puts it in force when it starts" in checked.stdout
    peer.start()
    try:
        eventually(lambda: peer.health()["document"] == 2, "version 2 is in force")
        assert "in force" not in command("check", peer.configuration).stdout
    finally:
        assert peer.stop() == 0


def test_check_of_a_member_that_moves_recognises_its_running_peer(tmp_path: Path) -> None:
    peer = peer_in(tmp_path, FIRST, "INPS")
    peer.start()
    endpoint = agencies_on_loopback()["INPS"].endpoint
    configure(tmp_path, FIRST.with_endpoints({"INPS": endpoint}), "INPS")
    try:
        checked = command("check", peer.configuration)
    finally:
        assert peer.stop() == 0
    assert checked.returncode == 0, checked.stdout
    assert f"WARN listen         INPS is running on {FIRST['INPS'].endpoint}, and" in checked.stdout
    assert f"{endpoint} is free" in checked.stdout
    assert "is in use by the running peer" in checked.stdout


def test_check_calls_the_members_of_the_document_in_force_if_the_file_is_older(
    tmp_path: Path,
) -> None:
    elsewhere = agencies_on_loopback()["CoC"].endpoint
    moved = FIRST.with_endpoints({"CoC": elsewhere}).with_organisation(
        Organisation("ISTAT", frozenset())
    )
    peer = inps_has_run(tmp_path, moved)
    configure(tmp_path, FIRST, "INPS")
    stopped = command("check", peer.configuration).stdout
    peer.start()
    try:
        running = command("check", peer.configuration).stdout
    finally:
        assert peer.stop() == 0
    for said in (stopped, running):
        of_coc = [each for each in said.splitlines() if each.split()[1] == "CoC"]
        assert of_coc
        assert all(elsewhere in each for each in of_coc)
        assert "ISTAT" in said


def test_check_and_health_warn_of_an_endpoint_at_which_the_peer_does_not_listen(
    tmp_path: Path,
) -> None:
    moved = FIRST.with_endpoints({"INPS": agencies_on_loopback()["INPS"].endpoint})
    peer = inps_has_run(tmp_path, moved)
    configure(tmp_path, FIRST, "INPS")  # an older file, with the former endpoint
    peer.endpoint = FIRST["INPS"].endpoint
    said = f"the federation document has the endpoint {moved['INPS'].endpoint} for INPS"
    (line,) = [
        each for each in command("check", peer.configuration).stdout.splitlines() if said in each
    ]
    assert line.startswith("WARN listen")
    peer.start()
    try:
        assert [each for each in peer.health()["reasons"] if said in each]
    finally:
        assert peer.stop() == 0


def test_check_warns_of_a_disk_that_is_nearly_full_as_health_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = read_configuration(configure(tmp_path, FIRST, "INPS"))
    disk = SimpleNamespace(f_bavail=LOW_WATER_BYTES, f_frsize=1)
    monkeypatch.setattr(health_module.os, "statvfs", lambda _: disk)
    findings = asyncio.run(check(configuration))
    (found,) = [each for each in findings if each.what == "disk"]
    assert found.verdict is Verdict.WARN
    assert found.remedy.startswith("free some space")


def test_check_warns_of_a_restored_store_before_run_detects_it(tmp_path: Path) -> None:
    peer = inps_has_run(tmp_path, FIRST)
    said = "was restored from an older copy"
    assert said not in command("check", peer.configuration).stdout
    older = (tmp_path / "INPS.db").read_bytes()
    inps_has_run(tmp_path, FIRST)
    (tmp_path / "INPS.db").write_bytes(older)
    checked = command("check", peer.configuration)
    assert checked.returncode == 0
    assert [each for each in checked.stdout.splitlines() if "WARN store" in each and said in each]
    peer.start()
    try:
        assert said in " ".join(peer.health()["reasons"])
    finally:
        assert peer.stop() == 0


def test_check_and_run_accept_the_socket_that_a_killed_peer_has_left(tmp_path: Path) -> None:
    peer = peer_in(tmp_path, FIRST, "INPS")
    peer.start()
    peer.kill()
    assert (tmp_path / "INPS.db.admin").is_socket()
    assert command("check", peer.configuration).returncode == 0
    assert (tmp_path / "INPS.db.admin").is_socket()
    peer.start()
    assert peer.stop() == 0
