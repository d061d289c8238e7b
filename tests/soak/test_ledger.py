"""The ledger: what was answered for and is not in the history is told, as is what was misread."""

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
    """A subscription that has read these events, and all was answered."""
    ledger = Ledger()
    ledger.subscribed.add(WHO)
    ledger.readers[WHO] = Reader("")
    for number, id in enumerate(ids, start=1):
        ledger.events["Met02", id] = event(id)
        ledger.published.add(("Met02", id))
        ledger.read(WHO, delivery(number, id), event(id))
    return ledger


def told(*ids: str) -> list[Record]:
    """The history of the same."""
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


def test_what_fits_together_is_no_loss() -> None:
    assert kept("e1", "e2").losses(told("e1", "e2")) == []


@pytest.mark.parametrize(
    ("do", "loss"),
    [
        ("pub", "lost: publication ('Met02', 'e1')"),
        ("sub", "lost: subscription ('Met01', 's1')"),
        ("ntfy", "read ('Met02', 'e1') as delivery 1, not in the history"),
    ],
)
def test_what_is_missing_in_the_history_is_a_loss(do: str, loss: str) -> None:
    losses = kept("e1", "e2").losses(without(told("e1", "e2"), do))
    assert any(loss in each for each in losses)


def test_an_unsubscription_that_was_forgotten_is_a_loss() -> None:
    ledger = kept("e1")
    ledger.unsubscribed.add(WHO)
    assert ledger.losses(told("e1")) == ["lost: unsubscription ('Met01', 's1')"]


def test_what_was_notified_and_never_read_is_a_loss() -> None:
    ledger = kept("e1")
    ledger.events["Met02", "e2"] = event("e2")
    (loss,) = ledger.losses(told("e1", "e2"))
    assert loss == "('Met01', 's1') never got delivery 2: ('Met02', 'e2')"
    assert ledger.losses(told("e1", "e2"), {(WHO, 2)}) == []


def test_whoever_unsubscribed_need_not_read_the_rest() -> None:
    ledger = kept("e1")
    ledger.events["Met02", "e2"] = event("e2")
    ledger.readers[WHO].is_over = True
    assert ledger.losses(told("e1", "e2")) == []


def test_a_publication_made_twice_is_told() -> None:
    assert "twice: publication ('Met02', 'e1')" in kept("e1").losses(told("e1", "e1"))


def test_an_event_under_two_numbers_is_told() -> None:
    ledger = kept("e1")
    ledger.read(WHO, delivery(2, "e1"), event("e1"))
    history = [*told("e1"), told("e1")[-1]]
    assert ledger.losses(history) == ["('Met01', 's1') was notified twice of [('Met02', 'e1')]"]


def test_what_was_acknowledged_may_not_come_again() -> None:
    ledger = kept("e1")
    ledger.readers[WHO].acknowledged = 1
    ledger.read(WHO, delivery(1, "e1"), event("e1"))
    (wrong,) = ledger.wrong
    assert "again, acknowledged up to 1" in wrong


def test_another_event_under_a_number_that_was_read_is_told() -> None:
    ledger = kept("e1", "e2")
    ledger.read(WHO, delivery(1, "e2"), event("e2"))
    assert ledger.wrong == ["('Met01', 's1') got ('Met02', 'e2') under number 1, read before"]


def test_an_event_that_changed_on_its_way_is_told() -> None:
    ledger = kept()
    ledger.events["Met02", "e1"] = event("e1")
    ledger.read(WHO, delivery(1, "e1"), event("e1")._replace(data_class="Report/Wind"))
    (wrong,) = ledger.wrong
    assert "not as it was published" in wrong
    assert replace(ledger.readers[WHO]).cursor == 1
