"""A real peer process of INPS for clients that nobody here wrote."""

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
NOBODY_LISTENS = "http://127.0.0.1:1/"


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[str]:
    """The address of a fresh peer of INPS; of the other organisations no peer runs."""
    federation = replace(
        AGENCIES_FEDERATION,
        organisations={
            name: replace(each, endpoint=NOBODY_LISTENS)
            for name, each in AGENCIES_FEDERATION.organisations.items()
        },
    )
    (tmp_path / "federation.xml").write_bytes(write_federation(federation))
    configuration = tmp_path / "inps.toml"
    configuration.write_text(
        'organisation = "INPS"\nfederation = "federation.xml"\nlisten = "127.0.0.1:0"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "qns.cli", "peer", "run", str(configuration)]
    with (
        (tmp_path / "inps.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=ROOT) as process,
    ):
        try:
            assert process.stdout is not None
            told = process.stdout.readline().decode()
            assert told.startswith("INPS listens on http://"), (tmp_path / "inps.log").read_text()
            yield told.split()[-1]
        finally:
            process.terminate()
            assert process.wait(30) == 0
