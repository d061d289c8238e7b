"""A refused request leaves everything as it was: every row, the history, what comes next."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import (
    DocumentError,
    LanguageError,
    LimitExceeded,
    NameNotKnown,
    QnsError,
    Unsatisfiable,
    ValueRefused,
)
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
from tests.iil.conftest import OpenOffice
from tests.iil.office import OWNER, Office

LONG = "x" * 201

REFUSED: dict[str, tuple[Subscribe, type[QnsError]]] = {
    "no text": (Subscribe(OWNER, ""), LanguageError),
    "bad text": (Subscribe(OWNER, "Report where"), LanguageError),
    "unknown class": (Subscribe(OWNER, "Rapport"), NameNotKnown),
    "unknown property": (Subscribe(OWNER, "Report where Speed > 3"), NameNotKnown),
    "wrong type": (Subscribe(OWNER, 'Report/Wind where Speed > "fast"'), ValueRefused),
    "unsatisfiable": (
        Subscribe(OWNER, "Report/Wind where Speed > 3 and Speed < 2"),
        Unsatisfiable,
    ),
    "half a surrogate": (Subscribe(OWNER, 'Report where Region = "\ud800"'), ValueRefused),
    "bad XML": (Subscribe(OWNER, "<?xml version='1.0'?><subscription>"), DocumentError),
    "long text": (Subscribe(OWNER, "Report" + " " * 1_100_000), LimitExceeded),
    "long owner": (Subscribe(LONG, "Report"), ValueRefused),
    "long id": (Subscribe(OWNER, "Report", LONG), ValueRefused),
    "long group": (Subscribe(OWNER, "Report", "s", LONG), ValueRefused),
    "NUL in an owner": (Subscribe("a\0b", "Report"), ValueRefused),
    "a line break in an id": (Subscribe(OWNER, "Report", "a\nb"), ValueRefused),
    "half a surrogate in a group": (Subscribe(OWNER, "Report", "s", "\ud800"), ValueRefused),
    "no lifetime": (Subscribe(OWNER, "Report", "s", lifetime_s=0), ValueRefused),
    "negative lifetime": (Subscribe(OWNER, "Report", "s", lifetime_s=-1), ValueRefused),
    "lifetime NaN": (Subscribe(OWNER, "Report", "s", lifetime_s=nan), ValueRefused),
    "lifetime -INF": (Subscribe(OWNER, "Report", "s", lifetime_s=-inf), ValueRefused),
}


def busy_office(office: Office) -> Office:
    office.subscribe("active")
    office.subscribe("paused")
    office.subscribe("member", group="desk")
    office.pause("paused")
    office.publish("e1", available=100)
    return office


@pytest.mark.parametrize(("request_", "error"), REFUSED.values(), ids=REFUSED)
def test_a_subscription_that_is_refused_changes_nothing(
    office: Office, request_: Subscribe, error: type[QnsError]
) -> None:
    busy_office(office)
    before, told = office.rows(), len(office.world.history)
    with pytest.raises(error):
        office.do(request_)
    assert office.rows() == before
    assert len(office.world.history) == told
    assert len(office.gateway.peer.iil.table) == 3
    office.publish("e2")
    office.crash()
    assert office.events("active") == ["e1", "e2"]


def test_names_may_be_as_long_as_the_limit(office: Office) -> None:
    name = "é" * 200
    office.do(Subscribe(name, "Report", name, name))
    office.publish("e1")
    office.crash()
    answer = office.do(Read(name, name))
    assert len(answer.deliveries) == 1  # type: ignore[union-attr]


def test_a_full_table_refuses_a_newcomer_and_changes_nothing(open_office: OpenOffice) -> None:
    office = open_office(most_subscriptions=2)
    office.subscribe("s")
    office.subscribe("t")
    before = office.rows()
    with pytest.raises(LimitExceeded):
        office.subscribe("u")
    assert office.rows() == before
    office.unsubscribe("s")
    office.subscribe("u")


STRANGE: dict[str, Request] = {
    "read": Read(OWNER, "nobody"),
    "pause": Pause(OWNER, "nobody"),
    "resume": Resume(OWNER, "nobody"),
    "renew": Renew(OWNER, "nobody"),
    "unsubscribe": Unsubscribe(OWNER, "nobody"),
    "acknowledge": AcknowledgeDeliveries(OWNER, "nobody", 1),
    "an id that is no text": Read(OWNER, "\ud800\0" * 10_000),
}


@pytest.mark.parametrize("request_", STRANGE.values(), ids=STRANGE)
def test_what_does_not_exist_is_refused_with_near_misses_of_ones_own(
    office: Office, request_: Request
) -> None:
    busy_office(office)
    before = office.rows()
    with pytest.raises(NameNotKnown) as error:
        office.do(request_)
    assert len(str(error.value)) < 500
    assert office.rows() == before


@pytest.mark.parametrize("lifetime_s", [0, -1, nan, -inf])
def test_a_renewal_without_a_lifetime_is_refused(office: Office, lifetime_s: float) -> None:
    office.subscribe("s", lifetime_s=50)
    before = office.rows()
    with pytest.raises(ValueRefused):
        office.renew("s", lifetime_s)
    assert office.rows() == before


@given(text=st.text(max_size=40) | st.text("Report/Wind<>, :{}where=\"'", max_size=30))
def test_whatever_the_text_it_is_refused_or_survives_a_crash(text: str) -> None:
    office = Office()
    before = office.rows()
    try:
        office.subscribe("s", text)
    except QnsError:
        assert office.rows() == before
    else:
        office.crash()
        assert [row.text for row in office.rows()["subscriptions"]] == [text]


@given(owner=st.text(max_size=5), id=st.text(max_size=5), group=st.text(max_size=5))
def test_whatever_the_names_they_are_refused_or_survive_a_crash(
    owner: str, id: str, group: str
) -> None:
    office = Office()
    before = office.rows()
    try:
        answer = office.do(Subscribe(owner, "Report", id, group))
    except QnsError:
        assert office.rows() == before
        return
    office.crash()
    office.publish("e1")
    assert len(office.do(Read(owner, answer.id)).deliveries) == 1  # type: ignore[union-attr]
