"""A federation of three peers for the tests of the operator's commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.peers import QUICK, PeerProcess, agencies

TUNING = f"history = true\n{QUICK}publications_remembered = 1\n"
"""With one publication remembered, a Quality Factory can use an id twice."""


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PeerProcess]]:
    folder: Path = tmp_path_factory.mktemp("peers")
    with agencies(folder, TUNING) as running:
        yield running
