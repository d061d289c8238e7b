"""Sends the hostile corpus to a peer process over HTTP."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from qns.soap.shapes import Port
from qns.store.sqlite import SqliteStore
from tests.runtime.peers import PeerProcess, agencies_on_loopback, configure
from tests.soap.hostile import raw_http
from tests.soap.hostile.answers import BEFORE, kind_of
from tests.soap.hostile.case import Answer
from tests.soap.hostile.corpus import CASES
from tests.soap.hostile.xml_attacks import event_of_names, new_names, subscription_of_names
from tests.store.rows import content

LONGEST_S = 1.0
"""Processor time of the peer for one request; other processes of the machine do not count."""
MOST_MEMORY_KIB = 320 * 1024
PATIENCE_S = 30.0
Make = Callable[[int, int], bytes]
_PATHS = {Port.PEER: "/peer", Port.LOCAL: "/local"}
_PLAIN = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '""'}


class Victim:
    """The peer process of INPS; the other organisations run no peers."""

    def __init__(self, folder: Path) -> None:
        federation = agencies_on_loopback()
        self.peer = PeerProcess(configure(folder, federation, "INPS"), federation["INPS"].endpoint)
        self.store = folder / "INPS.db"

    def answer(self, port: Port, headers: dict[str, str], body: bytes) -> Answer:
        status, answer = self.peer.http("POST", _PATHS[port], body, **headers)
        return kind_of(status, answer)

    def drop(self, data: bytes) -> bytes:
        """Sends bytes on a new connection, closes it for writing and returns the answer."""
        address = urlsplit(self.peer.endpoint)
        with socket.create_connection((address.hostname, address.port), PATIENCE_S) as line:
            with suppress(ConnectionError):  # the peer may close it before all is sent
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
            answer = b""
            with suppress(ConnectionError):
                while part := line.recv(65_536):
                    answer += part
            return answer

    def rows(self) -> dict[str, list[Any]]:
        """Returns every row on the disk. It reads a copy, because the peer locks its file."""
        copy = self.store.with_name("copy.db")
        for file in self._files():
            shutil.copy(file, file.with_name(file.name.replace(self.store.name, copy.name)))
        with SqliteStore(copy) as store:
            return content(store)

    def _files(self) -> list[Path]:
        """Returns the files with rows. The lineage gets the number of commits a moment later."""
        files = (self.store, self.store.with_name(f"{self.store.name}-wal"))
        return [file for file in files if file.is_file()]

    def written(self) -> list[bytes]:
        """Returns the bytes of the store's files; while they are equal, so are the rows."""
        return [file.read_bytes() for file in self._files()]

    @property
    def _process(self) -> Path:
        assert self.peer.process is not None
        return Path("/proc", str(self.peer.process.pid))

    def processor_s(self) -> float:
        user, system = (self._process / "stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def memory_kib(self, kind: str = "VmRSS") -> int:
        lines = (self._process / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))

    def is_well(self) -> bool:
        return self.peer.health()["status"] != "failing"


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    victim = Victim(tmp_path_factory.mktemp("victim"))
    victim.peer.start()
    try:
        for port, body in BEFORE:
            assert victim.answer(port, _PLAIN, body) is Answer.SERVED
        yield victim
    finally:
        if victim.peer.process is not None:
            victim.peer.kill()


def test_process_answers_the_corpus_in_time_and_changes_nothing(victim: Victim) -> None:
    before, written = victim.rows(), victim.written()
    assert before["subscriptions"]
    wrong = []
    for case in CASES.values():
        body, started = case.make(), victim.processor_s()
        try:
            as_expected = victim.answer(case.port, case.all_headers, body) is case.answer
        except AssertionError:
            as_expected = False
        took_s = victim.processor_s() - started
        if victim.written() != written and victim.rows() == before:
            written = victim.written()  # the log was only copied into the store meanwhile
        if not as_expected or took_s > LONGEST_S or victim.written() != written:
            wrong.append((case.name, as_expected, took_s))
    assert not wrong
    assert victim.rows() == before
    assert victim.is_well()
    assert victim.memory_kib("VmHWM") < MOST_MEMORY_KIB


@pytest.mark.parametrize("name", raw_http.CASES)
def test_process_rejects_or_drops_bytes_that_are_not_http(victim: Victim, name: str) -> None:
    written = victim.written()
    answer = victim.drop(raw_http.CASES[name])
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 500", b"HTTP/1.0 4"))
    assert b"Traceback" not in answer
    assert victim.written() == written
    assert victim.is_well()


@pytest.mark.parametrize("make", [new_names, event_of_names, subscription_of_names])
def test_new_names_do_not_fill_the_memory_of_the_process(victim: Victim, make: Make) -> None:
    """Sends 20 MB of new names; lxml alone would keep all of them."""
    port = Port.LOCAL if make is subscription_of_names else Port.PEER
    for sent in range(200):
        if sent == 20:
            before = victim.memory_kib()
        assert victim.answer(port, _PLAIN, make(900, 120)) is not Answer.SERVED
    assert victim.memory_kib() - before < 8 * 1024


def test_log_of_the_process_does_not_quote_long_requests(victim: Victim) -> None:
    longest = max(len(line) for line in victim.peer.log.read_text().splitlines())
    assert longest < 5_000
    assert "Traceback" not in victim.peer.log.read_text()
