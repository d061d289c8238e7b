"""Events can be pickled, to pass them between processes, and copied."""

from __future__ import annotations

import copy
import pickle
from types import MappingProxyType

import pytest

from qns.cbr.event import Event
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER

READ = EventReader(WEATHER).read(
    '{"id": "1", "class": "Report/Wind", "source": "Met01", "data": {"Speed": 3.5},'
    ' "quality": {"Speed.accuracy": "low"}, "published": "2024-01-31T12:00:00Z",'
    ' "available": "INF"}'
)


@pytest.mark.parametrize(
    "event",
    [
        READ,
        Event("1", "Report", "Met01", {}),
        Event("1", "Report", "Met01", MappingProxyType({"Report.Station": "a"}), {"x": 1}),
    ],
)
def test_an_event_survives_pickling_and_copying(event: Event) -> None:
    for again in (pickle.loads(pickle.dumps(event)), copy.deepcopy(event), copy.copy(event)):
        assert type(again) is Event
        assert again == event
