"""Schema Mapper: finds the producers in one version of a federation document (thesis 5.4.4)."""

from __future__ import annotations

from dataclasses import dataclass

from qns.federation.document import Federation


@dataclass(frozen=True, slots=True)
class SchemaMapper:
    """Answers which organisation hosts which class. Classes are given by their full path."""

    federation: Federation

    def producers(self, except_for: str) -> dict[str, frozenset[str]]:
        """Returns each member other than `except_for`, with the classes that it hosts.

        A member that hosts no class is included: it can host one in a later version. The result is
        empty if `except_for` is not a member, because only members exchange messages.
        """
        if except_for not in self.federation:
            return {}
        members = self.federation.organisations.items()
        return {name: member.hosts for name, member in members if name != except_for}

    def hosts(self, organisation: str, data_class: str) -> bool:
        """True if the organisation is a member and hosts the class."""
        member = self.federation.organisations.get(organisation)
        return member is not None and data_class in member.hosts
