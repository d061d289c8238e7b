"""Schema Mapper: finds the producers in one version of a federation document (thesis 5.4.4).

It also knows who may read the events of which class: for a consumer, a class that it may not read
is as one that the producer does not host.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from qns.federation.document import Federation
from qns.federation.rights import ReadableClasses


@dataclass(frozen=True, slots=True)
class SchemaMapper:
    """Answers which organisation hosts which class, and who may read it. Classes are given by their
    full path."""

    federation: Federation
    _readable: dict[str, ReadableClasses] = field(default_factory=dict, compare=False)
    """Organisation -> what it may read, for those that were asked for."""

    def producers(self, except_for: str) -> dict[str, frozenset[str]]:
        """Returns each other member, with the classes that it hosts and `except_for` may read.

        A member without such a class is included: it can have one in a later version. The result is
        empty if `except_for` is not a member, because only members exchange messages.
        """
        if except_for not in self.federation:
            return {}
        members = self.federation.organisations.items()
        return {
            name: member.hosts & self.readable(except_for, name)
            for name, member in members
            if name != except_for
        }

    def hosts(self, organisation: str, data_class: str) -> bool:
        """True if the organisation is a member and hosts the class."""
        member = self.federation.organisations.get(organisation)
        return member is not None and data_class in member.hosts

    def readable(self, reader: str, source: str) -> frozenset[str]:
        """Returns the classes whose events of `source` the organisation may read."""
        schema, rules = self.federation.schema, self.federation.rights
        if rules is None or reader == source:
            return frozenset(schema.classes)
        found = self._readable.get(reader)
        if found is None:
            found = ReadableClasses(reader, schema, self.federation.groups, rules)
            self._readable[reader] = found
        return found.of(source)

    def may_read(self, reader: str, source: str, data_class: str) -> bool:
        """True if the organisation may read the events of this class and source."""
        return self.federation.rights is None or data_class in self.readable(reader, source)
