"""Federation document: the organisations, the schema and who hosts what, in a numbered version.

One document is in force at each peer; a peer with an older version fetches the newer one from
whoever has it. An organisation's incarnation is the version with which it joined, so one that left
and came back is not mistaken for its former self.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from qns.d2q.lexical import checked_organisation
from qns.d2q.schema import Schema
from qns.errors import FederationError, NameNotKnown
from qns.federation.mapping import SchemaMapping

DEFAULT_CAPABILITY: Final = 4
MAX_CAPABILITY: Final = 1_000


@dataclass(frozen=True, slots=True)
class Organisation:
    name: str
    hosts: frozenset[str]
    """The classes of which it is a source."""
    endpoint: str = ""
    certificate: str = ""
    """In PEM; empty until trust between organisations is set up."""
    capability: int = DEFAULT_CAPABILITY
    """Fan-out: to how many others it can send one notification."""
    joined: int = 1
    """The document version with which it joined: its incarnation."""


@dataclass(frozen=True, slots=True)
class Federation:
    name: str
    schema: Schema
    organisations: Mapping[str, Organisation]
    version: int = 1

    def __post_init__(self) -> None:
        if self.version < 1:
            raise FederationError(
                f"version {self.version} of a federation document", remedy="1 is the first"
            )
        for name, organisation in self.organisations.items():
            self._check(name, organisation)
        object.__setattr__(self, "organisations", MappingProxyType(dict(self.organisations)))

    def _check(self, name: str, organisation: Organisation) -> None:
        checked_organisation(name)
        if organisation.name != name:
            raise FederationError(f"organisation {organisation.name} is filed under {name}")
        for path in organisation.hosts:
            if self.schema.data_class(path) != path:
                raise FederationError(f"{name} hosts {path}: write {self.schema.data_class(path)}")
        if not 1 <= organisation.capability <= MAX_CAPABILITY:
            raise FederationError(
                f"{name} has capability {organisation.capability}",
                remedy=f"give a fan-out from 1 to {MAX_CAPABILITY}",
            )
        if not 1 <= organisation.joined <= self.version:
            raise FederationError(
                f"{name} joined with version {organisation.joined} of a document that is at "
                f"version {self.version}",
                remedy="an organisation joins with the version that first names it",
            )

    @classmethod
    def of(
        cls, name: str, schema: Schema, hosts: Mapping[str, Iterable[str]], capability: int = 4
    ) -> Federation:
        """Version 1, from who hosts what; class names in any spelling the schema knows."""
        return cls(
            name,
            schema,
            {
                each: Organisation(
                    each, frozenset(map(schema.data_class, paths)), capability=capability
                )
                for each, paths in hosts.items()
            },
        )

    @property
    def mapping(self) -> SchemaMapping:
        hosts = {name: each.hosts for name, each in self.organisations.items()}
        return SchemaMapping(hosts, self.version)

    def __contains__(self, name: str) -> bool:
        return name in self.organisations

    def __getitem__(self, name: str) -> Organisation:
        if name not in self.organisations:
            raise NameNotKnown("organisation", name, self.organisations)
        return self.organisations[name]

    # Each change makes the next version; what is in force is never altered.

    def with_organisation(self, organisation: Organisation) -> Federation:
        """It joins, as a new incarnation, or comes back as one."""
        if organisation.name in self:
            raise FederationError(
                f"{organisation.name} is a member already", remedy="let it leave first"
            )
        return self._next(
            {
                **self.organisations,
                organisation.name: replace(organisation, joined=self.version + 1),
            }
        )

    def without(self, name: str) -> Federation:
        """It leaves."""
        gone = self[name]
        return self._next({k: v for k, v in self.organisations.items() if v is not gone})

    def hosting(self, name: str, paths: Iterable[str]) -> Federation:
        """It now hosts these classes, no others."""
        changed = replace(self[name], hosts=frozenset(map(self.schema.data_class, paths)))
        return self._next({**self.organisations, name: changed})

    def _next(self, organisations: Mapping[str, Organisation]) -> Federation:
        return Federation(self.name, self.schema, organisations, self.version + 1)
