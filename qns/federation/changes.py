"""Changes: what a later version of a federation document alters, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from qns.d2q.lexical import write_number
from qns.d2q.schema import Schema
from qns.errors import FederationError, shorten
from qns.federation.document import Federation, Organisation


class Kind(Enum):
    JOINS = "joins"
    LEAVES = "leaves"
    COMES_BACK = "comes back"
    STARTS_HOSTING = "starts hosting"
    STOPS_HOSTING = "stops hosting"
    ENDPOINT = "endpoint"
    CAPABILITY = "capability"
    CERTIFICATE = "certificate"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class Change:
    kind: Kind
    organisation: str
    """Empty for a change of the schema."""
    text: str
    """The whole change, on its own."""
    classes: tuple[str, ...] = ()
    """Of one that joins, leaves or comes back: all that it hosts. Else: those that change."""


def changes(old: Federation, new: Federation) -> list[Change]:
    """Who comes and goes, then what else is altered; FederationError unless `new` follows `old`."""
    check_follows(old, new)
    before, after = old.organisations, new.organisations
    found = [_joins(each) for name, each in after.items() if name not in before]
    found += [_leaves(each) for name, each in before.items() if name not in after]
    for name, each in after.items():
        if name in before:
            if before[name].joined != each.joined:
                found.append(_comes_back(each))
            else:
                found += _hosting(before[name], each)
            found += _contact(before[name], each)
    return [*found, *_schema(old.schema, new.schema)]


def check_follows(old: Federation, new: Federation) -> None:
    """FederationError unless `new` is a later version of the same federation's document."""
    if new.name != old.name:
        raise FederationError(
            f"a document of the federation {shorten(new.name)}, not of {shorten(old.name)}",
            remedy="compare versions of one document",
        )
    if new.version <= old.version:
        swapped = new.version < old.version
        raise FederationError(
            f"version {new.version} of {new.name} is not later than version {old.version}",
            remedy="swap the two" if swapped else f"a change makes version {old.version + 1}",
        )
    for name, organisation in new.organisations.items():
        known = old.organisations.get(name)
        if organisation.joined > old.version or (known and known.joined == organisation.joined):
            continue
        said = f"joined with version {known.joined}" if known else "was no member"
        raise FederationError(
            f"{name} joined with version {organisation.joined}, says version {new.version}; "
            f"in version {old.version} it {said}",
            remedy="a member keeps the version with which it joined; one that joins or comes back "
            "has that of the document which first names it again",
        )


def _joins(organisation: Organisation) -> Change:
    where = f" at {organisation.endpoint}" if organisation.endpoint else ""
    return _with_classes(Kind.JOINS, organisation, f"joins{where}, and hosts")


def _leaves(organisation: Organisation) -> Change:
    return _with_classes(Kind.LEAVES, organisation, "leaves; it hosted")


def _comes_back(organisation: Organisation) -> Change:
    how = f"left and comes back (joined with version {organisation.joined}), and hosts"
    return _with_classes(Kind.COMES_BACK, organisation, how)


def _hosting(before: Organisation, after: Organisation) -> Iterator[Change]:
    for kind, paths in (
        (Kind.STARTS_HOSTING, after.hosts - before.hosts),
        (Kind.STOPS_HOSTING, before.hosts - after.hosts),
    ):
        if paths:
            classes = tuple(sorted(paths))
            text = f"{after.name} {kind.value} {', '.join(classes)}"
            yield Change(kind, after.name, text, classes)


def _with_classes(kind: Kind, organisation: Organisation, how: str) -> Change:
    classes = tuple(sorted(organisation.hosts))
    text = f"{organisation.name} {how} {', '.join(classes) or 'nothing'}"
    return Change(kind, organisation.name, text, classes)


def _contact(before: Organisation, after: Organisation) -> Iterator[Change]:
    name = after.name
    if before.endpoint != after.endpoint:
        words = _words(before.endpoint, after.endpoint)
        yield Change(Kind.ENDPOINT, name, f"{name}: its endpoint {words}")
    if before.capability != after.capability:
        words = _words(str(before.capability), str(after.capability))
        yield Change(Kind.CAPABILITY, name, f"{name}: its capability {words}")
    if before.certificate != after.certificate:
        if before.certificate and after.certificate:
            words = "is another one"
        else:
            words = "is new" if after.certificate else "is gone"
        yield Change(Kind.CERTIFICATE, name, f"{name}: its certificate {words}")


def _schema(before: Schema, after: Schema) -> Iterator[Change]:
    """One change for each class, property and label that is not as it was."""
    told: list[tuple[str, str, str]] = [("the schema's name", before.name, after.name)]
    for path in sorted({*before.classes, *after.classes}):
        if path not in after.properties or path not in before.properties:
            is_new = path in after.properties
            text = f"the class {path} {'is new' if is_new else 'is gone'}"
            yield Change(Kind.SCHEMA, "", text, (path,))
            continue
        types, types_now = (
            {prop.name: prop.domain.name for prop in schema.properties[path]}
            for schema in (before, after)
        )
        if types == types_now and [*types] != [*types_now]:
            text = f"the properties of {path} stand in another order"
            yield Change(Kind.SCHEMA, "", text, (path,))
        told += [
            (f"the property {path}.{prop}", types.get(prop, ""), types_now.get(prop, ""))
            for prop in dict.fromkeys([*types, *types_now])
        ]
    for label in dict.fromkeys([*before.labels, *after.labels]):
        numbers = (schema.labels.get(label) for schema in (before, after))
        was, now = ("" if number is None else write_number(number) for number in numbers)
        told.append((f"the label {label}", was, now))
    for what, was, now in told:
        if was != now:
            yield Change(Kind.SCHEMA, "", f"{what} {_words(was, now)}")


def _words(before: str, after: str) -> str:
    if not before:
        return f"is new: {after}"
    return f"was {before} and becomes {after}" if after else f"is gone: it was {before}"
