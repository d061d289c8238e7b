"""The global schema: data classes named by their paths, typed properties, quality labels.

Names are case-insensitive and resolve to one qualified spelling (semantics §1, §2):
`Enterprise/Holder` is a class, `Enterprise/Holder.Name` a property of it, and
`Enterprise/Holder.Name.accuracy` a quality dimension of that property.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from qns.cbr.domains import DATA_DOMAINS, QUALITY, Domain
from qns.errors import NameNotKnown, QnsError, SchemaError, shorten

DIMENSIONS: Final = ("accuracy", "completeness", "currency", "consistency")
MAX_CLASSES: Final = 10_000
MAX_DEPTH: Final = 64
MAX_NAME_LENGTH: Final = 200

_NOT_IN_XML = "ª²³µ¹º¼-¾\u2190-\u2bff\u2ff0-\u3000"  # matches \w, but is not allowed in XML names
_NAME = re.compile(rf"[^\W\d{_NOT_IN_XML}](?:[^\W{_NOT_IN_XML}]|-)*\Z")


@dataclass(frozen=True, slots=True)
class Property:
    """A property of one class, with the type of its values."""

    owner: str
    name: str
    domain: Domain

    @property
    def qualified(self) -> str:
        return f"{self.owner}.{self.name}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """The subject of a constraint or of an event's value: a property, or one dimension of it."""

    prop: Property
    dimension: str | None = None

    @property
    def name(self) -> str:
        """The qualified name: the attribute's name in `qns.cbr`."""
        suffix = f".{self.dimension}" if self.dimension else ""
        return self.prop.qualified + suffix

    @property
    def domain(self) -> Domain:
        return QUALITY if self.dimension else self.prop.domain


