"""Schema mapping: which organisation hosts which class (semantics §1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from qns.d2q.schema import Schema
from qns.errors import NameNotKnown


@dataclass(frozen=True, slots=True)
class SchemaMapping:
    hosts: Mapping[str, frozenset[str]]
    """Maps an organisation to the classes that it hosts. The set of organisations is open."""

    @classmethod
    def of(cls, schema: Schema, hosts: Mapping[str, Iterable[str]]) -> SchemaMapping:
        """Returns the mapping. Each class name is checked against the schema."""
        return cls(
            {
                organisation: frozenset(schema.data_class(name) for name in names)
                for organisation, names in hosts.items()
            }
        )

    @property
    def organisations(self) -> tuple[str, ...]:
        return tuple(self.hosts)

    def hosted_by(self, organisation: str) -> frozenset[str]:
        if organisation not in self.hosts:
            raise NameNotKnown("organisation", organisation, self.hosts)
        return self.hosts[organisation]
