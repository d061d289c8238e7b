"""Test of the Quality Factory of the examples."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from qns.client import Client

FACTORY = Path(__file__).parents[2] / "examples" / "factory"


def test_factory_publishes_only_changes(peer: str, client: Client, tmp_path: Path) -> None:
    table = tmp_path / "holders.csv"
    shutil.copy(FACTORY / "holders.csv", table)

    def run() -> list[str]:
        words = [sys.executable, str(FACTORY / "factory.py"), str(table), "INPS", peer]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
        return [line.split()[0][:6] for line in done.stdout.splitlines()]

    assert run() == ["E001-1", "E002-1", "E003-1"]
    assert run() == []
    text = table.read_text(encoding="utf-8")
    table.write_text(text.replace("RSSL", "RSSLGU80A01H501X"), encoding="utf-8")
    risen = client.subscribe("Enterprise/Holder where FiscalCode.accuracy rises above medium").id
    assert run() == ["E003-2"]
    (found,) = client.pull(risen)
    assert found.fields["previous"]["Enterprise/Holder.FiscalCode.accuracy"] == 0.2
    assert found.fields["data"]["Enterprise.Code"] == "E003"

    (tmp_path / "holders.quality.json").unlink()  # it was killed before it could remember
    assert run() == ["E001-1", "E002-1", "E003-1"]
    (again,) = client.pull(risen)
    assert again == found, "what was published before is not published again"
