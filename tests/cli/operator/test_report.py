"""Tests of `qns peer report`: what the archive has, and that it has no payloads and secrets."""

from __future__ import annotations

import json
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import AGENCIES
from qns.errors import QnsError
from qns.iil.requests import Publish, Subscribe
from qns.store.backup_key import read_key
from tests.cli.conftest import Cli
from tests.runtime.peers import PeerProcess, agencies_on_loopback, configure

PLANTED = {
    "value": "PLANTED-VALUE-73H17",
    "name": "PLANTED-PERSON",
    "constraint": "PLANTED-CONSTRAINT",
    "unknown": "PLANTED-UNKNOWN-NAME",
    "syntax": "PLANTED-SYNTAX",
    "soap": "PLANTED-SOAP-BODY",
    "environment": "PLANTED-ENVIRONMENT",
}


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PeerProcess]:
    """Runs INPS, which gets planted texts in every place that takes texts."""
    monkeypatch.setenv("QNS_PASSWORD", PLANTED["environment"])
    federation = agencies_on_loopback()
    more = '[log]\nlevel = "debug"\n'
    process = PeerProcess(
        configure(tmp_path, federation, "INPS", more), federation["INPS"].endpoint
    )
    process.start()
    plant(process)
    yield process
    process.stop()


def plant(peer: PeerProcess) -> None:
    fields = {
        "id": "e1",
        "class": "Enterprise/Holder",
        "source": "INPS",
        "data": {"Name": PLANTED["name"], "FiscalCode": PLANTED["value"]},
        "quality": {"Name.Accuracy": "low"},
    }
    text = f'Enterprise/Holder where FiscalCode = "{PLANTED["constraint"]}"'
    requests = (
        Subscribe("anna", "Enterprise/Holder", id="S1"),
        Subscribe("anna", text, id="S2"),
        Subscribe("anna", f"Enterprise/Holder where {PLANTED['unknown']} = 1", id="S3"),
        Subscribe("anna", f"Enterprise/Holder whree {PLANTED['syntax']}", id="S4"),
        Publish(EventReader(AGENCIES).from_fields(fields)),
        Publish(EventReader(AGENCIES).from_fields({**fields, "data": {"Name": "other"}})),
    )
    for request in requests:
        with suppress(QnsError):
            peer.ask(request)
    peer.http("POST", "/local", PLANTED["soap"].encode(), SOAPAction=PLANTED["soap"])


def content_of(path: Path) -> dict[str, bytes]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(path) as packed:
        found = {}
        for name in packed.getnames():
            file = packed.extractfile(name)
            assert file is not None
            found[name] = file.read()
        return found


@pytest.mark.parametrize("name", ["report.zip", "report.tar.gz"])
def test_report_has_diagnostics_and_neither_payloads_nor_secrets(
    peer: PeerProcess, cli: Cli, tmp_path: Path, name: str
) -> None:
    key = tmp_path / "a.key"
    cli("peer", "backup-key", key)
    cli("peer", "backup", peer.configuration, tmp_path / "copy", "--key", key)
    outcome = cli("peer", "report", peer.configuration, tmp_path / name)
    assert outcome.status == 0, outcome.err
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    parts = content_of(tmp_path / name)

    kept = b"".join(each.read_bytes() for each in tmp_path.glob("INPS.db*") if each.is_file())
    for where in ("value", "name", "constraint"):
        assert PLANTED[where].encode() in kept, "the peer has what the report must not have"
    nonces = (tmp_path / "INPS.db.lineage").read_text().split("nonce ")[1:]
    secrets = [each.split()[0] for each in nonces] + [read_key(key).secret.hex()]
    everything = b"\n".join(parts.values()).decode()
    for planted in (*PLANTED.values(), *secrets):
        assert planted not in everything

    store = json.loads(parts["store.json"])
    assert store["checksums"] == "ok"
    assert store["journal_mode"] == "wal"
    assert store["files"]["INPS.db"]["mode"] == "600"
    assert json.loads(parts["platform.json"])["libraries"]["apsw"]
    configuration = json.loads(parts["configuration.json"])
    assert configuration["organisation"] == "INPS"
    assert configuration["log_level"] == "DEBUG"
    status = json.loads(parts["status.json"])
    assert status["subscriptions"] == 2
    assert {each["other"] for each in status["links"]} == {"INAIL", "CoC"}
    assert json.loads(parts["health.json"])["status"] in ("ok", "degraded")
    assert b"qns_events_kept" in parts["metrics.txt"]
    lines = [json.loads(line) for line in parts["log.jsonl"].splitlines()]
    assert "started" in [each["message"] for each in lines]
    assert any("refused" in each["message"] for each in lines)


def test_report_does_not_overwrite_a_file_and_needs_a_known_ending(
    peer: PeerProcess, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "old.zip").write_text("precious")
    refused = cli("peer", "report", peer.configuration, tmp_path / "old.zip")
    assert "exists already" in refused.err
    assert (tmp_path / "old.zip").read_text() == "precious"
    unknown = cli("peer", "report", peer.configuration, tmp_path / "report.rar")
    assert "ends with .zip or .tar.gz" in unknown.err
    assert not (tmp_path / "report.rar").exists()
    assert cli("peer", "report", peer.configuration, tmp_path / "none" / "r.zip").status == 2
