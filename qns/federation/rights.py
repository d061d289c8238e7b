"""Rights: the groups of a federation, and the rules about who may read which class of whom.

A document without rights lets every member read everything. With rights, an organisation may read
the events of a class only if a rule grants it. It always reads its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from qns.d2q.lexical import checked_organisation
from qns.d2q.schema import Schema
from qns.errors import DuplicateId, FederationError, NameNotKnown, QnsError

EVERYONE: Final = ""
"""In a rule: every member."""

Groups = Mapping[str, frozenset[str]]
"""Group -> its members."""


@dataclass(frozen=True, slots=True, order=True)
class ReadRule:
    """Grants the events of a class, and of the classes below it unless `only`."""

    data_class: str
    reader: str = EVERYONE
    """The organisation or group that may read them."""
    source: str = EVERYONE
    """The organisation or group that publishes them."""
    only: bool = False

    def __str__(self) -> str:
        """Returns what the rule grants, in words."""
        what = f"only {self.data_class}" if self.only else self.data_class
        return f"{self.reader or 'every member'} may read {what} of {self.source or 'every member'}"

    def names(self, name: str) -> bool:
        """True if the rule has this organisation or group as its reader or source."""
        return name in (self.reader, self.source)


def check_rights(
    schema: Schema,
    members: Collection[str],
    groups: Groups,
    rules: Iterable[ReadRule],
) -> None:
    """Raises a QnsError if a group or a rule names what the document does not have."""
    for name, named in groups.items():
        checked_organisation(name)
        if name in members:
            raise DuplicateId(
                f"{name} is an organisation and a group", remedy="give the group another name"
            )
        for each in named:
            if each not in members:
                raise NameNotKnown("organisation", each, members).at(f"group {name}")
    for rule in rules:
        try:
            _check_rule(schema, members, groups, rule)
        except QnsError as problem:
            raise problem.at("rights") from None


def _check_rule(schema: Schema, members: Collection[str], groups: Groups, rule: ReadRule) -> None:
    if schema.data_class(rule.data_class) != rule.data_class:
        raise FederationError(
            f"a rule for {rule.data_class}: write {schema.data_class(rule.data_class)}"
        )
    for name in (rule.reader, rule.source):
        if name != EVERYONE and name not in members and name not in groups:
            raise NameNotKnown("organisation or group", name, [*members, *groups])


class ReadableClasses:
    """The classes that each organisation may read of each other, by the rules of one document."""

    def __init__(self, schema: Schema, groups: Groups, rules: Iterable[ReadRule]) -> None:
        self._schema = schema
        self._called: defaultdict[str, set[str]] = defaultdict(set)
        self._rules: defaultdict[str, list[ReadRule]] = defaultdict(list)
        self._found: dict[tuple[str, str], frozenset[str]] = {}
        for group, members in groups.items():
            for name in members:
                self._called[name].add(group)
        for rule in rules:
            self._rules[rule.reader].append(rule)

    def of(self, reader: str, source: str) -> frozenset[str]:
        """Returns the classes whose events of `source` the organisation may read."""
        found = self._found.get((reader, source))
        if found is None:
            sources = self._names_of(source)
            found = self._found[reader, source] = frozenset().union(
                *(
                    self._schema.scope(rule.data_class, rule.only)
                    for name in self._names_of(reader)
                    for rule in self._rules.get(name, ())
                    if rule.source in sources
                )
            )
        return found

    def _names_of(self, name: str) -> set[str]:
        """Returns what a rule may call the organisation."""
        return {EVERYONE, name, *self._called.get(name, ())}
