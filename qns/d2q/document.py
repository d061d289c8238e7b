"""D2Q documents: data objects and their quality, as an organisation exports them (semantics §1).

A document has a data graph and one quality graph per dimension, whose nodes are linked. Here all
graphs are one tree: an object has its values, the quality of its properties, and the objects below
it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count

from qns.cbr.domains import QUALITY, Key
from qns.d2q.lexical import key_text, write_number
from qns.d2q.schema import DIMENSIONS, Schema, parent
from qns.errors import DocumentError, DuplicateId, NameNotKnown, QnsError, SchemaError, shorten

_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,199}\Z")
_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")


@dataclass(frozen=True, slots=True)
class DataObject:
    """An instance of a data class.

    `values` and `quality` are keys (`cbr/domains.py`) under qualified names of the object's own
    class: `Enterprise/Holder.Name` and `Enterprise/Holder.Name.accuracy`. A property can have
    quality without a value.
    """

    data_class: str
    values: Mapping[str, Key]
    quality: Mapping[str, int] = field(default_factory=dict)
    children: tuple[DataObject, ...] = ()
    id: str = ""

    def walk(self) -> Iterator[DataObject]:
        """Yields the object and all objects below it, parents first."""
        yield self
        for below in self.children:
            yield from below.walk()


@dataclass(frozen=True, slots=True)
class Document:
    """Data objects of one schema. An outermost object can be of any class."""

    schema_name: str
    objects: tuple[DataObject, ...]

    def walk(self) -> Iterator[DataObject]:
        for top in self.objects:
            yield from top.walk()

    def check(self, schema: Schema) -> None:
        """Raises QnsError, with the object, unless the document follows the schema."""
        checked_schema_name(schema.name)
        if self.schema_name != schema.name:
            raise DocumentError(
                f"a document of the schema {shorten(self.schema_name)}",
                remedy=f"the schema {shorten(schema.name)} is expected",
            )
        for top in self.objects:
            _check_classes(top, schema)
        ids: set[str] = set()
        for node in self.walk():
            try:
                check_id(node.id)
                if node.id in ids:
                    raise DuplicateId(f"the id {shorten(node.id)} is given twice")
                ids.add(node.id)
                _check_values(node, schema)
            except QnsError as problem:
                raise problem.at(f"object {shorten(node.id)}") from None


def check_id(text: str) -> str:
    """Returns an object's id if it is valid. It has no dot: the ids of properties have one."""
    if not _ID.match(text):
        raise DocumentError(
            f"{shorten(text)} is not an object's id",
            remedy="letters of ASCII, digits, _ and -, starting with a letter or _",
        )
    return text


def checked_schema_name(name: str) -> str:
    """Returns a schema's name if documents and DTDs can carry it."""
    if not _SCHEMA_NAME.match(name):
        raise SchemaError(
            f"{shorten(name)} is not a schema's name", remedy="letters of ASCII, digits, _ - and ."
        )
    return name


def _check_classes(node: DataObject, schema: Schema) -> None:
    if node.data_class not in schema.properties:
        raise NameNotKnown(
            "class", node.data_class, schema.classes, place=f"object {shorten(node.id)}"
        )
    for below in node.children:
        if parent(below.data_class) != node.data_class:
            raise DocumentError(
                f"{shorten(below.data_class)} does not stand directly below {node.data_class}",
                place=f"object {shorten(below.id)}",
                remedy=f"below it: {', '.join(schema.children(node.data_class)) or 'nothing'}",
            )
        _check_classes(below, schema)


def _check_values(node: DataObject, schema: Schema) -> None:
    own = {prop.qualified: prop for prop in schema.properties[node.data_class]}
    for name, key in node.values.items():
        if name not in own:
            raise NameNotKnown("property", name, own)
        key_text(own[name].domain, key)
    for name, key in node.quality.items():
        prop, _, dimension = name.rpartition(".")
        if prop not in own:
            raise NameNotKnown("property", name, [f"{known}.accuracy" for known in own])
        if dimension not in DIMENSIONS:
            raise NameNotKnown("dimension", dimension, DIMENSIONS)
        key_text(QUALITY, key)


# -- the names of elements --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ElementNames:
    """The elements of a schema's documents: a bijection with its classes and properties.

    Paths and qualified property names are always different, so one table holds both.
    """

    element: Mapping[str, str]
    """Name -> element: `Enterprise/Holder` -> `Holder`, `Enterprise/Holder.Name` -> `Name`."""
    meaning: Mapping[str, str]
    """Element -> name: the inverse of `element`."""

    def quality(self, name: str, dimension: str) -> str:
        """Returns the element of a class or property in a quality graph, as in `Name.accuracy`."""
        return f"{self.element[name]}.{dimension}"


@lru_cache(maxsize=64)
def element_names(schema: Schema) -> ElementNames:
    """Returns bare names where they are unique in the schema, and dotted paths elsewhere.

    A dotted path can be in use as well: by a class `A/B` if A has a property B, or by the accuracy
    of A if there is a class `A/accuracy`. Then the last dot is doubled until the name is free.
    """
    wanted = [(path, parent(path), path.rpartition("/")[2]) for path in schema.classes]
    for properties in schema.properties.values():
        wanted.extend((prop.qualified, prop.owner, prop.name) for prop in properties)
    uses = Counter(name for _, _, name in wanted)
    element: dict[str, str] = {}
    taken: set[str] = set()
    for meant, owner, name in wanted:
        for chosen in _spellings(owner, name, uses[name] == 1):
            claim = {chosen, *(f"{chosen}.{dimension}" for dimension in DIMENSIONS)}
            if not claim & taken:
                break
        taken |= claim
        element[meant] = chosen
    return ElementNames(element, {name: meant for meant, name in element.items()})


def _spellings(owner: str, name: str, unique: bool) -> Iterator[str]:
    if unique or not owner:
        yield name
    for dots in count(1):
        yield owner.replace("/", ".") + "." * dots + name


def labels_text(schema: Schema) -> str:
    """Returns the labels as one text: `low=0.3 medium=0.6 high=0.9`."""
    return " ".join(f"{label}={write_number(number)}" for label, number in schema.labels.items())
