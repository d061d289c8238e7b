"""Source warnings: why a valid subscription may never match in the federation as it is now.

Such a subscription is accepted, because the set of organisations is open and the schema mapping can
change (semantics §1). The user is warned, because most often a name is mistyped.
"""

from __future__ import annotations

from typing import Final

from qns.cbr.subscription import Subscription
from qns.errors import near_misses, shorten
from qns.federation.document import Federation

MOST_WARNINGS: Final = 10


def source_warnings(subscription: Subscription, federation: Federation) -> tuple[str, ...]:
    """Returns one warning for each source that cannot publish what the subscription asks for.

    A subscription without sources gets a warning if no member hosts a class of its scope.
    """
    scope = subscription.scope
    if subscription.sources is None:
        if any(scope & each.hosts for each in federation.organisations.values()):
            return ()
        return (f"no member of {federation.name} hosts {_classes(subscription)}",)
    warnings = [
        warning
        for source in sorted(subscription.sources)
        if (warning := _warning(source, subscription, federation))
    ]
    if len(warnings) > MOST_WARNINGS:
        left = len(warnings) - MOST_WARNINGS
        warnings[MOST_WARNINGS:] = [f"{left:,} more sources cannot publish such events"]
    return tuple(warnings)


def _warning(source: str, subscription: Subscription, federation: Federation) -> str:
    if source not in federation:
        near = near_misses(source, federation.organisations)
        hint = f" (did you mean {' or '.join(near)}?)" if near else ""
        return f"the source {shorten(source)} is not a member of {federation.name}{hint}"
    if not subscription.scope & federation[source].hosts:
        return f"the source {source} does not host {_classes(subscription)}"
    return ""


def _classes(subscription: Subscription) -> str:
    below = " or a class below it" if len(subscription.scope) > 1 else ""
    return f"{subscription.data_class}{below}"
