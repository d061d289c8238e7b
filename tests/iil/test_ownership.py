"""A subscription belongs to its owner: to everybody else it does not exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qns.errors import DuplicateId, NameNotKnown
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Pause,
    Read,
    Renew,
    Request,
    Resume,
    Subscribe,
    Unsubscribe,
)
from tests.iil.office import Office

INTRUSIONS: dict[str, Callable[[str, str], Request]] = {
    "read": Read,
    "pause": Pause,
    "resume": Resume,
    "renew": Renew,
    "unsubscribe": Unsubscribe,
    "acknowledge": lambda owner, id: AcknowledgeDeliveries(owner, id, 1),
}


@pytest.mark.parametrize("paused", [False, True], ids=["active", "paused"])
@pytest.mark.parametrize("intrusion", INTRUSIONS.values(), ids=INTRUSIONS)
def test_another_owner_can_do_nothing_with_it(
    office: Office, intrusion: Callable[[str, str], Request], paused: bool
) -> None:
    office.subscribe("secret")
    office.subscribe("of bob", owner="bob")
    office.publish("e1")
    if paused:
        office.pause("secret")
    before = office.rows()
    with pytest.raises(NameNotKnown):
        office.do(intrusion("bob", "secret"))
    assert office.rows() == before
    office.crash()
    with pytest.raises(NameNotKnown):
        office.do(intrusion("bob", "secret"))
    assert office.read("secret") == [(1, "e1")]


@pytest.mark.parametrize("intrusion", INTRUSIONS.values(), ids=INTRUSIONS)
def test_another_owner_is_told_the_same_as_if_it_did_not_exist(
    intrusion: Callable[[str, str], Request],
) -> None:
    told = []
    for exists in (True, False):
        office = Office()
        office.subscribe("of bob", owner="bob")
        if exists:
            office.subscribe("of ann")
        with pytest.raises(NameNotKnown) as error:
            office.do(intrusion("bob", "of ann"))
        told.append(str(error.value))
    assert told[0] == told[1]
    assert "of bob" in told[0]


def test_another_owner_cannot_take_over_its_id(office: Office) -> None:
    office.subscribe("s")
    before = office.rows()
    with pytest.raises(DuplicateId):
        office.do(Subscribe("bob", "Report", "s"))
    assert office.rows() == before


def test_each_owner_reads_and_acknowledges_for_himself(office: Office) -> None:
    office.subscribe("s")
    office.subscribe("t", owner="bob")
    office.publish("e1", "e2")
    office.acknowledge("s", 2)
    office.crash()
    answer = office.do(Read("bob", "t"))
    assert [each.event for each in answer.deliveries] == ["e1", "e2"]  # type: ignore[union-attr]


def test_the_owner_is_remembered_across_a_crash(office: Office) -> None:
    office.subscribe("s")
    office.crash()
    with pytest.raises(NameNotKnown):
        office.do(Unsubscribe("bob", "s"))
    assert office.unsubscribe("s") == 0
