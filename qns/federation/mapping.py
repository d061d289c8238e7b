"""Schema mapping: which organisation hosts which class, in a numbered version (semantics §1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from qns.d2q.schema import Schema
from qns.errors import NameNotKnown


@dataclass(frozen=True, slots=True)
class SchemaMapping:
    hosts: Mapping[str, frozenset[str]]
    """Organisation -> the classes it hosts. The set of organisations is open."""
    version: int = 1

    @classmethod
    def of(
        cls, schema: Schema, hosts: Mapping[str, Iterable[str]], version: int = 1
    ) -> SchemaMapping:
        """The mapping, with every class name checked against the schema."""
        return cls(
            {
                organisation: frozenset(schema.data_class(name) for name in names)
                for organisation, names in hosts.items()
            },
            version,
        )

    @property
    def organisations(self) -> tuple[str, ...]:
        return tuple(self.hosts)

    def hosted_by(self, organisation: str) -> frozenset[str]:
        if organisation not in self.hosts:
            raise NameNotKnown("organisation", organisation, self.hosts)
        return self.hosts[organisation]
