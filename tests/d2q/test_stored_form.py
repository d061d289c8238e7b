"""The stored form of a subscription is read as the same subscription."""

from __future__ import annotations

from hypothesis import given

from qns.cbr.subscription import Subscription
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import WEATHER
from qns.d2q.stored_form import read_stored, write_stored
from tests.strategies import ALL_TYPES, subscriptions


@given(subscriptions(ALL_TYPES))
def test_stored_form_is_read_as_the_same_subscription(subscription: Subscription) -> None:
    found = read_stored(write_stored(subscription), ALL_TYPES, subscription.text)
    assert found == subscription
    assert hash(found) == hash(subscription)
    assert (found.data_class, found.only, found.text) == (
        subscription.data_class,
        subscription.only,
        subscription.text,
    )
    for name, values in subscription.constraints.items():
        assert type(found.constraints[name]) is type(values)
        assert found.constraints[name] == values


def test_stored_form_names_keys_and_not_labels() -> None:
    wanted = parse_subscription(
        'Report/Wind from Met02, Met01 where Region starts with "n" and Speed in {5, 7} '
        "and Speed.accuracy falls below medium",
        WEATHER,
    )
    # Stores of earlier versions have these keys: other ones need a migration.
    assert write_stored(wanted) == (
        '["Report/Wind",true,["Met01","Met02"],{"Report.Region":["p","n","",[],[]],'
        '"Report/Wind.Speed":[[261400000000000001,261400000000000001],[261600000000000001,'
        '261600000000000001]],"Report/Wind.Speed.accuracy":["q",[[0,599999999999999]],'
        "[[600000000000000,1000000000000000]],0]}]"
    )
