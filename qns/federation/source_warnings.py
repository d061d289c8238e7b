"""Source warnings: why a valid subscription may never match in the federation as it is now.

Such a subscription is accepted, because the set of organisations is open, and the schema mapping
and the rights can change (semantics §1). The user is warned, because most often a name is mistyped.
"""

from __future__ import annotations

from typing import Final

from qns.cbr.subscription import Subscription
from qns.errors import near_misses, shorten
from qns.federation.schema_mapper import SchemaMapper

MOST_WARNINGS: Final = 10


def source_warnings(
    subscription: Subscription, mapper: SchemaMapper, reader: str
) -> tuple[str, ...]:
    """Returns one warning for each source that cannot publish what the subscription asks for, and
    for each from which `reader`, the organisation of the subscriber, may not read some of it.

    A subscription without sources gets the former if no member hosts a class of its scope.
    """
    scope, sources, federation = subscription.scope, subscription.sources, mapper.federation
    if sources is None:
        hosts = (name for name, each in federation.organisations.items() if scope & each.hosts)
        first = next(hosts, None)
        if first is None:
            return (f"no member of {federation.name} hosts {_classes(subscription)}",)
        if federation.rights is None:
            return ()
        sources = frozenset((first, *hosts))
    warnings = [
        warning
        for source in sorted(sources)
        if (warning := _warning(source, subscription, mapper, reader))
    ]
    if len(warnings) > MOST_WARNINGS:
        left = len(warnings) - MOST_WARNINGS
        warnings[MOST_WARNINGS:] = [f"{left:,} more sources cannot publish such events"]
    return tuple(warnings)


def _warning(source: str, subscription: Subscription, mapper: SchemaMapper, reader: str) -> str:
    federation = mapper.federation
    if source not in federation:
        near = near_misses(source, federation.organisations)
        hint = f" (did you mean {' or '.join(near)}?)" if near else ""
        return f"the source {shorten(source)} is not a member of {federation.name}{hint}"
    hosted = subscription.scope & federation[source].hosts
    if not hosted:
        return f"the source {source} does not host {_classes(subscription)}"
    denied = sorted(path for path in hosted if not mapper.may_read(reader, source, path))
    if denied:
        return denial(reader, ", ".join(denied), source, federation.version)
    return ""


def denial(reader: str, data_class: str, source: str, version: int) -> str:
    """Returns in words that an organisation may not read a class of a source."""
    return f"{reader} may not read {data_class} of {source} (document version {version})"


def _classes(subscription: Subscription) -> str:
    below = " or a class below it" if len(subscription.scope) > 1 else ""
    return f"{subscription.data_class}{below}"
