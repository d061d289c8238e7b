"""Tests that each event takes effect once when processes are killed."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Thread

from qns.client import Client
from tests.client.peers import PeerProcess, holder

EVENTS = 120
KILLS = 4


def start_reader(url: str, database: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.client.reader", url, "maria", "s1", str(database)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_each_event_takes_effect_once_when_reader_and_peer_are_killed(
    own_peer: PeerProcess, tmp_path: Path
) -> None:
    database = tmp_path / "work.sqlite"
    chance = random.Random(7)
    with Client(own_peer.url, "maria", patience_s=120) as client:
        client.subscribe("Enterprise/Holder", id="s1")

        def publish() -> None:
            for number in range(EVENTS):
                client.publish(holder(number))

        publishing = Thread(target=publish)
        publishing.start()
        for round in range(KILLS):
            reader = start_reader(own_peer.url, database)
            assert reader.stdout is not None
            for _ in range(chance.randint(1, EVENTS // (KILLS + 2))):
                assert reader.stdout.readline(), "the reader ended by itself"
            if round % 2:
                own_peer.kill()
                own_peer.start()
                assert reader.stdout.readline(), "the reader has not survived the peer"
            reader.kill()
            reader.wait()
            reader.stdout.close()
        publishing.join(timeout=120)
        last = start_reader(own_peer.url, database)
        assert last.stdout is not None
        done: list[tuple[str]] = []
        while len(done) < EVENTS:
            assert last.stdout.readline(), "the reader ended by itself"
            with closing(sqlite3.connect(database)) as work:
                done = work.execute("SELECT event FROM done ORDER BY number").fetchall()
        last.kill()
        last.wait()
        last.stdout.close()
    assert [event for (event,) in done] == [str(number) for number in range(EVENTS)]


def test_reader_without_cursor_continues_after_its_last_acknowledgement(
    own_peer: PeerProcess,
) -> None:
    with Client(own_peer.url, "maria") as client:
        client.subscribe("Enterprise/Holder", id="s1")
        for number in range(10):
            client.publish(holder(number))
        with client.deliveries("s1", limit=3) as stream:
            seen = [next(stream).id for _ in range(4)]
        own_peer.kill()
        own_peer.start()
        with client.deliveries("s1") as stream:
            seen += [next(stream).id for _ in range(6)]
    assert seen == [str(number) for number in range(10)]
