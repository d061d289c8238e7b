"""A peer process of INPS, for tests with independent SOAP stacks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qns.federation.document_xml import write_federation
from qns.federation.shipped import AGENCIES_FEDERATION

ROOT = Path(__file__).parents[3]
NOBODY_LISTENS = "http://127.0.0.1:{port}/"


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[str]:
    """Starts a new peer of INPS and yields its address; the other organisations run no peers."""
    federation = replace(
        AGENCIES_FEDERATION,
        organisations={
            name: replace(each, endpoint=NOBODY_LISTENS.format(port=port))
            for port, (name, each) in enumerate(AGENCIES_FEDERATION.organisations.items(), 1)
        },
    )
    (tmp_path / "federation.xml").write_bytes(write_federation(federation))
    configuration = tmp_path / "inps.toml"
    configuration.write_text(
        'organisation = "INPS"\nfederation = "federation.xml"\nlisten = "127.0.0.1:0"\n'
        'lineage = "INPS.db.lineage"\n'
        # The others never compare their views; they get only what they have asked for.
        "[tuning]\ncompare_within_s = 0.001\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "qns.cli", "peer", "run", str(configuration)]
    with (
        (tmp_path / "inps.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=ROOT) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            assert line.startswith("INPS listens on http://"), (tmp_path / "inps.log").read_text()
            yield line.split()[-1]
        finally:
            process.terminate()
            assert process.wait(30) == 0
