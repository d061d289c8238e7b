"""Source warnings: which subscriptions cannot match in the federation as it is."""

from __future__ import annotations

from qns.d2q.language import parse_subscription
from qns.federation.document import Federation
from qns.federation.rights import ReadRule
from qns.federation.schema_mapper import SchemaMapper
from qns.federation.shipped import AGENCIES_FEDERATION, WEATHER_PARTIAL_FEDERATION
from qns.federation.source_warnings import MOST_WARNINGS, source_warnings

WEATHER = WEATHER_PARTIAL_FEDERATION


def warnings(text: str, federation: Federation = WEATHER) -> tuple[str, ...]:
    subscription = parse_subscription(text, federation.schema)
    return source_warnings(subscription, SchemaMapper(federation), "INPS")


def test_source_that_hosts_the_class_gets_no_warning() -> None:
    assert warnings("Report/Wind from Met03, Met06") == ()


def test_subscription_without_sources_gets_no_warning_if_a_member_hosts_the_class() -> None:
    assert warnings("Report/Wind/Gust") == ()


def test_source_that_is_no_member_gets_a_warning_with_similar_names() -> None:
    (warning,) = warnings("Enterprise from INPS, Inial", AGENCIES_FEDERATION)
    assert warning == "the source 'Inial' is not a member of agencies (did you mean INAIL?)"
    assert warnings("Report from Elsewhere") == (
        "the source 'Elsewhere' is not a member of weather-partial",
    )


def test_source_that_does_not_host_the_class_gets_a_warning() -> None:
    assert warnings("Report/Wind from Met01, Met03") == (
        "the source Met01 does not host Report/Wind or a class below it",
    )
    assert warnings("only Report/Wind/Gust from Met05") == (
        "the source Met05 does not host Report/Wind/Gust",
    )


def test_source_that_hosts_only_a_class_below_gets_no_warning() -> None:
    federation = WEATHER.hosting("Met01", ["Report/Wind/Gust"])
    assert warnings("Report/Wind from Met01", federation) == ()
    assert len(warnings("only Report/Wind from Met01", federation)) == 1


def test_class_that_no_member_hosts_gets_a_warning() -> None:
    federation = WEATHER.hosting("Met03", []).hosting("Met04", [])
    assert warnings("Report/Wind/Gust", federation) == (
        "no member of weather-partial hosts Report/Wind/Gust",
    )


def test_number_of_warnings_is_bounded() -> None:
    names = ", ".join(f"X{number}" for number in range(100))
    found = warnings(f"Report from {names}")
    assert len(found) == MOST_WARNINGS + 1
    assert found[-1] == "90 more sources cannot publish such events"


def test_class_that_may_not_be_read_gets_a_warning_with_the_version() -> None:
    rules = [ReadRule("Enterprise", source="INAIL"), ReadRule("Enterprise", "INPS", only=True)]
    document = AGENCIES_FEDERATION.with_rights(rules)
    assert warnings("Enterprise/Holder from INAIL, CoC, INPS", document) == (
        "INPS may not read Enterprise/Holder of CoC (document version 2)",
    )
    assert warnings("Enterprise", document) == (
        "INPS may not read Enterprise/Holder of CoC (document version 2)",
    )
    assert warnings("only Enterprise", document) == ()
