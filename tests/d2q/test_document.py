"""Documents and the names of their elements, and strategies for schemas and documents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import DATA_DOMAINS, QUALITY, STRING, Domain, Key
from qns.d2q.document import DataObject, Document, element_names
from qns.d2q.schema import DIMENSIONS, Schema, parent
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import QnsError
from tests.strategies import ALL_TYPES

CLASS_NAMES = ["Thing", "Part", "Code", "accuracy", "Currency", "Größe", "名前", "x-1", "_u"]
PROPERTY_NAMES = [name for name in CLASS_NAMES if name.casefold() not in DIMENSIONS]
LABELS = ["low", "medium", "high", "così-così", "_none"]


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Draws schemas with few names in many places, so that most names need a path."""
    classes: dict[str, dict[str, str]] = {}
    properties = st.dictionaries(
        st.sampled_from(PROPERTY_NAMES), st.sampled_from(sorted(DATA_DOMAINS)), max_size=4
    )
    for _ in range(draw(st.integers(1, 7))):
        above = draw(st.sampled_from(["", *classes]))
        path = f"{above}/{draw(st.sampled_from(CLASS_NAMES))}".removeprefix("/")
        if path not in classes:
            classes[path] = draw(properties)
    labels = draw(st.dictionaries(st.sampled_from(LABELS), st.floats(0, 1)))
    return Schema(draw(st.sampled_from(["s", "local.v2", "1_A-b"])), classes, labels)


def texts(max_size: int = 6) -> st.SearchStrategy[str]:
    """Draws all characters that XML can carry, and often those that are special in XML."""
    special = st.sampled_from("\t\n\r <>&'\"]\x85\u2028\U0001f600")
    others = st.characters(
        min_codepoint=0x20, exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"
    )
    return st.text(special | others, max_size=max_size)


def any_key(domain: Domain) -> st.SearchStrategy[Key]:
    return texts() if domain is STRING else st.integers(domain.lo, domain.hi)


@st.composite
def documents(draw: st.DrawFn, schema: Schema) -> Document:
    count = 0

    def node(path: str) -> DataObject:
        nonlocal count
        count += 1
        name = f"{draw(st.sampled_from(['n', '_', 'node-']))}{count}"
        values: dict[str, Key] = {}
        quality: dict[str, int] = {}
        for prop in schema.properties[path]:
            if draw(st.integers(0, 2)):
                values[prop.qualified] = draw(any_key(prop.domain))
            for dimension in DIMENSIONS:
                if not draw(st.integers(0, 2)):
                    quality[f"{prop.qualified}.{dimension}"] = draw(st.integers(0, QUALITY.hi))
        below = schema.children(path)
        chosen = draw(st.lists(st.sampled_from(below), max_size=2)) if below else []
        return DataObject(path, values, quality, tuple(node(child) for child in chosen), name)

    tops = draw(st.lists(st.sampled_from(schema.classes), max_size=2))
    return Document(schema.name, tuple(node(path) for path in tops))


@given(schemas())
def test_element_names_are_a_bijection(schema: Schema) -> None:
    names = element_names(schema)
    meant = {*schema.classes, *(p.qualified for own in schema.properties.values() for p in own)}
    assert set(names.element) == meant
    assert {names.meaning[element] for element in names.element.values()} == meant
    quality = {names.quality(name, dimension) for name in meant for dimension in DIMENSIONS}
    assert len(quality) == 4 * len(meant)
    assert not quality & set(names.meaning), "a quality element is no data element"


def test_unique_names_are_written_without_a_path() -> None:
    names = element_names(ALL_TYPES)
    assert names.element["Thing/Part"] == "Part"
    assert names.element["Thing/Part.Weight"] == "Weight"
    assert names.element["Thing.Code"] == "Thing.Code"
    assert names.element["Thing/Part.Code"] == "Thing.Part.Code"
    assert names.quality("Thing/Part.Weight", "accuracy") == "Weight.accuracy"
    assert set(element_names(WEATHER).meaning) >= {"Report", "Wind", "Gust", "Peak", "Dangerous"}


def test_dotted_path_that_is_in_use_gets_a_second_dot() -> None:
    schema = Schema("s", {"A": {"B": "string"}, "A/B": {}, "A/accuracy": {}, "accuracy": {}})
    assert element_names(schema).element == {
        "A": "A",
        "A/B": "A.B",
        "A.B": "A..B",
        "A/accuracy": "A..accuracy",  # A.accuracy is the accuracy of A
        "accuracy": "accuracy",
    }


HOLDER = DataObject("Enterprise/Holder", {"Enterprise/Holder.Name": "M. Mecalla"}, {}, (), "h1")
ENTERPRISE = DataObject("Enterprise", {"Enterprise.Code": "APTA"}, {}, (HOLDER,), "e1")


def test_document_of_the_schema_is_accepted() -> None:
    Document("agencies", (ENTERPRISE, replace(HOLDER, id="h2"))).check(AGENCIES)


@pytest.mark.parametrize(
    ("tops", "said"),
    [
        ((replace(HOLDER, data_class="Holder"),), "did you mean Enterprise/Holder"),
        ((replace(ENTERPRISE, children=(ENTERPRISE,)),), "does not stand directly below"),
        ((replace(HOLDER, children=(replace(HOLDER, id="h2"),)),), "below it: nothing"),
        ((ENTERPRISE, HOLDER), "'h1' is given twice"),
        ((replace(HOLDER, id=""),), "is not an object's id"),
        ((replace(HOLDER, id="h.1"),), "is not an object's id"),
        ((replace(HOLDER, values={"Name": "x"}),), "unknown property 'Name'"),
        ((replace(HOLDER, values={"Enterprise.Code": "x"}),), "unknown property"),
        ((replace(HOLDER, values={"Enterprise/Holder.Name": 3}),), "3 is not a string"),
        ((replace(HOLDER, values={"Enterprise/Holder.Name": "\0"}),), "U+0000"),
        ((replace(HOLDER, quality={"Enterprise/Holder.Name": 3}),), "unknown property"),
        ((replace(HOLDER, quality={"Enterprise/Holder.Name.age": 3}),), "unknown dimension"),
        ((replace(HOLDER, quality={"Enterprise/Holder.Name.accuracy": -1}),), "no key"),
        ((replace(HOLDER, quality={"Enterprise/Holder.Name.accuracy": True}),), "no key"),
    ],
)
def test_document_that_does_not_follow_the_schema_is_rejected(
    tops: tuple[DataObject, ...], said: str
) -> None:
    with pytest.raises(QnsError) as caught:
        Document("agencies", tops).check(AGENCIES)
    assert said in str(caught.value)
    assert "object '" in caught.value.place


def test_document_of_another_schema_is_rejected() -> None:
    with pytest.raises(QnsError, match="'agencies' is expected"):
        Document("weather", ()).check(AGENCIES)


@given(schemas())
def test_drawn_schemas_list_every_class_after_its_enclosing_class(schema: Schema) -> None:
    """Other tests rely on this property of the strategy."""
    for index, path in enumerate(schema.classes):
        assert not parent(path) or parent(path) in schema.classes[:index]
