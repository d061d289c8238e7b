"""Changes: the differences between two versions of a federation document, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from qns.errors import FederationError, shorten
from qns.federation.certificate import read_certificate
from qns.federation.document import Federation, Organisation
from qns.federation.roots_xml import write_expires
from qns.federation.schema_changes import changed_words, check_grows, schema_changes

MOST_VERSIONS_AHEAD: Final = 1_000_000
"""The limit by which a version may be ahead of the one that it follows, so that none can use up the
versions."""


class Kind(Enum):
    JOINS = "joins"
    LEAVES = "leaves"
    COMES_BACK = "comes back"
    STARTS_HOSTING = "starts hosting"
    STOPS_HOSTING = "stops hosting"
    HOSTED = "hosted"
    ENDPOINT = "endpoint"
    CAPABILITY = "capability"
    TLS = "tls"
    SEAL = "seal"
    SCHEMA = "schema"
    GROUP = "group"
    RIGHTS = "rights"
    ROOTS = "roots"
    EXPIRES = "expires"


@dataclass(frozen=True, slots=True)
class Change:
    kind: Kind
    organisation: str
    """Empty for a change of the schema, the groups, the rights, the root keys or the expiry."""
    text: str
    """The whole change in words."""
    classes: tuple[str, ...] = ()
    """All hosted classes if an organisation joins, leaves or comes back, else the changed ones."""


def changes(old: Federation, new: Federation) -> list[Change]:
    """Returns who joins and leaves, then all other changes.

    Raises FederationError unless `new` follows `old`.
    """
    check_follows(old, new)
    before, after = old.organisations, new.organisations
    found = [_joins(each) for name, each in after.items() if name not in before]
    found += [_leaves(each) for name, each in before.items() if name not in after]
    for name, each in after.items():
        if name in before:
            if before[name].incarnation != each.incarnation:
                found.append(_comes_back(each))
            else:
                found += _hosting(before[name], each)
            found += _contact(before[name], each)
    schema = schema_changes(old.schema, new.schema)
    found += (Change(Kind.SCHEMA, "", change.text, change.classes) for change in schema)
    return [*found, *_groups(old, new), *_rights(old, new), *_trust(old, new)]


def check_follows(old: Federation, new: Federation) -> None:
    """Raises FederationError unless `new` is a later version of the same federation's document.

    Every tool and every peer decides with this function whether a document can replace another.
    """
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
    if new.version > old.version + MOST_VERSIONS_AHEAD:
        raise FederationError(
            f"version {new.version} of {new.name} is more than {MOST_VERSIONS_AHEAD:,} ahead of "
            f"version {old.version}",
            remedy=f"a change makes version {old.version + 1}",
        )
    for name, organisation in new.organisations.items():
        known = old.organisations.get(name)
        if organisation.incarnation > old.version or (
            known and known.incarnation == organisation.incarnation
        ):
            continue
        said = f"joined with version {known.incarnation}" if known else "was no member"
        raise FederationError(
            f"{name} joined with version {organisation.incarnation}, says version {new.version}; "
            f"in version {old.version} it {said}",
            remedy="a member keeps the version with which it joined; one that joins or comes back "
            "has that of the document which first names it again",
        )
    try:
        check_grows(old.schema, new.schema)
    except FederationError as problem:
        raise problem.at(f"version {new.version} of {new.name}") from None


def _groups(old: Federation, new: Federation) -> Iterator[Change]:
    for name in sorted({*old.groups, *new.groups}):
        before, after = old.groups.get(name), new.groups.get(name)
        if before == after:
            continue
        if after is None:
            words = "is gone"
        elif before is None:
            words = f"is new, with {', '.join(sorted(after)) or 'nobody'}"
        else:
            added, removed = sorted(after - before), sorted(before - after)
            words = "; ".join(
                f"{', '.join(names)} {how}"
                for names, how in ((added, "added"), (removed, "removed"))
                if names
            )
        yield Change(Kind.GROUP, "", f"group {name}: {words}")


def _rights(old: Federation, new: Federation) -> Iterator[Change]:
    if old.rights is not None and new.rights is None:
        yield Change(Kind.RIGHTS, "", "no rights any more: every member may read everything")
        return
    if old.rights is None and new.rights is not None:
        words = "rights are in force from now on: nobody may read what no rule grants"
        yield Change(Kind.RIGHTS, "", words)
    before, after = old.rights or frozenset(), new.rights or frozenset()
    for rule in sorted(after - before):
        yield Change(Kind.RIGHTS, "", f"granted: {rule}", (rule.data_class,))
    for rule in sorted(before - after):
        yield Change(Kind.RIGHTS, "", f"revoked: {rule}", (rule.data_class,))


def _trust(old: Federation, new: Federation) -> Iterator[Change]:
    before, after = old.root_set, new.root_set
    if before != after:
        words = "no root set signs from now on"
        if after is not None:
            keys = f"{after.threshold} of {len(after.keys)} keys"
            words = f"root set {after.number} signs from now on: {keys}"
        yield Change(Kind.ROOTS, "", words)
    was, now = (write_expires(each.expires) if each.expires else "" for each in (old, new))
    if was != now:
        yield Change(Kind.EXPIRES, "", f"the time when it expires {changed_words(was, now)}")


def _joins(organisation: Organisation) -> Change:
    where = f" at {organisation.endpoint}" if organisation.endpoint else ""
    return _with_classes(Kind.JOINS, organisation, f"joins{where}, and hosts")


def _leaves(organisation: Organisation) -> Change:
    return _with_classes(Kind.LEAVES, organisation, "leaves; it hosted")


def _comes_back(organisation: Organisation) -> Change:
    how = f"left and comes back (joined with version {organisation.incarnation}), and hosts"
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
    known, knows = before.hosts | before.hosted, after.hosts | after.hosted
    for how, paths in (("has hosted", after.hosted - known), ("never hosted", known - knows)):
        if paths:
            classes = tuple(sorted(paths))
            text = f"{after.name} {how} {', '.join(classes)}, says the newer version"
            yield Change(Kind.HOSTED, after.name, text, classes)


def _with_classes(kind: Kind, organisation: Organisation, how: str) -> Change:
    classes = tuple(sorted(organisation.hosts))
    text = f"{organisation.name} {how} {', '.join(classes) or 'nothing'}"
    return Change(kind, organisation.name, text, classes)


def _contact(before: Organisation, after: Organisation) -> Iterator[Change]:
    name = after.name
    if before.endpoint != after.endpoint:
        words = changed_words(before.endpoint, after.endpoint)
        yield Change(Kind.ENDPOINT, name, f"{name}: its endpoint {words}")
    if before.capability != after.capability:
        words = changed_words(str(before.capability), str(after.capability))
        yield Change(Kind.CAPABILITY, name, f"{name}: its capability {words}")
    yield from _certificates(Kind.TLS, "TLS", name, before.tls, after.tls)
    yield from _certificates(Kind.SEAL, "seal", name, before.seals, after.seals)


def _certificates(
    kind: Kind, words: str, name: str, before: tuple[str, ...], after: tuple[str, ...]
) -> Iterator[Change]:
    for pem in (*after, *before):
        if (pem in before) != (pem in after):
            what = "is new" if pem in after else "is gone"
            short = read_certificate(pem).short
            yield Change(kind, name, f"{name}: its {words} certificate {short} {what}")
