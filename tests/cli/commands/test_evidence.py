"""Evidence of peer processes: kept, stamped by a real authority, exported and verified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from qns.evidence import timestamps
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.roots_xml import write_anchor
from qns.iil.requests import Deliveries, PullDeliveries, Subscribe
from tests.cli.conftest import Cli
from tests.evidence.authority import (
    TimestampingAuthority,
    needs_openssl,
    new_authority,
    serving,
)
from tests.federation.signing import anchor_of, root_set, sign
from tests.runtime.peers import (
    QUICK,
    PeerProcess,
    agencies_on_loopback,
    change,
    eventually,
    peer_in,
    running,
    wait_until_stable,
)
from tests.runtime.test_seals import SEALS, seal_files
from tests.runtime.tls_stage import install

pytestmark = pytest.mark.slow


@dataclass
class Agencies:
    folder: Path
    federation: Federation
    inps: PeerProcess
    inail: PeerProcess

    def publish(self, *events: str) -> None:
        """Publishes at INPS and waits until INAIL has the events."""
        for event in events:
            self.inps.ask(change(event))
        eventually(lambda: events[-1] in self.read(), f"{events[-1]} arrives")

    def read(self) -> list[str]:
        answer = self.inail.ask(PullDeliveries("ada", "1", limit=500))
        assert isinstance(answer, Deliveries)
        return [each.event for each in answer.deliveries]


@pytest.fixture
def agencies(tmp_path: Path) -> Iterator[Agencies]:
    """Starts INPS and INAIL with seals and root keys; INAIL keeps evidence."""
    yield from _agencies(tmp_path, "[evidence]\nkeep_days = 365\n")


def _agencies(folder: Path, evidence: str) -> Iterator[Agencies]:
    federation = signed(agencies_on_loopback().without("CoC"), version=1)
    (folder / "anchor").write_bytes(write_anchor(anchor_of(federation)))
    peers = []
    for name in ("INPS", "INAIL"):
        seal_files(folder / name, name, SEALS[name])
        seal = f'[seal]\ncertificate = "{name}.seal.pem"\nkey = "{name}.seal.key"\n'
        more = 'anchor = "../anchor"\n' + QUICK + seal + (evidence if name == "INAIL" else "")
        peers.append(peer_in(folder / name, federation, name, more))
    with running(peers):
        made = Agencies(folder, federation, *peers)
        made.inail.ask(Subscribe("ada", "Enterprise/Holder", id="1"))
        wait_until_stable(made.inail, "ada")
        yield made


def signed(federation: Federation, *, version: int) -> Federation:
    """Returns this version with seals, signed by two root keys."""
    members = {
        name: replace(each, seals=each.seals or (SEALS[name].certificate,))
        for name, each in federation.organisations.items()
    }
    made = replace(
        federation,
        version=version,
        organisations=members,
        roots=(root_set(1, 2, 1, 2, 3),),
        expires=datetime(2100, 1, 1, tzinfo=UTC),
        signatures=(),
    )
    return sign(made, 1, 2)


def exported(cli: Cli, agencies: Agencies, event: str, *source: object) -> Path:
    file = agencies.folder / f"{event}.json"
    made = cli("evidence", "export", event, *source, "-o", file)
    assert made.status == 0, made.err
    assert f"event {event} of INPS" in made.out
    return file


def from_peer(agencies: Agencies) -> tuple[object, ...]:
    return "--config", agencies.inail.configuration


def verified(cli: Cli, agencies: Agencies, file: Path, *more: object) -> Any:
    return cli("evidence", "verify", file, "--anchor", agencies.folder / "anchor", "--json", *more)


def test_evidence_of_a_running_peer_is_proved_and_an_altered_file_is_not(
    agencies: Agencies, cli: Cli
) -> None:
    agencies.publish("e1")
    file = exported(cli, agencies, "e1", *from_peer(agencies))
    found = verified(cli, agencies, file)
    assert found.status == 0, found.out
    assert found.json["proved"]
    assert (found.json["source"], found.json["receiver"]) == ("INPS", "INAIL")
    fields = json.loads(file.read_text())
    fields["event"]["text"] = fields["event"]["text"].replace("Mecalla", "Macelli")
    file.write_text(json.dumps(fields))
    shown = cli("evidence", "verify", file, "--anchor", agencies.folder / "anchor")
    assert shown.status == 1
    assert "not proved: broken at event → leaf" in shown.out
    file.write_text("{}")
    assert cli("evidence", "verify", file).status == 2


def test_event_that_the_peer_does_not_know_has_no_evidence(agencies: Agencies, cli: Cli) -> None:
    agencies.publish("e1")
    out = agencies.folder / "none.json"
    for peer, event in ((agencies.inail, "e2"), (agencies.inps, "e1")):
        made = cli("evidence", "export", event, "--config", peer.configuration, "-o", out)
        assert made.status == 2
        assert f"there is no evidence of event {event}" in made.err
        assert not out.exists()


def test_evidence_comes_from_a_stopped_store_and_from_backups(agencies: Agencies, cli: Cli) -> None:
    agencies.publish("e1")
    folder, peer = agencies.folder, agencies.inail
    assert cli("peer", "backup-key", folder / "a.key").status == 0
    key = ("--key", folder / "a.key")
    assert cli("peer", "backup", peer.configuration, folder / "plain").status == 0
    assert cli("peer", "backup", peer.configuration, folder / "secret", *key).status == 0
    peer.stop()
    own = exported(cli, agencies, "e1", "--store", folder / "INAIL" / "INAIL.db").read_bytes()
    for source in (("--store", folder / "plain"), ("--store", folder / "secret", *key)):
        file = exported(cli, agencies, "e1", *source)
        assert file.read_bytes() == own
        assert verified(cli, agencies, file).status == 0
    refused = cli("evidence", "export", "e1", "--store", folder / "secret", "-o", folder / "x")
    assert "is encrypted" in refused.err
    assert not list(folder.glob(".evidence-*"))


def test_evidence_is_proved_after_its_producer_has_left_and_the_peer_was_restarted(
    agencies: Agencies, cli: Cli
) -> None:
    agencies.publish("e1")
    federation = signed(agencies.federation.without("INPS"), version=2)
    install(agencies.inail, federation)
    agencies.inail.stop()
    agencies.inail.start()
    file = exported(cli, agencies, "e1", *from_peer(agencies))
    assert verified(cli, agencies, file).status == 0
    assert read_version(file) == 1
    newer = agencies.folder / "newer.xml"
    newer.write_bytes(write_federation(federation))
    assert verified(cli, agencies, file, "--document", newer).status == 0


def read_version(file: Path) -> int:
    return read_federation(json.loads(file.read_text())["document"].encode()).version


def test_missing_library_is_an_error_and_no_broken_link(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timestamps, "find_spec", lambda _: None)
    folder = "examples/evidence"
    refused = cli("evidence", "verify", f"{folder}/gust-1.json", "--tsa", f"{folder}/tsa.pem")
    assert refused.status == 2
    assert "qns[evidence]" in refused.err


@needs_openssl
def test_timestamps_come_beside_the_traffic_also_after_the_authority_had_failed(
    tmp_path: Path, cli: Cli
) -> None:
    made = new_authority(tmp_path / "tsa")
    made.fails = True
    with serving(made):
        section = (
            f'[evidence]\nkeep_days = 365\ntimestamps = "{made.url}"\n'
            'timestamp_authority = "../tsa/root.pem"\ntimestamp_every_s = 0.2\n'
        )
        for agencies in _agencies(tmp_path, section):
            agencies.publish("e1", "e2")
            eventually(lambda: made.requests, "the authority is asked")
            file = exported(cli, agencies, "e1", *from_peer(agencies))
            assert json.loads(file.read_text())["timestamp"] is None
            eventually(lambda a=agencies: _complains(a.inail), "the log says why")  # type: ignore[misc]
            made.fails = False
            file = eventually(lambda a=agencies: _stamped(cli, a, "e1"), "e1 is stamped")  # type: ignore[misc]
            agencies.publish("e3")
            _check_stamps(cli, agencies, made, file)


def _complains(peer: PeerProcess) -> bool:
    return any(
        each["message"] == "no timestamp" and "status 500" in each["reason"]
        for each in peer.records()
    )


def _stamped(cli: Cli, agencies: Agencies, event: str) -> Path | None:
    file = exported(cli, agencies, event, *from_peer(agencies))
    return None if json.loads(file.read_text())["timestamp"] is None else file


def _check_stamps(cli: Cli, agencies: Agencies, made: TimestampingAuthority, first: Path) -> None:
    third = eventually(lambda: _stamped(cli, agencies, "e3"), "e3 is stamped")
    second = exported(cli, agencies, "e2", *from_peer(agencies))
    for file in (first, second, third):
        found = verified(cli, agencies, file, "--tsa", made.certificate)
        assert found.status == 0, found.out
        assert found.json["links"][-1]["outcome"] == "holds"
    other = new_authority(agencies.folder / "other", "Other TSA")
    assert verified(cli, agencies, first, "--tsa", other.certificate).status == 1
    assert agencies.inail.health()["status"] == "ok"
