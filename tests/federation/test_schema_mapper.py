"""The Schema Mapper: which organisations are producers, and of which classes."""

from __future__ import annotations

from hypothesis import given

from qns.federation.document import Federation
from qns.federation.schema_mapper import SchemaMapper
from qns.federation.shipped import AGENCIES_FEDERATION, WEATHER_PARTIAL_FEDERATION
from tests.federation.test_document_xml import federations

BOTH = frozenset({"Enterprise", "Enterprise/Holder"})
AGENCIES = SchemaMapper(AGENCIES_FEDERATION)
WEATHER = SchemaMapper(WEATHER_PARTIAL_FEDERATION)


def test_producers_are_all_other_members_with_the_classes_they_host() -> None:
    assert AGENCIES.producers(except_for="INPS") == {"INAIL": BOTH, "CoC": BOTH}


def test_producers_include_a_member_that_hosts_no_class() -> None:
    mapper = SchemaMapper(AGENCIES_FEDERATION.hosting("CoC", []))
    assert mapper.producers(except_for="INPS") == {"INAIL": BOTH, "CoC": frozenset()}


def test_an_organisation_that_is_not_a_member_has_no_producers() -> None:
    assert AGENCIES.producers(except_for="ISTAT") == {}
    assert SchemaMapper(AGENCIES_FEDERATION.without("INPS")).producers(except_for="INPS") == {}


def test_a_member_hosts_exactly_the_classes_of_the_document() -> None:
    assert WEATHER.hosts("Met03", "Report/Wind/Gust")
    assert not WEATHER.hosts("Met05", "Report/Wind/Gust")
    assert not WEATHER.hosts("Met03", "Report/Hail")


def test_an_organisation_that_is_not_a_member_hosts_no_class() -> None:
    assert not AGENCIES.hosts("ISTAT", "Enterprise")


@given(federations())
def test_both_answers_agree_with_any_federation(federation: Federation) -> None:
    mapper = SchemaMapper(federation)
    for name, member in federation.organisations.items():
        others = mapper.producers(except_for=name)
        assert set(others) == set(federation.organisations) - {name}
        for other, classes in others.items():
            assert classes == federation[other].hosts & mapper.readable(name, other)
        for path in federation.schema.classes:
            assert mapper.hosts(name, path) == (path in member.hosts)
