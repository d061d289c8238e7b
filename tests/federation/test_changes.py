"""What a later version of a federation document changes, told in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import FederationError
from qns.federation.changes import Kind, changes
from qns.federation.document import Federation, Organisation
from qns.federation.shipped import AGENCIES_FEDERATION as OLD
from tests.federation.test_document_xml import federations

ISTAT = Organisation("ISTAT", frozenset(["Enterprise"]), "https://qns.istat.example/")


def told(old: Federation, new: Federation) -> list[str]:
    return [change.text for change in changes(old, new)]


def with_inps(**fields: object) -> Federation:
    changed = replace(OLD["INPS"], **fields)  # type: ignore[arg-type]
    return replace(OLD, organisations={**OLD.organisations, "INPS": changed}, version=2)


def with_schema(schema: Schema) -> Federation:
    nobody = {name: replace(each, hosts=frozenset()) for name, each in OLD.organisations.items()}
    return Federation(OLD.name, schema, nobody, 2)


def test_one_that_joins_is_told_with_where_and_what() -> None:
    assert told(OLD, OLD.with_organisation(ISTAT)) == [
        "ISTAT joins at https://qns.istat.example/, and hosts Enterprise"
    ]
    listener = Organisation("Ears", frozenset())
    assert told(OLD, OLD.with_organisation(listener)) == ["Ears joins, and hosts nothing"]


def test_one_that_leaves_is_told_with_what_it_hosted() -> None:
    (change,) = changes(OLD, OLD.without("CoC"))
    assert change.text == "CoC leaves; it hosted Enterprise, Enterprise/Holder"
    assert change.kind is Kind.LEAVES
    assert change.organisation == "CoC"
    assert change.classes == ("Enterprise", "Enterprise/Holder")


def test_one_that_left_and_came_back_between_the_two_is_a_new_incarnation() -> None:
    back = OLD.without("CoC").with_organisation(Organisation("CoC", frozenset(), capability=9))
    assert told(OLD, back) == [
        "CoC left and comes back (joined with version 3), and hosts nothing",
        "CoC: its capability was 4 and becomes 9",
    ]


def test_hosting_is_told_class_by_class() -> None:
    less = OLD.hosting("CoC", [])
    assert told(OLD, less) == ["CoC stops hosting Enterprise, Enterprise/Holder"]
    assert told(less, less.hosting("CoC", ["Enterprise"])) == ["CoC starts hosting Enterprise"]
    moved = OLD.hosting("CoC", ["Enterprise"])
    assert told(moved, moved.hosting("CoC", ["Enterprise/Holder"])) == [
        "CoC starts hosting Enterprise/Holder",
        "CoC stops hosting Enterprise",
    ]


def test_endpoint_capability_and_certificate_are_told() -> None:
    there = with_inps(endpoint="http://a/", certificate="x", capability=7)
    assert told(OLD, there) == [
        "INPS: its endpoint is new: http://a/",
        "INPS: its capability was 4 and becomes 7",
        "INPS: its certificate is new",
    ]
    moved = replace(with_inps(endpoint="http://b/", certificate="y", capability=7), version=3)
    assert told(there, moved) == [
        "INPS: its endpoint was http://a/ and becomes http://b/",
        "INPS: its certificate is another one",
    ]
    assert told(there, replace(OLD, version=3)) == [
        "INPS: its endpoint is gone: it was http://a/",
        "INPS: its capability was 7 and becomes 4",
        "INPS: its certificate is gone",
    ]


def test_changes_of_the_schema_are_told() -> None:
    classes = {"Thing": {"A": "string", "B": "string"}, "Thing/Part": {}}
    labels = {"low": 0.3, "high": 0.9}
    old = replace(with_schema(Schema("s", classes, labels)), version=1)
    changed = {"Thing": {"A": "integer", "C": "date"}, "Other": {}}
    assert told(old, with_schema(Schema("s2", changed, {"low": 0.2, "good": 1}))) == [
        "the class Other is new",
        "the class Thing/Part is gone",
        "the schema's name was s and becomes s2",
        "the property Thing.A was string and becomes integer",
        "the property Thing.B is gone: it was string",
        "the property Thing.C is new: date",
        "the label low was 0.3 and becomes 0.2",
        "the label high is gone: it was 0.9",
        "the label good is new: 1",
    ]
    turned = {**classes, "Thing": {"B": "string", "A": "string"}}
    assert told(old, with_schema(Schema("s", turned, labels))) == [
        "the properties of Thing stand in another order"
    ]


@given(federations(), st.data())
def test_nothing_is_told_only_if_nothing_but_the_version_changes(
    new: Federation, data: st.DataObject
) -> None:
    new = replace(new, version=new.version + 1)
    old = new.schema, dict(new.organisations)
    if new.organisations:
        name = data.draw(st.sampled_from(sorted(new.organisations)))
        field, value = data.draw(
            st.sampled_from(
                [
                    ("hosts", frozenset[str]()),
                    ("endpoint", ""),
                    ("certificate", ""),
                    ("capability", 1),
                    ("joined", new[name].joined),
                ]
            )
        )
        old[1][name] = replace(new[name], **{field: value})  # type: ignore[arg-type]
    before = Federation(new.name, *old, new.version - 1)
    is_same = before.organisations == new.organisations
    assert (changes(before, new) == []) == is_same


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (OLD, "version 1 of agencies is not later than version 1 (a change makes version 2)"),
        (Federation.of("weather", WEATHER, {}), "of the federation 'weather', not of 'agencies'"),
        (
            replace(OLD, organisations={"ISTAT": ISTAT}, version=2),
            "ISTAT joined with version 1, says version 2; in version 1 it was no member",
        ),
    ],
    ids=["the same", "another federation", "a newcomer with an old number"],
)
def test_a_document_that_does_not_follow_is_refused(new: Federation, said: str) -> None:
    with pytest.raises(FederationError) as caught:
        changes(OLD, new)
    assert said in str(caught.value)
    assert caught.value.remedy


def test_an_older_document_is_refused_with_the_advice_to_swap() -> None:
    with pytest.raises(FederationError, match=r"is not later than version 2 \(swap the two\)"):
        changes(OLD.without("CoC"), OLD)


def test_a_member_does_not_become_older_or_younger_in_passing() -> None:
    third = OLD.without("CoC").with_organisation(Organisation("CoC", frozenset()))
    for joined in (1, 2):
        changed = replace(third["CoC"], joined=joined)
        organisations = {**third.organisations, "CoC": changed}
        fourth = Federation(third.name, third.schema, organisations, 4)
        with pytest.raises(FederationError, match="in version 3 it joined with version 3"):
            changes(third, fourth)


def test_an_equal_schema_in_another_order_is_no_change() -> None:
    labels = dict(reversed(AGENCIES.labels.items()))
    classes = {
        path: {prop.name: prop.domain.name for prop in AGENCIES.properties[path]}
        for path in AGENCIES.classes
    }
    assert changes(OLD, replace(OLD, schema=Schema("agencies", classes, labels), version=2)) == []
