"""The ledger finds requests and deliveries that the history contradicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.cbr.event import Event
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.history.records import Record, new_record
from qns.iil.requests import Delivery
from tests.soak.ledger import Ledger, Reader

WHO = ("Met01", "s1")


def event(id: str) -> Event:
    return EventReader(WEATHER).from_fields({"id": id, "class": "Report", "source": "Met02"})


def delivery(number: int, id: str) -> Delivery:
    return Delivery(number, "Met02", id, b"")


def kept(*ids: str) -> Ledger:
    """Returns the ledger of one subscription that has read these events."""
    ledger = Ledger()
    ledger.subscribed.add(WHO)
    ledger.readers[WHO] = Reader("")
    for number, id in enumerate(ids, start=1):
        ledger.events["Met02", id] = event(id)
        ledger.published.add(("Met02", id))
        ledger.read(WHO, delivery(number, id), event(id))
    return ledger


def recorded(*ids: str) -> list[Record]:
    """Returns the history that agrees with `kept(*ids)`."""
    records = [new_record("sub", 1.0, "Met01", sub="s1", text="Report", group="")]
    for sequence, id in enumerate(ids, start=1):
        published = {"event": {"id": id}, "joined": 1, "epoch": 1, "sequence": sequence}
        notified = {"sub": "s1", "group": "", "source": "Met02", "event": id}
        records.append(new_record("pub", 2.0, "Met02", **published))
        records.append(new_record("ntfy", 3.0, "Met01", **notified))
    return records


def without(history: list[Record], do: str, place: int = 0) -> list[Record]:
    found = [record for record in history if record["do"] == do][place]
    return [record for record in history if record is not found]


def test_ledger_reports_nothing_if_the_history_agrees() -> None:
    assert kept("e1", "e2").losses(recorded("e1", "e2")) == []


@pytest.mark.parametrize(
    ("do", "loss"),
    [
        ("pub", "lost: publication ('Met02', 'e1')"),
        ("sub", "lost: subscription ('Met01', 's1')"),
        ("ntfy", "read ('Met02', 'e1') as delivery 1, which is not in the history"),
    ],
)
def test_ledger_reports_a_record_that_is_missing_in_the_history(do: str, loss: str) -> None:
    losses = kept("e1", "e2").losses(without(recorded("e1", "e2"), do))
    assert any(loss in each for each in losses)


def test_ledger_reports_a_missing_unsubscription() -> None:
    ledger = kept("e1")
    ledger.unsubscribed.add(WHO)
    assert ledger.losses(recorded("e1")) == ["lost: unsubscription ('Met01', 's1')"]


def test_ledger_reports_a_delivery_that_was_never_read() -> None:
    ledger = kept("e1")
    ledger.events["Met02", "e2"] = event("e2")
    (loss,) = ledger.losses(recorded("e1", "e2"))
    assert loss == "('Met01', 's1') never got delivery 2: ('Met02', 'e2')"
    assert ledger.losses(recorded("e1", "e2"), {(WHO, 2)}) == []


def test_ledger_ignores_unread_deliveries_of_an_ended_subscription() -> None:
    ledger = kept("e1")
    ledger.events["Met02", "e2"] = event("e2")
    ledger.readers[WHO].is_over = True
    assert ledger.losses(recorded("e1", "e2")) == []


def test_ledger_reports_a_publication_that_was_recorded_twice() -> None:
    assert "twice: publication ('Met02', 'e1')" in kept("e1").losses(recorded("e1", "e1"))


def test_ledger_reports_an_event_with_two_delivery_numbers() -> None:
    ledger = kept("e1")
    ledger.read(WHO, delivery(2, "e1"), event("e1"))
    history = [*recorded("e1"), recorded("e1")[-1]]
    assert ledger.losses(history) == ["('Met01', 's1') was notified twice of [('Met02', 'e1')]"]


def test_ledger_reports_an_acknowledged_delivery_that_is_read_again() -> None:
    ledger = kept("e1")
    ledger.readers[WHO].acknowledged = 1
    ledger.read(WHO, delivery(1, "e1"), event("e1"))
    (wrong,) = ledger.wrong
    assert "again, although it had acknowledged up to 1" in wrong


def test_ledger_reports_another_event_with_an_old_number() -> None:
    ledger = kept("e1", "e2")
    ledger.read(WHO, delivery(1, "e2"), event("e2"))
    assert ledger.wrong == ["('Met01', 's1') got ('Met02', 'e2') with the old number 1"]


def test_ledger_reports_an_event_that_differs_from_the_published_one() -> None:
    ledger = kept()
    ledger.events["Met02", "e1"] = event("e1")
    ledger.read(WHO, delivery(1, "e1"), event("e1")._replace(data_class="Report/Wind"))
    (wrong,) = ledger.wrong
    assert "differs from what was published" in wrong
    assert replace(ledger.readers[WHO]).cursor == 1
