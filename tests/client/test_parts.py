"""Tests of the parts of the clients that need no peer."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf

import pytest

from qns.client.address import Address
from qns.client.delivered import Delivered, fields_of
from qns.client.patience import LONGEST_PAUSE_S, Patience
from qns.client.publication import publication
from qns.client.reading_progress import ACKNOWLEDGE_EVERY_S, FRESH_S, ReadingProgress
from qns.d2q.event_json import EventReader, write_event_json
from qns.d2q.event_xml import write_event
from qns.d2q.schema_files import load_schema
from qns.errors import ValueRefused
from qns.iil.cursor import Cursor
from qns.soap.typed_event import TypedQuality, TypedValue, to_event

WEATHER = load_schema("weather")
GUST = {
    "id": "g1",
    "class": "Report/Wind/Gust",
    "source": "Met03",
    "data": {"Peak": 31.5, "Dangerous": True, "Observed": "2024-01-31T12:00:00Z", "Direction": 90},
    "quality": {"Peak.accuracy": 0.3, "Dangerous.currency": "high"},
    "previous": {"Peak.accuracy": 1, "Peak.completeness": 0.25},
    "available": "INF",
}


@pytest.mark.parametrize(
    ("peer", "url"),
    [
        ("http://127.0.0.1:8701/", "http://127.0.0.1:8701/local"),
        ("http://127.0.0.1:8701", "http://127.0.0.1:8701/local"),
        ("http://localhost/qns", "http://localhost:80/qns/local"),
        ("http://[::1]:9/", "http://[::1]:9/local"),
    ],
)
def test_address_of_the_users_port_is_below_the_base_address(peer: str, url: str) -> None:
    assert Address.of(peer).url == url
    assert Address.of(Address.of(peer).base).url == url


@pytest.mark.parametrize(
    ("peer", "problem"),
    [
        ("https://127.0.0.1:8701/", "only http"),
        ("http://qns.inps.example/", "not this machine.*mutual TLS"),
        ("http://10.0.0.1/", "not this machine"),
        ("127.0.0.1:8701", "not the address of a peer"),
        ("http://127.0.0.1:x/", "not the address of a peer"),
        ("http://127.0.0.1:99999/", "not the address of a peer"),
        ("http://127.0.0.1:1/\r\nX: y", "not the address of a peer"),
        ("http:///", "not the address of a peer"),
        ("", "not the address of a peer"),
    ],
)
def test_other_addresses_are_rejected_with_the_reason(peer: str, problem: str) -> None:
    with pytest.raises(ValueRefused, match=problem):
        Address.of(peer)


def test_pauses_grow_up_to_a_bound_and_end_at_the_deadline() -> None:
    patience = Patience(until=100.0)
    pauses = [patience.next_pause_s(0.0) or 0.0 for _ in range(20)]
    assert 0 < pauses[0] <= 0.1
    assert LONGEST_PAUSE_S / 2 <= pauses[-1] <= LONGEST_PAUSE_S
    assert patience.next_pause_s(99.9) is None
    assert Patience(until=0.0).next_pause_s(0.0) is None
    assert Patience(until=inf).next_pause_s(1e9) is not None


def delivery(number: int) -> Delivered:
    return Delivered(number, "INPS", f"e{number}", b"")


def test_fast_readers_acknowledge_batches_and_slow_readers_each_event() -> None:
    state = ReadingProgress.after(Cursor(0), now=0.0)
    state.pulled(map(delivery, (1, 2, 3)), now=0.0)
    for number in (1, 2, 3):
        state.consume()
        assert not state.wants_acknowledgement(now=0.1)
        assert state.take(now=0.1) == delivery(number)
    state.consume()
    assert state.wants_acknowledgement(now=0.1), "the batch is used up"
    state.was_acknowledged(3, now=0.1)
    assert not state.wants_acknowledgement(now=9.0)

    state.pulled(map(delivery, (4, 5)), now=0.2)
    state.take(now=0.2)
    state.consume()
    assert not state.wants_acknowledgement(now=0.3)
    assert state.wants_acknowledgement(now=0.3 + ACKNOWLEDGE_EVERY_S)


def test_stale_deliveries_are_pulled_again() -> None:
    state = ReadingProgress.after(Cursor(0), now=0.0)
    state.pulled(map(delivery, (1, 2)), now=0.0)
    assert state.take(now=0.0) == delivery(1)
    assert state.take(now=FRESH_S + 0.1) is None
    assert state.returned == Cursor(1)


def test_event_is_sent_without_its_schema() -> None:
    sent = publication(GUST, "maria", None)
    assert to_event(sent.event, WEATHER) == EventReader(WEATHER).from_fields(GUST)


def test_values_are_written_in_the_format_of_the_peer() -> None:
    data = {
        "a": 1e-7,
        "b": Decimal("2.50"),
        "c": date(2024, 1, 31),
        "d": datetime(2024, 1, 31, 12, tzinfo=UTC),
        "e": False,
        "f": 12,
    }
    event = {"id": 7, "class": "X", "source": "Y", "data": data, "previous": {"P.currency": 0.5}}
    sent = publication(event, "maria", None).event
    assert sent.id == "7"
    assert [value for _, value in sent.data] == [
        *("0.0000001", "2.50", "2024-01-31", "2024-01-31T12:00:00Z", "false", "12")
    ]
    assert sent.data[0] == TypedValue("a", "0.0000001")
    assert sent.quality == (TypedQuality("P", "currency", None, "0.5"),)


def test_event_is_read_without_its_schema() -> None:
    event = EventReader(WEATHER).from_fields({**GUST, "published": "2024-01-31T12:00:00Z"})
    typed = write_event_json(event, WEATHER)
    plain = fields_of(write_event(event, WEATHER))
    texts = {name: str(value) for name, value in typed["data"].items()}
    texts["Report/Wind/Gust.Dangerous"] = "true"
    assert plain == {**typed, "data": texts}
    assert to_event(publication(plain, "maria", None).event, WEATHER) == event


def test_import_of_qns_client_loads_neither_aiohttp_nor_spyne() -> None:
    code = "import sys, qns.client; sys.exit('aiohttp' in sys.modules or 'spyne' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
