"""Describing a subscription and taking the normal form again gives the same subscription."""

from hypothesis import given

from qns.cbr.subscription import Subscription
from qns.d2q.description import describe
from qns.d2q.normal_form import normal_form
from tests.strategies import ALL_TYPES, subscriptions


@given(subscriptions())
def test_normal_form_of_a_description_is_the_subscription(subscription: Subscription) -> None:
    assert normal_form(describe(subscription, ALL_TYPES), ALL_TYPES) == subscription
