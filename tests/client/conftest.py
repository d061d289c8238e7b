"""Fixtures with running peers for the tests of the clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from qns.client import Client
from tests.client.peers import LossyWire, PeerProcess, running_peer


@pytest.fixture(scope="session")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a peer that all tests share. Each test has its own owner."""
    process = PeerProcess(tmp_path_factory.mktemp("peer"))
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture
def own_peer(tmp_path: Path) -> Iterator[PeerProcess]:
    """A peer of one test, which may be killed."""
    with running_peer(tmp_path) as process:
        yield process


@pytest.fixture
def owner() -> str:
    return f"user-{uuid4().hex[:8]}"


@pytest.fixture
def client(peer: str, owner: str) -> Iterator[Client]:
    with Client(peer, owner) as made:
        yield made


@pytest.fixture
def wire(peer: str) -> Iterator[LossyWire]:
    made = LossyWire(peer)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def mark() -> str:
    """A fiscal code that only this test uses, so that tests do not see each other's events."""
    return uuid4().hex
