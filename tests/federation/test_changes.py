"""The changes between two versions of a federation document, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import FederationError
from qns.federation.certificate import read_certificate
from qns.federation.changes import Kind, changes
from qns.federation.document import Federation, Organisation
from qns.federation.shipped import AGENCIES_FEDERATION as OLD
from tests.certificates import certificate
from tests.federation.test_document_xml import federations

ISTAT = Organisation("ISTAT", frozenset(["Enterprise"]), "https://qns.istat.example/")


def texts(old: Federation, new: Federation) -> list[str]:
    return [change.text for change in changes(old, new)]


def with_inps(**fields: object) -> Federation:
    changed = replace(OLD["INPS"], **fields)  # type: ignore[arg-type]
    return replace(OLD, organisations={**OLD.organisations, "INPS": changed}, version=2)


def with_schema(schema: Schema) -> Federation:
    nobody = {name: replace(each, hosts=frozenset()) for name, each in OLD.organisations.items()}
    return Federation(OLD.name, schema, nobody, 2)


def test_changes_of_what_the_document_remembers_are_reported() -> None:
    less = OLD.hosting("CoC", ["Enterprise"])
    forgetful = replace(less["CoC"], hosted=frozenset())
    forgets = replace(less, organisations={**less.organisations, "CoC": forgetful}, version=3)
    assert texts(less, forgets) == ["CoC never hosted Enterprise/Holder, says the newer version"]
    again = replace(forgets, organisations=less.organisations, version=4)
    assert texts(forgets, again) == ["CoC has hosted Enterprise/Holder, says the newer version"]


def test_joining_organisation_is_reported_with_endpoint_and_classes() -> None:
    assert texts(OLD, OLD.with_organisation(ISTAT)) == [
        "ISTAT joins at https://qns.istat.example/, and hosts Enterprise"
    ]
    listener = Organisation("Ears", frozenset())
    assert texts(OLD, OLD.with_organisation(listener)) == ["Ears joins, and hosts nothing"]


def test_leaving_organisation_is_reported_with_its_classes() -> None:
    (change,) = changes(OLD, OLD.without("CoC"))
    assert change.text == "CoC leaves; it hosted Enterprise, Enterprise/Holder"
    assert change.kind is Kind.LEAVES
    assert change.organisation == "CoC"
    assert change.classes == ("Enterprise", "Enterprise/Holder")


def test_organisation_that_left_and_came_back_is_a_new_incarnation() -> None:
    back = OLD.without("CoC").with_organisation(Organisation("CoC", frozenset(), capability=9))
    assert texts(OLD, back) == [
        "CoC left and comes back (joined with version 3), and hosts nothing",
        "CoC: its capability was 4 and becomes 9",
    ]


def test_changes_of_hosting_are_reported_by_class() -> None:
    less = OLD.hosting("CoC", [])
    assert texts(OLD, less) == ["CoC stops hosting Enterprise, Enterprise/Holder"]
    assert texts(less, less.hosting("CoC", ["Enterprise"])) == ["CoC starts hosting Enterprise"]
    moved = OLD.hosting("CoC", ["Enterprise"])
    assert texts(moved, moved.hosting("CoC", ["Enterprise/Holder"])) == [
        "CoC starts hosting Enterprise/Holder",
        "CoC stops hosting Enterprise",
    ]


def test_changes_of_endpoint_capability_and_certificates_are_reported() -> None:
    x, y, seal = (certificate("INPS", number).certificate for number in (1, 2, 3))
    there = with_inps(endpoint="http://a/", tls=(x,), capability=7)
    assert texts(OLD, there) == [
        "INPS: its endpoint is new: http://a/",
        "INPS: its capability was 4 and becomes 7",
        f"INPS: its TLS certificate {read_certificate(x).short} is new",
    ]
    moved = replace(
        with_inps(endpoint="http://b/", tls=(y,), seals=(seal,), capability=7), version=3
    )
    assert texts(there, moved) == [
        "INPS: its endpoint was http://a/ and becomes http://b/",
        f"INPS: its TLS certificate {read_certificate(y).short} is new",
        f"INPS: its TLS certificate {read_certificate(x).short} is gone",
        f"INPS: its seal certificate {read_certificate(seal).short} is new",
    ]
    assert texts(there, replace(OLD, version=3)) == [
        "INPS: its endpoint is gone: it was http://a/",
        "INPS: its capability was 7 and becomes 4",
        f"INPS: its TLS certificate {read_certificate(x).short} is gone",
    ]


SCHEMA = Schema(
    "s",
    {"Thing": {"A": "string", "B": "string"}, "Thing/Part": {"P": "date"}},
    {"low": 0.3, "high": 0.9},
)


def with_classes(classes: dict[str, dict[str, str]], name: str = "s") -> Federation:
    return with_schema(Schema(name, classes, SCHEMA.labels))


def test_additions_to_the_schema_and_changes_of_labels_are_reported() -> None:
    old = replace(with_schema(SCHEMA), version=1)
    grown = {
        "Other": {},
        "Thing": {"A": "string", "C": "date", "B": "string"},
        "Thing/Part": {"P": "date"},
        "Thing/Part/New": {"A": "integer"},
    }
    assert texts(old, with_schema(Schema("s", grown, {"low": 0.2, "good": 1}))) == [
        "the class Other is new",
        "the property Thing.C is new: date",
        "the class Thing/Part/New is new",
        "the label low was 0.3 and becomes 0.2",
        "the label high is gone: it was 0.9",
        "the label good is new: 1",
    ]


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (
            with_classes({"Thing": {"A": "string", "B": "string"}}),
            "the class Thing/Part is gone",
        ),
        (
            with_classes({"Thing": {"A": "string"}, "Thing/Part": {"P": "date"}}),
            "the property Thing.B is gone: it was string",
        ),
        (
            with_classes({"Thing": {"A": "integer", "B": "string"}, "Thing/Part": {"P": "date"}}),
            "the property Thing.A was string and becomes integer",
        ),
        (
            with_classes({"Thing": {"B": "string", "A": "string"}, "Thing/Part": {"P": "date"}}),
            "the properties of Thing stand in another order",
        ),
        (
            with_classes(
                {"Thing": {"A": "string", "B": "string"}, "Thing/Part": {"P": "date"}}, "s2"
            ),
            "the schema's name was s and becomes s2",
        ),
        (
            with_classes(
                {"Thing": {"A": "string", "B": "string", "P": "date"}, "Thing/Part": {"P": "date"}}
            ),
            "a new property makes the name P ambiguous in Thing/Part",
        ),
    ],
    ids=["class gone", "property gone", "type", "order", "name", "ambiguous"],
)
def test_other_changes_of_the_schema_are_rejected_by_name(new: Federation, said: str) -> None:
    old = replace(with_schema(SCHEMA), version=1)
    with pytest.raises(FederationError) as caught:
        changes(old, new)
    assert str(caught.value).startswith(f"version 2 of agencies: {said} (a schema can only grow")


@given(federations(), st.data())
def test_no_change_is_reported_exactly_if_only_the_version_differs(
    new: Federation, data: st.DataObject
) -> None:
    new = replace(new, version=new.version + 1)
    old = dict(new.organisations)
    if new.organisations:
        name = data.draw(st.sampled_from(sorted(new.organisations)))
        field, value = data.draw(
            st.sampled_from(
                [
                    ("hosts", frozenset[str]()),
                    ("hosted", frozenset[str]()),
                    ("endpoint", ""),
                    ("tls", ()),
                    ("seals", ()),
                    ("capability", 1),
                    ("incarnation", new[name].incarnation),
                ]
            )
        )
        old[name] = replace(new[name], **{field: value})  # type: ignore[arg-type]
    before = replace(new, organisations=old, version=new.version - 1)
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
def test_document_that_does_not_follow_the_old_one_is_rejected(new: Federation, said: str) -> None:
    with pytest.raises(FederationError) as caught:
        changes(OLD, new)
    assert said in str(caught.value)
    assert caught.value.remedy


def test_changes_rejects_documents_in_the_wrong_order_with_the_remedy_to_swap_them() -> None:
    with pytest.raises(FederationError, match=r"is not later than version 2 \(swap the two\)"):
        changes(OLD.without("CoC"), OLD)


def test_member_cannot_change_its_incarnation_without_leaving() -> None:
    third = OLD.without("CoC").with_organisation(Organisation("CoC", frozenset()))
    for joined in (1, 2):
        changed = replace(third["CoC"], incarnation=joined)
        organisations = {**third.organisations, "CoC": changed}
        fourth = Federation(third.name, third.schema, organisations, 4)
        with pytest.raises(FederationError, match="in version 3 it joined with version 3"):
            changes(third, fourth)


def test_equal_schema_in_another_order_is_no_change() -> None:
    labels = dict(reversed(AGENCIES.labels.items()))
    classes = {
        path: {prop.name: prop.domain.name for prop in AGENCIES.properties[path]}
        for path in AGENCIES.classes
    }
    assert changes(OLD, replace(OLD, schema=Schema("agencies", classes, labels), version=2)) == []
