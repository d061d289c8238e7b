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
    _readable: ReadableClasses | None = field(default=None, init=False, compare=False)
    """Is made when it is first needed: many mappers only look for hosts."""

    def producers(self, except_for: str) -> dict[str, frozenset[str]]:
        """Returns each other member, with the classes that it hosts and `except_for` may read.

        A member without such a class is included: it can have one in a later version. The result is
        empty if `except_for` is not a member, because only members exchange messages.
        """
        if except_for not in self.federation:
            return {}
        members = self.federation.organisations.items()
        hosts = {name: member.hosts for name, member in members if name != except_for}
        if self.federation.rights is None:
            return hosts
        return {name: classes & self.readable(except_for, name) for name, classes in hosts.items()}

    def hosts(self, organisation: str, data_class: str) -> bool:
        """True if the organisation is a member and hosts the class."""
        member = self.federation.organisations.get(organisation)
        return member is not None and data_class in member.hosts

    def readable(self, reader: str, source: str) -> frozenset[str]:
        """Returns the classes whose events of `source` the organisation may read."""
        document = self.federation
        if document.rights is None or reader == source:
            return frozenset(document.schema.classes)
        if self._readable is None:
            readable = ReadableClasses(document.schema, document.groups, document.rights)
            object.__setattr__(self, "_readable", readable)
        assert self._readable is not None
        return self._readable.of(reader, source)

    def may_read(self, reader: str, source: str, data_class: str) -> bool:
        """True if the organisation may read the events of this class and source."""
        if self.federation.rights is None or reader == source:
            return True
        return data_class in self.readable(reader, source)
