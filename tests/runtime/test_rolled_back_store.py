"""A peer whose files go back in time, without any trace in them, loses no new event."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from qns.federation.document import Federation
from qns.iil.cursor import CursorAhead
from qns.iil.requests import AcknowledgeDeliveries, Deliveries, Published, PullDeliveries
from tests.runtime.peers import (
    PeerProcess,
    agencies_on_loopback,
    change,
    eventually,
    peer_in,
    running,
)
from tests.runtime.test_process import read, subscribe

pytestmark = pytest.mark.slow

FORGOTTEN = [f"e{number}" for number in range(10)]
LATER = [f"f{number}" for number in range(15)]


def put_back_whole_folder(folder: Path, copy: Path) -> None:
    """As a snapshot of a virtual machine does: with the lineage file."""
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)


def lose_write_ahead_log(folder: Path, _copy: Path) -> None:
    log = folder / "INPS.db-wal"
    assert log.stat().st_size > 0
    log.unlink()


def inps_and_coc(folder: Path) -> tuple[PeerProcess, PeerProcess]:
    """Returns the peers of a federation without INAIL, each with a folder of its own."""
    federation = agencies_on_loopback().without("INAIL")
    inps, coc = (peer_in(folder / name, federation, name) for name in ("INPS", "CoC"))
    return inps, coc


def publish_after_a_copy(inps: PeerProcess, coc: PeerProcess, folder: Path, copy: Path) -> None:
    """Copies the folder of INPS; then CoC receives events that the copy does not contain."""
    subscribe(coc, "S1")
    inps.stop()
    shutil.copytree(folder, copy)
    inps.start()
    for id in FORGOTTEN:
        inps.ask(change(id))
    read(coc, "S1", len(FORGOTTEN))


@pytest.mark.parametrize("go_back", [put_back_whole_folder, lose_write_ahead_log])
def test_new_events_of_a_rolled_back_peer_reach_its_consumers(
    tmp_path: Path, go_back: Callable[[Path, Path], None]
) -> None:
    folder, copy = tmp_path / "INPS", tmp_path / "copy"
    inps, coc = inps_and_coc(tmp_path)
    with running((inps, coc)):
        publish_after_a_copy(inps, coc, folder, copy)
        inps.kill()
        go_back(folder, copy)
        inps.start()
        for id in LATER:
            inps.ask(change(id))
        everything = [*FORGOTTEN, *LATER]
        assert read(coc, "S1", len(everything)) == everything
        eventually(lambda: "went back" in str(inps.health()["reasons"]), "the setback of INPS")
        assert "INPS" in str(coc.health()["reasons"])
    warnings = [each for each in coc.records() if each["level"] == "warning"]
    assert [each["source"] for each in warnings if "a producer" in each["message"]] == ["INPS"]


def test_reader_gets_an_error_before_it_skips_a_delivery_of_a_rolled_back_consumer(
    tmp_path: Path,
) -> None:
    folder, copy = tmp_path / "CoC", tmp_path / "copy"
    inps, coc = inps_and_coc(tmp_path)
    with running((inps, coc)):
        subscribe(coc, "S1")
        inps.ask(change("kept"))
        read(coc, "S1", 1)
        coc.stop()
        shutil.copytree(folder, copy)
        coc.start()
        for id in FORGOTTEN:
            inps.ask(change(id))
        read(coc, "S1", 1 + len(FORGOTTEN))
        pulled = coc.ask(PullDeliveries("anna", "S1"))
        assert isinstance(pulled, Deliveries)
        last = pulled.deliveries[-1]
        coc.ask(AcknowledgeDeliveries("anna", "S1", last.number, last.series))
        coc.kill()
        put_back_whole_folder(folder, copy)
        coc.start()
        for id in LATER:
            inps.ask(change(id))
        assert read(coc, "S1", 1 + len(LATER))[-len(LATER) :] == LATER
        with pytest.raises(CursorAhead, match="the cursor is at 11, which is another delivery now"):
            coc.ask(PullDeliveries("anna", "S1", last.number, series=last.series))
        with pytest.raises(CursorAhead):
            coc.ask(AcknowledgeDeliveries("anna", "S1", last.number, last.series))
        assert read(coc, "S1", 1 + len(LATER))[-len(LATER) :] == LATER


def test_event_that_the_factory_of_a_rolled_back_peer_repeats_is_not_delivered_again(
    tmp_path: Path,
) -> None:
    folder, copy = tmp_path / "INPS", tmp_path / "copy"
    inps, coc = inps_and_coc(tmp_path)
    with running((inps, coc)):
        publish_after_a_copy(inps, coc, folder, copy)
        coc.ask(AcknowledgeDeliveries("anna", "S1", len(FORGOTTEN)))
        inps.kill()
        put_back_whole_folder(folder, copy)
        inps.start()
        for id in (*FORGOTTEN, "new"):
            published = inps.ask(change(id))
            assert isinstance(published, Published)
            assert not published.again, "the peer has forgotten it"
        assert read(coc, "S1", 1) == ["new"]


def in_its_own_state(folder: Path, federation: Federation, name: str) -> PeerProcess:
    """Returns a peer with the default place of the lineage, outside the folder of the store."""
    peer = peer_in(folder, federation, name)
    text = peer.configuration.read_text("utf-8")
    line = f'lineage = "{name}.db.lineage"\n'
    assert line in text
    peer.configuration.write_text(text.replace(line, ""), "utf-8")
    return peer


def test_folder_that_is_put_back_with_all_its_files_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, copy = tmp_path / "INPS", tmp_path / "copy"
    inps = in_its_own_state(folder, agencies_on_loopback(), "INPS")
    with running((inps,)):
        inps.stop()
        shutil.copytree(folder, copy)
        inps.start()
        inps.ask(change("forgotten"))
        inps.kill()
        put_back_whole_folder(folder, copy)
        inps.start()
        assert "went back" in str(inps.health()["reasons"])
        inps.stop()
        shutil.rmtree(tmp_path / "state")  # as on a host to which the folder was moved
        inps.start()
        assert "went back" not in str(inps.health()["reasons"])


def test_commits_that_are_lost_with_the_log_are_detected_though_nothing_had_left_the_peer(
    tmp_path: Path,
) -> None:
    inps = peer_in(tmp_path / "INPS", agencies_on_loopback(), "INPS")
    files = [tmp_path / "INPS" / f"INPS.db{end}" for end in ("", "-wal")]
    with running((inps,)):
        inps.ask(change("kept"))
        assert inps.process is not None
        inps.process.send_signal(signal.SIGSTOP)
        at_checkpoint = [each.read_bytes() for each in files]
        inps.process.send_signal(signal.SIGCONT)
        for id in FORGOTTEN:
            inps.ask(change(id))
        lineage = (tmp_path / "INPS" / "INPS.db.lineage").read_bytes
        before = lineage()
        eventually(lambda: lineage() != before, "the next note of committed turns")
        inps.kill()
        for file, content in zip(files, at_checkpoint, strict=True):
            file.write_bytes(content)  # the same epoch and nonce
        inps.start()
        assert "went back" in str(inps.health()["reasons"])
    warnings = [each["message"] for each in inps.records() if each["level"] == "warning"]
    assert "the store was put back from an older copy" in warnings


def test_restarts_and_kills_do_not_look_like_lost_commits(tmp_path: Path) -> None:
    inps = peer_in(tmp_path / "INPS", agencies_on_loopback(), "INPS")
    with running((inps,)):
        for number in range(6):
            inps.ask(change(f"e{number}"))
            if number % 2:
                time.sleep(1.2)  # the committed turns are noted
            if number % 3:
                inps.kill()
            else:
                inps.stop()
            inps.start()
            assert "went back" not in str(inps.health()["reasons"])
