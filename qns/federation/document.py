"""Federation document: the organisations, the schema, the schema mapping and the rights, in one
version.

One document is in force at each peer. A peer with an older version fetches the newer one from a
peer that has it. An organisation's incarnation is the version with which it joined, so that an
organisation that left and came back is distinguished from its former incarnation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from qns.d2q.lexical import checked_organisation
from qns.d2q.schema import Schema
from qns.errors import DuplicateId, FederationError, NameNotKnown
from qns.federation.certificate import read_certificate
from qns.federation.rights import Groups, ReadRule, check_rights
from qns.federation.roots import RootSet, Signature, check_numbers, check_signatures

DEFAULT_CAPABILITY: Final = 4
MAX_CAPABILITY: Final = 1_000
MOST_TLS: Final = 2
"""A peer that changes its certificate has the old and the new one for some time."""
MOST_SEALS: Final = 16


@dataclass(frozen=True, slots=True)
class Organisation:
    name: str
    hosts: frozenset[str]
    """The classes for which it is a producer."""
    endpoint: str = ""
    tls: tuple[str, ...] = ()
    """The certificates in PEM with which its peer authenticates itself; two while they change."""
    capability: int = DEFAULT_CAPABILITY
    """The fan-out: to how many others it can send one notification."""
    incarnation: int = 1
    """The version of the document with which it joined."""
    seals: tuple[str, ...] = ()
    """The certificates in PEM of its seals; former ones are kept to verify what they sealed."""
    hosted: frozenset[str] = frozenset()
    """The classes that it hosted earlier in this incarnation: it may still owe events of them."""

    def __post_init__(self) -> None:
        for attribute, most, kind in (("tls", MOST_TLS, "TLS"), ("seals", MOST_SEALS, "seal")):
            given = getattr(self, attribute)
            if given:
                in_order = _in_order(given, most, f"{self.name}: {kind}")
                object.__setattr__(self, attribute, in_order)


@dataclass(frozen=True, slots=True)
class Federation:
    name: str
    schema: Schema
    organisations: Mapping[str, Organisation]
    version: int = 1
    expires: datetime | None = None
    """When a signed document becomes stale; None in a document that is not signed."""
    roots: tuple[RootSet, ...] = ()
    """Every root set of the federation, the one in force last; none in a document that is not
    signed."""
    signatures: tuple[Signature, ...] = field(default=(), compare=False)
    groups: Groups = field(default_factory=dict)
    """Group -> its members: names for the rules about rights."""
    rights: frozenset[ReadRule] | None = None
    """Who may read which class of whom; None: every member everything."""

    def __post_init__(self) -> None:
        if self.version < 1:
            raise FederationError(
                f"version {self.version} of a federation document", remedy="1 is the first"
            )
        for name, organisation in self.organisations.items():
            self._check(name, organisation)
        self._check_owners()
        self._check_roots()
        check_rights(self.schema, self.organisations, self.groups, self.rights or ())
        object.__setattr__(self, "organisations", MappingProxyType(dict(self.organisations)))
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))

    def _check(self, name: str, organisation: Organisation) -> None:
        checked_organisation(name)
        if organisation.name != name:
            raise FederationError(f"organisation {organisation.name} is filed under {name}")
        for path in organisation.hosts | organisation.hosted:
            if self.schema.data_class(path) != path:
                raise FederationError(f"{name} hosts {path}: write {self.schema.data_class(path)}")
        if not 1 <= organisation.capability <= MAX_CAPABILITY:
            raise FederationError(
                f"{name} has capability {organisation.capability}",
                remedy=f"give a fan-out from 1 to {MAX_CAPABILITY}",
            )
        if not 1 <= organisation.incarnation <= self.version:
            raise FederationError(
                f"{name} joined with version {organisation.incarnation} of a document that is at "
                f"version {self.version}",
                remedy="an organisation joins with the version that first names it",
            )

    def _check_owners(self) -> None:
        """Raises FederationError if a certificate belongs to two organisations."""
        owners: dict[str, str] = {}
        for name, organisation in self.organisations.items():
            for pem in (*organisation.tls, *organisation.seals):
                owner = owners.setdefault(pem, name)
                if owner != name:
                    raise FederationError(
                        f"{owner} and {name} have the same certificate "
                        f"{read_certificate(pem).short}",
                        remedy="each organisation makes a key and a certificate of its own",
                    )

    def _check_roots(self) -> None:
        check_numbers(self.roots)
        check_signatures(self.signatures)
        if bool(self.roots) != (self.expires is not None):
            has, lacks = ("root keys", "expires") if self.roots else ("expires", "root keys")
            raise FederationError(
                f"a document with {has} and without {lacks}",
                remedy="a signed document has both, one that is not signed has neither",
            )
        if self.signatures and not self.roots:
            raise FederationError(
                "a document with signatures and without root keys",
                remedy="qns federation rotate adds root keys",
            )
        if self.expires is not None and self.expires.tzinfo is None:
            raise FederationError("expires has no zone", remedy="write it as in …T12:00:00Z")

    @property
    def root_set(self) -> RootSet | None:
        """The root set that signs the document; None if it is not to be signed."""
        return self.roots[-1] if self.roots else None

    @classmethod
    def of(
        cls, name: str, schema: Schema, hosts: Mapping[str, Iterable[str]], capability: int = 4
    ) -> Federation:
        """Returns version 1 of a document. Class names can have any valid spelling."""
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

    def __contains__(self, name: str) -> bool:
        return name in self.organisations

    def __getitem__(self, name: str) -> Organisation:
        if name not in self.organisations:
            raise NameNotKnown("organisation", name, self.organisations)
        return self.organisations[name]

    # Each change returns the next version. A document is never modified.

    def with_organisation(self, organisation: Organisation) -> Federation:
        """Returns the next version, in which the organisation joins as a new incarnation."""
        if organisation.name in self:
            raise FederationError(
                f"{organisation.name} is a member already", remedy="let it leave first"
            )
        return self._next(
            {
                **self.organisations,
                organisation.name: replace(
                    organisation, incarnation=self.version + 1, hosted=frozenset()
                ),
            }
        )

    def without(self, name: str) -> Federation:
        """Returns the next version, in which the organisation has left.

        No group and no rule names it any more.
        """
        gone = self[name]
        groups = {group: members - {name} for group, members in self.groups.items()}
        rights = self.rights
        if rights is not None:
            rights = frozenset(rule for rule in rights if not rule.names(name))
        members = {k: v for k, v in self.organisations.items() if v is not gone}
        version = self.version + 1
        return replace(
            self,
            organisations=members,
            groups=groups,
            rights=rights,
            version=version,
            signatures=(),
        )

    def hosting(self, name: str, paths: Iterable[str]) -> Federation:
        """Returns the next version, in which the organisation hosts exactly these classes.

        The document remembers those that it hosted before.
        """
        old, hosts = self[name], frozenset(map(self.schema.data_class, paths))
        changed = replace(old, hosts=hosts, hosted=(old.hosts | old.hosted) - hosts)
        return self._next({**self.organisations, name: changed})

    def with_endpoints(self, endpoints: Mapping[str, str]) -> Federation:
        """Returns the next version, in which these organisations have these endpoints."""
        moved = {name: replace(self[name], endpoint=url) for name, url in endpoints.items()}
        return self._next({**self.organisations, **moved})

    def with_certificates(
        self, name: str, *, tls: Iterable[str] | None = None, seals: Iterable[str] | None = None
    ) -> Federation:
        """Returns the next version, in which the organisation has exactly these certificates.

        None leaves the certificates of that kind as they are.
        """
        old = self[name]
        changed = replace(
            old,
            tls=old.tls if tls is None else tuple(tls),
            seals=old.seals if seals is None else tuple(seals),
        )
        return self._next({**self.organisations, name: changed})

    def with_capability(self, name: str, capability: int) -> Federation:
        """Returns the next version, in which the organisation has this fan-out."""
        changed = replace(self[name], capability=capability)
        return self._next({**self.organisations, name: changed})

    def with_group(self, name: str, members: Iterable[str]) -> Federation:
        """Returns the next version, in which the group has exactly these members.

        A group without members is removed, unless a rule names it.
        """
        groups, named = dict(self.groups), frozenset(members)
        if named:
            groups[name] = named
        elif groups.pop(name, None) is None:
            raise NameNotKnown("group", name, self.groups)
        version = self.version + 1
        return replace(self, groups=groups, version=version, signatures=())

    def with_rights(self, rules: Iterable[ReadRule] | None) -> Federation:
        """Returns the next version, with exactly these rules; None lets every member read all."""
        rights = None if rules is None else frozenset(rules)
        return replace(self, rights=rights, version=self.version + 1, signatures=())

    def with_schema(self, schema: Schema) -> Federation:
        """Returns the next version, with this schema."""
        return replace(self, schema=schema, version=self.version + 1, signatures=())

    def with_roots(self, roots: RootSet, expires: datetime) -> Federation:
        """Returns the next version, which this root set signs."""
        chain = (*self.roots, roots)
        version = self.version + 1
        return replace(self, roots=chain, expires=expires, version=version, signatures=())

    def expiring(self, expires: datetime) -> Federation:
        """Returns the next version, which expires at this time."""
        return replace(self, expires=expires, version=self.version + 1, signatures=())

    def unsigned(self) -> Federation:
        """Returns the same version without root sets, expiry and signatures."""
        return replace(self, expires=None, roots=(), signatures=())

    def _next(self, organisations: Mapping[str, Organisation]) -> Federation:
        """Returns the next version. The signatures are those of this version."""
        version = self.version + 1
        return replace(self, organisations=organisations, version=version, signatures=())


def _in_order(given: Iterable[str], most: int, whose: str) -> tuple[str, ...]:
    """Returns the certificates in the order of their validity, each as OpenSSL writes it."""
    found = [read_certificate(pem) for pem in given]
    if len(found) > most:
        raise FederationError(
            f"{whose} certificates: {len(found)} of them",
            remedy=f"at most {most}; remove those that are not used any more",
        )
    if len({each.fingerprint for each in found}) < len(found):
        raise DuplicateId(f"{whose} certificates: one is given twice", remedy="remove one")
    found.sort(key=lambda each: (each.begins, each.ends, each.fingerprint))
    return tuple(each.pem for each in found)
