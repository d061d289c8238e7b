"""Tests of `qns peer backup`, `backup-key` and `restore`, with real peer processes."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from qns.federation.document_xml import write_federation
from qns.iil.requests import ListSubscriptions, Subscribe, Subscribed, Subscriptions
from qns.peer.tables import IDENTITY
from qns.store.checksums import register
from qns.store.reading import StoreReader
from tests.cli.conftest import Cli
from tests.runtime.peers import PeerProcess, agencies_on_loopback, change, configure, eventually


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[PeerProcess]:
    """Starts INPS with one subscription of anna."""
    federation = agencies_on_loopback()
    process = PeerProcess(configure(tmp_path, federation, "INPS"), federation["INPS"].endpoint)
    process.start()
    assert isinstance(process.ask(Subscribe("anna", "Enterprise/Holder", id="S1")), Subscribed)
    yield process
    if process.process is not None:
        process.kill()


def subscriptions(peer: PeerProcess) -> list[str]:
    listed = peer.ask(ListSubscriptions("anna"))
    assert isinstance(listed, Subscriptions)
    return [each.id for each in listed.subscriptions]


def backed_up(peer: PeerProcess, cli: Cli, *more: object) -> Path:
    file = peer.configuration.with_name("copy")
    assert cli("peer", "backup", peer.configuration, file, *more).status == 0
    return file


def nonce_of(path: Path) -> str:
    with StoreReader(path) as reader:
        (row,) = reader.rows(IDENTITY)
    return row.nonce


@pytest.mark.parametrize("encrypted", [False, True])
def test_backup_is_restored_and_the_restore_is_detected(
    peer: PeerProcess, cli: Cli, tmp_path: Path, encrypted: bool
) -> None:
    more: tuple[object, ...] = ()
    if encrypted:
        assert cli("peer", "backup-key", tmp_path / "a.key").status == 0
        more = ("--key", tmp_path / "a.key")
    made = cli("peer", "backup", "--json", peer.configuration, tmp_path / "copy", *more).json
    assert made["organisation"] == "INPS"
    assert made["encrypted"] is encrypted
    file = tmp_path / "copy"
    assert made["bytes"] == file.stat().st_size
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (b"SQLite format" in file.read_bytes()[:100]) is not encrypted
    peer.ask(Subscribe("anna", "Enterprise/Holder", id="S2"))
    peer.stop()
    restored = cli("peer", "restore", peer.configuration, file, *more, "--overwrite")
    assert restored.status == 0, restored.err
    assert not {each.name for each in tmp_path.iterdir()} & {"INPS.db.decrypted", "INPS.db-wal"}
    assert stat.S_IMODE((tmp_path / "INPS.db").stat().st_mode) == 0o600
    peer.start()
    assert subscriptions(peer) == ["S1"]
    assert "restored from an older copy" in " ".join(peer.health()["reasons"])


def test_peer_accepts_requests_while_and_after_it_is_backed_up(peer: PeerProcess, cli: Cli) -> None:
    for number in range(3):
        cli("peer", "backup", peer.configuration, peer.configuration.with_name(f"copy{number}"))
        peer.ask(change(f"e{number}"))
    assert peer.health()["commit_failures"] == 0
    peer.stop()
    peer.start()
    assert "restored" not in " ".join(peer.health()["reasons"])


def test_mark_of_a_backup_is_not_that_of_the_store(peer: PeerProcess, cli: Cli) -> None:
    one = backed_up(peer, cli)
    peer.stop()
    assert nonce_of(one) != nonce_of(peer.configuration.with_name("INPS.db"))
    lineage = peer.configuration.with_name("INPS.db.lineage").read_text()
    assert nonce_of(one) not in lineage


def test_backup_does_not_overwrite_a_file(peer: PeerProcess, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("precious")
    outcome = cli("peer", "backup", peer.configuration, tmp_path / "copy")
    assert outcome.status == 2
    assert "exists already" in outcome.err
    assert (tmp_path / "copy").read_text() == "precious"
    folder = cli("peer", "backup", peer.configuration, tmp_path / "none" / "copy")
    assert folder.status == 2
    assert not list(tmp_path.glob("*.unfinished"))


def test_backup_with_an_unusable_key_leaves_no_file(
    peer: PeerProcess, cli: Cli, tmp_path: Path
) -> None:
    key = tmp_path / "a.key"
    cli("peer", "backup-key", key)
    key.chmod(0o644)
    outcome = cli("peer", "backup", peer.configuration, tmp_path / "copy", "--key", key)
    assert "other users can read" in outcome.err
    assert not list(tmp_path.glob("*copy*"))


def test_interrupted_backup_is_replaced_by_the_next_one(
    peer: PeerProcess, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "copy.unfinished").write_bytes(b"half")
    backed_up(peer, cli)
    assert not (tmp_path / "copy.unfinished").exists()


# --- refused restores -----------------------------------------------------------------------------


def assert_refused(cli: Cli, problem: str, *arguments: object) -> None:
    outcome = cli("peer", "restore", *arguments)
    assert outcome.status == 2
    assert problem in outcome.err


def test_restore_is_refused_while_the_peer_runs(peer: PeerProcess, cli: Cli) -> None:
    file = backed_up(peer, cli)
    assert_refused(cli, "exists already", peer.configuration, file)
    assert_refused(cli, "is in use by another process", peer.configuration, file, "--overwrite")
    assert subscriptions(peer) == ["S1"]


def test_restore_verifies_before_it_replaces_anything(
    peer: PeerProcess, cli: Cli, tmp_path: Path
) -> None:
    key, other_key = tmp_path / "a.key", tmp_path / "b.key"
    for each in (key, other_key):
        cli("peer", "backup-key", each)
    plain = backed_up(peer, cli)
    sealed = tmp_path / "sealed"
    cli("peer", "backup", peer.configuration, sealed, "--key", key)
    peer.ask(change("e1"))
    peer.stop()
    store = tmp_path / "INPS.db"
    before = store.read_bytes()
    config = (peer.configuration, "--overwrite")

    assert_refused(cli, "is encrypted (give its key", *config, sealed)
    assert_refused(cli, "was encrypted with the key", *config, sealed, "--key", other_key)
    assert_refused(cli, "is no encrypted backup", *config, plain, "--key", key)
    assert_refused(cli, "there is no such file", *config, tmp_path / "none")

    whole = sealed.read_bytes()
    sealed.write_bytes(whole[:-1])
    assert_refused(cli, f"{sealed}: the encrypted backup is damaged", *config, sealed, "--key", key)
    sealed.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
    assert_refused(cli, "the encrypted backup is damaged", *config, sealed, "--key", key)

    whole = plain.read_bytes()
    plain.write_bytes(whole[: len(whole) // 2])
    assert_refused(cli, f"{plain}", *config, plain)
    page = 4096 * (len(whole) // 4096 // 2)
    plain.write_bytes(whole[:page] + b"\xff" * 4096 + whole[page + 4096 :])
    assert_refused(cli, "damaged", *config, plain)

    plain.write_bytes(whole)
    connection = apsw.Connection(str(plain), vfs=register())
    connection.pragma("user_version", 999)
    connection.close()
    assert_refused(cli, "is a store of version 999", *config, plain)
    plain.write_bytes(b"no database" * 1_000)
    assert_refused(cli, "is no store of QNS", *config, plain)
    plain.write_bytes(b"")
    assert_refused(cli, "SQLite file of another program", *config, plain)

    assert store.read_bytes() == before
    assert {each.name for each in tmp_path.glob("INPS.db*")} == {"INPS.db", "INPS.db.lineage"}
    peer.start()
    assert subscriptions(peer) == ["S1"]


def test_backup_of_another_organisation_or_federation_is_refused(
    peer: PeerProcess, cli: Cli, tmp_path: Path
) -> None:
    file = backed_up(peer, cli)
    federation = agencies_on_loopback()
    other = configure(tmp_path, federation, "CoC")
    assert_refused(cli, "is a backup of INPS, not of CoC", other, file)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    renamed = replace(federation, name="others")
    (elsewhere / "federation.xml").write_bytes(write_federation(renamed))
    named = configure(elsewhere, renamed, "INPS")
    assert_refused(cli, "is a backup of the federation agencies, not of others", named, file)
    assert not list(elsewhere.glob("*.db"))


def test_lost_store_is_restored_without_overwrite(peer: PeerProcess, cli: Cli) -> None:
    file = backed_up(peer, cli)
    peer.kill()
    for path in peer.configuration.parent.glob("INPS.db*"):
        path.unlink()
    assert cli("peer", "restore", peer.configuration, file).status == 0
    peer.start()
    assert subscriptions(peer) == ["S1"]
    eventually(
        lambda: "restored from an older copy" in " ".join(peer.health()["reasons"]), "detected"
    )
