"""The errata of semantics §11 about matching and containment, with one test for each."""

from qns.d2q.event_json import EventReader
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import AGENCIES, WEATHER
from tests.test_worked_case import E2, S1, S2, S3, S4


def test_accuracy_medium_satisfies_at_most_medium() -> None:
    """The thesis says in 5.4.2 that e2 matches S1 only."""
    assert [s.matches(E2) for s in (S1, S2, S3, S4)] == [True, True, False, False]


def test_a_restricted_subscription_does_not_contain_an_unrestricted_one() -> None:
    """Thesis 5.3.1 compares sources only if both have them, which would lose notifications."""
    restricted = parse_subscription("Enterprise/Holder from INPS", AGENCIES)
    unrestricted = parse_subscription("Enterprise/Holder", AGENCIES)
    assert not restricted.contains(unrestricted)
    assert unrestricted.contains(restricted)


def test_listing_every_organisation_differs_from_omitting_the_sources() -> None:
    everyone = parse_subscription("Enterprise/Holder from INPS, INAIL, CoC", AGENCIES)
    assert not everyone.contains(parse_subscription("Enterprise/Holder", AGENCIES))


def test_class_includes_all_classes_below_it_in_matching_and_containment() -> None:
    """Thesis 5.3.1 matches equal classes only, but accepts ancestors in containment."""
    gust = EventReader(WEATHER).from_fields(
        {"id": "g", "class": "Report/Wind/Gust", "source": "Met03", "data": {"Region": "Lazio"}}
    )
    for text, below, matches in (
        ("Report", True, True),
        ("Report/Wind", True, True),
        ("Report/Wind/Gust", True, True),
        ("only Report/Wind/Gust", True, True),
        ("only Report/Wind", False, False),
        ("only Report", False, False),
        ("Report/Temperature", False, False),
    ):
        subscription = parse_subscription(text, WEATHER)
        assert subscription.matches(gust) == matches, text
        assert subscription.contains(parse_subscription("Report/Wind/Gust", WEATHER)) == below, text


def test_a_quality_constraint_narrows_the_scope_to_the_class_itself() -> None:
    windy = parse_subscription("Report/Wind where Speed.accuracy <= low", WEATHER)
    assert windy == parse_subscription("only Report/Wind where Speed.accuracy <= low", WEATHER)
    assert windy.scope == {"Report/Wind"}
    assert parse_subscription("Report/Wind", WEATHER).contains(windy)
