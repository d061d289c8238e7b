"""Fixtures: a single peer on each kind of disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qns.simulation.disks import MemoryDisk, SqliteDisk
from tests.iil.single_peer import SinglePeer

OpenPeer = Callable[..., SinglePeer]


@pytest.fixture(params=[MemoryDisk, SqliteDisk], ids=["memory", "sqlite"])
def open_peer(request: pytest.FixtureRequest) -> Iterator[OpenPeer]:
    """Returns a function that opens a peer with any tuning; discards the disks at the end."""
    opened: list[SinglePeer] = []

    def opener(**tuning: Any) -> SinglePeer:
        opened.append(SinglePeer(request.param, **tuning))
        return opened[-1]

    yield opener
    for each in opened:
        each.close()


@pytest.fixture
def peer(open_peer: OpenPeer) -> SinglePeer:
    return open_peer()
