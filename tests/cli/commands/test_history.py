"""Tests of `qns history`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from qns.cbr.index import DictionaryIndex
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import Publish, Request, Subscribe
from qns.peer.gateway import Gateway
from qns.peer.inputs import Answered, Effects, Received
from qns.peer.recovery import Settings
from qns.peer.tuning import Tuning
from qns.store.lineage import MemoryLineage
from qns.store.sqlite import SqliteStore
from tests.cli.conftest import Cli

NAMES = ("Met01", "Met02")


class Peers:
    """Peers with stores in files and one clock, which exchange requests directly."""

    def __init__(
        self, folder: Path, *, recording: bool = True, names: Iterable[str] = NAMES
    ) -> None:
        self.now = 1_000.0
        self.ahead_s: dict[str, float] = {}
        document = write_federation(
            Federation.of("weather", WEATHER, dict.fromkeys(names, ("Report",)))
        )
        self.paths = {name: folder / f"{name}.db" for name in names}
        self.gateways: dict[str, Gateway] = {}
        first: list[tuple[str, Effects]] = []
        for name, path in self.paths.items():
            self.gateways[name] = Gateway.open(
                Settings(name, Tuning(), DictionaryIndex, recording=recording),
                SqliteStore(path),
                MemoryLineage(),
                document=document,
                nonce=name,
                now=self.now,
            )
            first.append((name, self.gateways[name].first))
        for name, effects in first:
            self._send(name, effects)

    def ask(self, name: str, request: Request) -> None:
        self._turn(name, [request])

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.now += 1.0
            for name in self.gateways:
                self._turn(name, [])

    def close(self) -> list[Path]:
        for gateway in self.gateways.values():
            gateway.store.close()  # type: ignore[attr-defined]
        return list(self.paths.values())

    def _turn(self, name: str, inputs: list[Request | Received | Answered]) -> Effects:
        self.now += 0.001
        effects = self.gateways[name].run(inputs, self.now + self.ahead_s.get(name, 0.0))
        self._send(name, effects)
        return effects

    def _send(self, name: str, effects: Effects) -> None:
        for send in effects.sends:
            (reply,) = self._turn(send.to, [Received(send.envelope)]).answers
            self._turn(name, [Answered(send.number, reply)])  # type: ignore[arg-type]


def event(id: str, source: str) -> Publish:
    fields = {"id": id, "class": "Report", "source": source}
    return Publish(EventReader(WEATHER).from_fields(fields))


@pytest.fixture
def peers(tmp_path: Path) -> Callable[..., Peers]:
    return lambda **options: Peers(tmp_path, **options)


def played(peers: Peers) -> Peers:
    peers.ask("Met01", Subscribe("ann", "Report", id="s1"))
    peers.wait(3)
    peers.ask("Met02", event("e1", "Met02"))
    peers.wait(3)
    return peers


def test_records_of_all_peers_become_one_history_that_keeps_the_rules(
    cli: Cli, peers: Callable[..., Peers]
) -> None:
    stores = played(peers()).close()
    outcome = cli("history", *stores)
    assert (outcome.status, outcome.err) == (0, "")
    records = outcome.json_lines
    assert [each["do"] for each in records[:5]] == ["schema", "join", "join", "start", "start"]
    assert records[-1]["do"] == "calm"
    times = [each["t"] for each in records]
    assert times == sorted(times)
    found = [each["do"] for each in records if each["do"] in ("sub", "stable", "pub", "ntfy")]
    assert found == ["sub", "stable", "pub", "ntfy"]
    verdict = cli("verify", "--json", "-", stdin=outcome.out.encode())
    assert verdict.status == 0
    assert verdict.json["rules"]["Liveness"]["checks"] == 1


def test_missing_notification_is_found_by_verify(cli: Cli, peers: Callable[..., Peers]) -> None:
    lines = cli("history", *played(peers()).close()).out.splitlines(keepends=True)
    without = "".join(line for line in lines if json.loads(line)["do"] != "ntfy")
    assert cli("verify", "-", stdin=without.encode()).status == 1


def test_history_is_written_to_a_file(
    cli: Cli, peers: Callable[..., Peers], tmp_path: Path
) -> None:
    stores = played(peers()).close()
    out = tmp_path / "history.jsonl"
    assert cli("history", *stores, "--out", out).out == ""
    assert out.read_text(encoding="utf-8") == cli("history", *stores).out


def test_history_with_pending_work_does_not_end_in_calm(
    cli: Cli, peers: Callable[..., Peers]
) -> None:
    two = peers()
    two.ask("Met01", Subscribe("ann", "Report", id="s1"))
    two.wait(3)
    two.gateways["Met02"].run([event("e1", "Met02")], two.now)  # and its sends are lost
    outcome = cli("history", *two.close())
    assert outcome.status == 0
    assert outcome.json_lines[-1]["do"] == "cross"
    assert outcome.err == ("the history does not end in calm: Met02 owes Met01 events from 1\n")


def test_history_without_the_store_of_a_member_does_not_end_in_calm(
    cli: Cli, peers: Callable[..., Peers]
) -> None:
    first, _ = played(peers()).close()
    outcome = cli("history", first)
    assert "the store of Met02 is missing" in outcome.err
    assert "without the stores of all members (Met02 missing), qns verify takes" in outcome.err
    assert "calm" not in {each["do"] for each in outcome.json_lines}


def test_clock_that_was_set_back_does_not_change_the_order(
    cli: Cli, peers: Callable[..., Peers]
) -> None:
    alone = peers(names=["Met01"])
    alone.ask("Met01", Subscribe("ann", "Report", id="s1"))
    alone.now -= 500.0
    alone.ask("Met01", event("e1", "Met01"))
    found = [each["do"] for each in cli("history", *alone.close()).json_lines]
    assert found == ["schema", "join", "start", "sub", "pub", "ntfy", "calm"]


@pytest.mark.parametrize("ahead", ["Met01", "Met02"])
def test_notification_follows_its_publication_when_clocks_differ(
    cli: Cli, peers: Callable[..., Peers], ahead: str
) -> None:
    two = peers()
    two.ahead_s[ahead] = 0.5
    outcome = cli("history", *played(two).close())
    found = [each["do"] for each in outcome.json_lines if each["do"] in ("pub", "take", "ntfy")]
    assert found == ["pub", "take", "ntfy"]
    assert cli("verify", "-", stdin=outcome.out.encode()).status == 0


def test_store_without_records_is_reported_with_a_remedy(
    cli: Cli, peers: Callable[..., Peers]
) -> None:
    outcome = cli("history", *played(peers(recording=False)).close())
    assert (outcome.status, outcome.out) == (2, "")
    assert "Met01 has recorded nothing (write history = true into its configuration)" in outcome.err


def test_store_in_use_is_rejected(cli: Cli, peers: Callable[..., Peers]) -> None:
    two = played(peers())
    outcome = cli("history", *two.paths.values())
    two.close()
    assert (outcome.status, outcome.out) == (2, "")
    assert "Met01.db" in outcome.err


def test_wrong_files_are_reported(cli: Cli, peers: Callable[..., Peers], tmp_path: Path) -> None:
    first, _ = played(peers()).close()
    missing = tmp_path / "nothing.db"
    assert "there is no such file" in cli("history", missing).err
    assert not missing.exists()
    again = shutil.copy(first, tmp_path / "again.db")
    assert "a second store of Met01" in cli("history", first, again).err
