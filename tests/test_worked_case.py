"""The worked case of semantics §10 (thesis table 5.1 and figure 5.5), from text to deliveries."""

from __future__ import annotations

import pytest

from qns.cbr.covering import CoveringOrder
from qns.cbr.delta import Delta
from qns.cbr.event import Event
from qns.cbr.index import DictionaryIndex, MatchingIndex
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.d2q.event_json import EventReader
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import AGENCIES
from qns.federation.shipped import AGENCIES_MAPPING

S1, S2, S3, S4 = (
    parse_subscription(text, AGENCIES)
    for text in (
        "<Enterprise/Holder, ⊥, ⊥>",
        "<Enterprise/Holder, ⊥, Name.Accuracy ≤ medium>",
        '<Enterprise/Holder, FiscalCode = "MCLMSM73H17H501F", Name.Accuracy ≤ medium>',
        '<Enterprise/Holder : {INPS, INAIL}, FiscalCode = "MCLMSM73H17H501F", '
        "Name.Accuracy ≤ medium>",
    )
)

INPS = {"U11": S1, "U12": S2, "U13": S3}
INAIL = {"U21": S3, "U22": S4}


def event(id: str, name: str, address: str, fiscal_code: str, accuracy: str) -> Event:
    return EventReader(AGENCIES).from_fields(
        {
            "id": id,
            "class": "Enterprise/Holder",
            "source": "CoC",
            "data": {"Name": name, "Address": address, "FiscalCode": fiscal_code},
            "quality": {"name.Accuracy": accuracy},
        }
    )


E1 = event("e1", "M. Mecalla", "Via dei Gracchi 71, Roma", "MCLMSM73H17H501F", "low")
E2 = event("e2", "M. Scannapieco", "Via Mazzini 27, Pagani (SA)", "SCNMNC74S70G230T", "medium")


def merge(users: dict[str, Subscription]) -> CoveringOrder[str]:
    order: CoveringOrder[str] = CoveringOrder()
    for user, subscription in users.items():
        order.subscribe(user, subscription)
    return order


def seen_by(producer: str, users: dict[str, Subscription]) -> frozenset[Subscription]:
    hosted = AGENCIES_MAPPING.hosted_by(producer)
    return ProducerView(producer, hosted, merge(users).merge_set).subscriptions


def without_sources(subscription: Subscription, producer: str) -> Subscription:
    projected = subscription.projected(producer, AGENCIES.classes)
    assert projected is not None
    return projected


def test_each_subscription_contains_the_next_and_never_the_reverse() -> None:
    chain = [S1, S2, S3, S4]
    for place, larger in enumerate(chain):
        for smaller in chain[place:]:
            assert larger.contains(smaller)
            assert smaller.contains(larger) == (smaller == larger)


def test_the_merge_of_s2_s3_and_s4_is_s2() -> None:
    assert merge({"a": S2, "b": S3, "c": S4}).merge_set == {S2}


def test_each_organisation_merges_the_subscriptions_of_its_users() -> None:
    assert merge(INPS).merge_set == {S1}
    assert merge(INAIL).merge_set == {S3}


def test_the_external_merge_tables_hold_one_subscription_for_each_consumer() -> None:
    assert seen_by("CoC", INPS) == {S1}
    assert seen_by("CoC", INAIL) == {S3}
    assert seen_by("INAIL", INPS) == {S1}
    assert seen_by("INPS", INAIL) == {S3}


@pytest.mark.parametrize("make", [MatchingIndex, DictionaryIndex])
@pytest.mark.parametrize(
    ("happened", "crosses_to", "delivered"),
    [
        (E1, ["INAIL", "INPS"], ["U11", "U12", "U13", "U21"]),  # S4 excludes CoC
        (E2, ["INPS"], ["U11", "U12"]),
    ],
)
def test_an_event_crosses_once_to_each_interested_organisation(
    make: type, happened: Event, crosses_to: list[str], delivered: list[str]
) -> None:
    tables = {"INPS": seen_by("CoC", INPS), "INAIL": seen_by("CoC", INAIL)}
    external = make({(name, nth): s for name, view in tables.items() for nth, s in enumerate(view)})
    interested = sorted({name for name, _ in external.match(happened)})
    assert interested == crosses_to
    local = {"INPS": make(INPS), "INAIL": make(INAIL)}
    users = [user for name in interested for user in local[name].match(happened)]
    assert sorted(users) == delivered


def test_new_user_with_s2_causes_no_message() -> None:
    order = merge(INPS)
    assert order.subscribe("U14", S2) == Delta()
    assert order.merge_set == {S1}


def test_each_producer_gets_s2_once_when_the_user_of_s1_leaves() -> None:
    order = merge(INPS)
    views = {
        producer: ProducerView(producer, AGENCIES_MAPPING.hosted_by(producer), order.merge_set)
        for producer in ("CoC", "INAIL")
    }
    change = order.unsubscribe("U11")
    assert order.merge_set == {S2}
    assert change == Delta(added=frozenset({S2}), removed=frozenset({S1}))
    for view in views.values():
        assert view.update(change) == change  # one changeSub each


def test_a_view_drops_the_sources_that_its_producer_satisfies() -> None:
    only_s4 = {"U22": S4}
    assert seen_by("CoC", only_s4) == frozenset()
    assert seen_by("INPS", only_s4) == {without_sources(S4, "INPS")} == {S3}
