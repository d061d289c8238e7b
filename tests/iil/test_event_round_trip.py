"""Every accepted event is read back unchanged after a crash; a rejected one changes nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from qns.d2q.event_xml import read_event
from qns.d2q.shipped import WEATHER
from qns.errors import QnsError
from qns.iil.requests import Deliveries, Publish, PullDeliveries
from tests.iil.single_peer import ME, OWNER, READER, SinglePeer

SHARE = st.floats(0, 1)
EVENTS = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1, max_size=8) | st.integers(0, 10**30),
        "class": st.sampled_from(["Report/Wind/Gust", "gust"]),
        "source": st.just(ME),
        "data": st.fixed_dictionaries(
            {},
            optional={
                "Region": st.text(max_size=8),
                "Station": st.text(max_size=8),
                "Observed": st.datetimes().map(lambda at: at.isoformat() + "Z"),
                "Speed": st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
                "Direction": st.integers(-(2**53), 2**53),
                "Dangerous": st.booleans(),
            },
        ),
    },
    optional={
        "quality": st.fixed_dictionaries({}, optional={"Peak.accuracy": SHARE}),
        "previous": st.fixed_dictionaries(
            {}, optional={"Peak.accuracy": SHARE, "Dangerous.currency": SHARE}
        ),
        "published": st.datetimes().map(lambda at: at.isoformat() + "+02:00"),
        "available": st.just("INF") | st.floats(0, 1e300),
    },
)


@given(fields=EVENTS)
def test_published_event_is_read_back_unchanged_after_a_crash(fields: dict[str, Any]) -> None:
    peer = SinglePeer()
    peer.subscribe("s")
    before = peer.rows()
    try:
        event = READER.from_fields(fields)
        peer.do(Publish(event))
    except QnsError:
        assert peer.rows() == before
        return
    peer.crash()
    answer = peer.do(PullDeliveries(OWNER, "s"))
    assert isinstance(answer, Deliveries)
    (delivery,) = answer.deliveries
    found = read_event(delivery.xml, WEATHER)
    if event.published_us is None:
        found = found._replace(published_us=None)
    assert found == event
    assert peer.violations() == []
    peer.acknowledge("s", 1)
    if not event.available_s:
        assert peer.left_over() == {}