class Schema:
    """Classes, properties and labels. A schema is immutable.

    `classes` maps a path to its properties, each with the name of its type. Every class comes
    after the class that encloses it. `labels` maps a label to its number.
    """

    def __init__(
        self,
        name: str,
        classes: Mapping[str, Mapping[str, str]],
        labels: Mapping[str, float] | None = None,
    ) -> None:
        self.name = name
        self.labels: dict[str, float] = {}
        self.properties: dict[str, tuple[Property, ...]] = {}
        self._spellings: dict[str, str] = {}  # casefolded name -> the one spelling allowed
        self._paths: dict[str, str] = {}
        if len(classes) > MAX_CLASSES:
            raise SchemaError(f"{len(classes):,} classes", remedy=f"at most {MAX_CLASSES:,}")
        for path, properties in classes.items():
            self._add_class(path, properties)
        if not self.properties:
            raise SchemaError("a schema without classes", remedy="declare at least one class")
        for label, number in (labels or {}).items():
            self._add_label(label, number)
        self._below = self._scopes_below()
        self._attributes: dict[str, dict[str, tuple[Attribute, ...]]] = {}
        self.forms: dict[str, object] = {}
        """Maps a class to what readers and writers of its events cache."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and (self.name, self.properties, self.labels) == (
            other.name,
            other.properties,
            other.labels,
        )

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.properties)))

    def __repr__(self) -> str:
        return f"<Schema {self.name}: {len(self.properties)} classes>"

    def __reduce__(self) -> tuple[object, ...]:
        classes = {
            path: {p.name: p.domain.name for p in properties}
            for path, properties in self.properties.items()
        }
        return Schema, (self.name, classes, self.labels)

    @property
    def classes(self) -> tuple[str, ...]:
        """The paths of all classes, each after the one that encloses it."""
        return tuple(self.properties)

    def data_class(self, name: str) -> str:
        """Returns the class with this path. Upper and lower case are equal."""
        path = self._paths.get(name) or self._paths.get(name.casefold())
        if path is None:
            raise NameNotKnown("class", name, self.classes)
        return path

    def children(self, path: str) -> tuple[str, ...]:
        """Returns the classes directly below."""
        return tuple(other for other in self.properties if parent(other) == path)

    def lineage(self, path: str) -> tuple[str, ...]:
        """Returns the class and those that enclose it, outermost first."""
        steps = path.split("/")
        return tuple("/".join(steps[: depth + 1]) for depth in range(len(steps)))

    def scope(self, path: str, only: bool = False) -> frozenset[str]:
        """Returns the classes whose events match a subscription to this class (semantics §3)."""
        return frozenset((path,)) if only else self._below[path]

    def attribute(self, path: str, name: str) -> Attribute:
        """Returns the property or dimension that `name` means in an event of this class."""
        found = self._attribute_table(path).get(name) or self._attribute_table(path).get(
            name.casefold(), ()
        )
        if len(found) == 1:
            return found[0]
        if found:
            raise NameNotKnown(
                "property",
                name,
                [attribute.name for attribute in found],
                problem=f"{shorten(name)} is ambiguous in {path}",
            )
        raise self._unknown_attribute(path, name)

    def means(self, path: str, name: str, attribute: Attribute) -> bool:
        """True if `name` means this attribute in an event of this class."""
        return self._attribute_table(path).get(name.casefold()) == (attribute,)

    def quality_attribute(self, path: str, name: str) -> Attribute:
        """Returns a dimension of a property of the class itself (semantics §2, §3)."""
        attribute = self.attribute(path, name)
        if attribute.dimension is None:
            raise QnsError(
                f"{shorten(name)} names no quality dimension",
                remedy=f"add one of {', '.join(DIMENSIONS)}, as in {name}.{DIMENSIONS[0]}",
            )
        if attribute.prop.owner != path:
            raise QnsError(
                f"{attribute.name} is a quality of the enclosing class {attribute.prop.owner}",
                remedy=f"quality belongs to properties of {path} itself",
            )
        return attribute

    def attributes(self, path: str) -> list[Attribute]:
        """Returns the attributes of events of this class: data of the lineage, its own quality."""
        data = [Attribute(p) for owner in self.lineage(path) for p in self.properties[owner]]
        return data + [Attribute(p, d) for p in self.properties[path] for d in DIMENSIONS]

    def label(self, name: str) -> float:
        number = self.labels.get(name.casefold())
        if number is None:
            raise NameNotKnown("label", name, self.labels)
        return number

    # -- building ---------------------------------------------------------------------------

    def _add_class(self, path: str, properties: Mapping[str, str]) -> None:
        steps = path.split("/")
        if len(steps) > MAX_DEPTH:
            raise SchemaError(f"class {shorten(path)} is {len(steps)} deep", remedy="at most 64")
        for step in steps:
            self._claim(step, f"class {shorten(path)}")
        if path.casefold() in self._paths:
            raise SchemaError(f"class {shorten(path)} is declared twice")
        if len(steps) > 1 and "/".join(steps[:-1]) not in self.properties:
            raise SchemaError(
                f"class {shorten(path)} stands below {shorten('/'.join(steps[:-1]))}, which is "
                "not declared before it",
                remedy="declare the enclosing class first",
            )
        owned: list[Property] = []
        for name, type_name in properties.items():
            place = f"property {shorten(name)} of {path}"
            self._claim(name, place)
            if name.casefold() in DIMENSIONS:
                raise SchemaError(f"{place} is named like a quality dimension", remedy="rename it")
            domain = DATA_DOMAINS.get(type_name)
            if domain is None:
                raise SchemaError(
                    f"{place} has the unknown type {shorten(str(type_name))}",
                    remedy="one of " + ", ".join(DATA_DOMAINS),
                )
            owned.append(Property(path, name, domain))
        self._paths[path] = self._paths[path.casefold()] = path
        self.properties[path] = tuple(owned)

    def _add_label(self, label: str, number: float) -> None:
        if not _NAME.match(label) or len(label) > MAX_NAME_LENGTH:
            raise SchemaError(f"label {shorten(label)} is not a name")
        if label.casefold() in self.labels:
            raise SchemaError(f"label {shorten(label)} is declared twice")
        try:
            QUALITY.key(number)
        except QnsError as problem:
            raise SchemaError(f"label {shorten(label)}: {problem.problem}") from None
        self.labels[label.casefold()] = float(number)

    def _claim(self, name: str, place: str) -> None:
        if not _NAME.match(name) or len(name) > MAX_NAME_LENGTH:
            raise SchemaError(
                f"{place}: {shorten(name)} is not a name",
                remedy="letters, digits, _ and -, starting with a letter or _",
            )
        known = self._spellings.setdefault(name.casefold(), name)
        if known != name:
            raise SchemaError(
                f"{place}: {shorten(name)} differs from {shorten(known)} only by case",
                remedy="spell them the same, or rename one",
            )

    def _scopes_below(self) -> dict[str, frozenset[str]]:
        below: dict[str, list[str]] = {path: [] for path in self.properties}
        for path in self.properties:
            for enclosing in self.lineage(path):
                below[enclosing].append(path)
        return {path: frozenset(scope) for path, scope in below.items()}

    def _attribute_table(self, path: str) -> dict[str, tuple[Attribute, ...]]:
        table = self._attributes.get(path)
        if table is None:
            table = self._attributes[path] = self._spell_attributes(path)
        return table

    def _spell_attributes(self, path: str) -> dict[str, tuple[Attribute, ...]]:
        """Returns every spelling with its possible meanings. A qualified name has only one."""
        brief: dict[str, tuple[Attribute, ...]] = {}
        qualified: dict[str, tuple[Attribute, ...]] = {}
        for owner in self.lineage(path):
            last_step = owner.rsplit("/", 1)[-1]
            for prop in self.properties[owner]:
                for dimension in (None, *DIMENSIONS):
                    attribute = Attribute(prop, dimension)
                    suffix = f".{dimension}" if dimension else ""
                    for start in ("", f"{last_step}."):
                        spelled = f"{start}{prop.name}{suffix}".casefold()
                        brief[spelled] = (*brief.get(spelled, ()), attribute)
                    qualified[attribute.name.casefold()] = (attribute,)
        return brief | qualified

    def _unknown_attribute(self, path: str, name: str) -> NameNotKnown:
        head, dot, last = name.rpartition(".")
        known = [p.name for owner in self.lineage(path) for p in self.properties[owner]]
        if dot and head.casefold() in self._attribute_table(path):
            return NameNotKnown(
                "dimension", last, DIMENSIONS, problem=f"{head} has no dimension {shorten(last)}"
            )
        if dot and last.casefold() in DIMENSIONS:
            known = [f"{p}.{last}" for p in known]
        qualified = [attribute.name for attribute in self.attributes(path)]
        if "." in head or "/" in name:
            known += qualified
        return NameNotKnown(
            "property", name, known, problem=f"{path} has no property {shorten(name)}"
        )


def parent(path: str) -> str:
    """Returns the class that encloses this one, or an empty string for an outermost class."""
    return path.rpartition("/")[0]
