"""Offices on both kinds of disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qns.simulation.disks import MemoryDisk, SqliteDisk
from tests.iil.office import Office

OpenOffice = Callable[..., Office]


@pytest.fixture(params=[MemoryDisk, SqliteDisk], ids=["memory", "sqlite"])
def open_office(request: pytest.FixtureRequest) -> Iterator[OpenOffice]:
    """Opens an office, with any tuning; whatever happens in it, its disk goes in the end."""
    opened: list[Office] = []

    def opener(**tuning: Any) -> Office:
        opened.append(Office(request.param, **tuning))
        return opened[-1]

    yield opener
    for each in opened:
        each.close()


@pytest.fixture
def office(open_office: OpenOffice) -> Office:
    return open_office()
