"""Acceptance: whether a federation document may replace the one in force, and from whom.

Every peer and every command decides with `may_accept`. Of a signed document the signatures count,
not who brings it. Of a document that is not signed, the sender counts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from qns.errors import FederationError, NotAllowed
from qns.federation.changes import check_follows
from qns.federation.document import Federation
from qns.federation.roots import Anchor
from qns.federation.roots_xml import write_expires
from qns.federation.signatures import check_signed

OPERATOR: Final = ""
"""Stands for the operator of the peer as the sender of a document."""


class Freshness(Enum):
    """How old a document is. A document that is not signed stays fresh."""

    FRESH = "fresh"
    STALE = "stale"
    """It has expired, and the grace is not over."""
    CLOSED = "closed"
    """The grace is over: the peer takes nothing new until it has a fresh document."""


def freshness(document: Federation, now: float, grace_s: float) -> Freshness:
    """Returns how old the document is at a time in seconds since 1970."""
    if document.expires is None or now < document.expires.timestamp():
        return Freshness.FRESH
    is_over = now >= document.expires.timestamp() + grace_s
    return Freshness.CLOSED if is_over else Freshness.STALE


def may_accept(
    document: Federation,
    in_force: Federation | None,
    sender: str = OPERATOR,
    *,
    now: float,
    anchor: Anchor | None = None,
) -> None:
    """Raises a QnsError unless this document of this sender may replace the one in force.

    A document whose root keys descend from those of the anchor or of the document in force may come
    from anybody. Of other documents, the operator and the members may give any later version, and
    an organisation that is not a member yet a version with which it joins, if that leaves every
    member and the rights as they are. `in_force` is None for the first document of a peer, `now` is
    in seconds since 1970.
    """
    check_change(document, in_force)
    check_signed(document, anchor, in_force)
    _check_expiry(document, now)
    if in_force is None or sender == OPERATOR:
        return
    if document.roots and (anchor is not None or in_force.roots):  # from which its keys descend
        return
    if sender not in in_force:
        _check_newcomer(document, in_force, sender)


def check_change(document: Federation, in_force: Federation | None) -> None:
    """Raises a QnsError unless the content of this document may replace that of the one in force.

    Signatures and times do not count, so that a document can be checked before it is signed.
    """
    if in_force is not None and document.version == in_force.version:
        raise FederationError(
            f"another document of version {document.version} is in force",
            remedy=f"a correction needs the next version: {in_force.version + 1}",
        )
    if in_force is not None:
        check_follows(in_force, document)
    _check_endpoints(document)


def _check_expiry(document: Federation, now: float) -> None:
    if document.expires is not None and document.expires.timestamp() <= now:
        at = write_expires(datetime.fromtimestamp(int(now), UTC))
        raise FederationError(
            f"version {document.version} of {document.name} expired at "
            f"{write_expires(document.expires)}, and it is {at}",
            remedy="get a newer document: qns federation renew makes one",
        )


def _check_endpoints(document: Federation) -> None:
    """Raises FederationError if two members would have to listen on one address.

    Peers behind one proxy may have the same host and port, if their paths differ.
    """
    known: dict[tuple[str, int, str], str] = {}
    for name, each in sorted(document.organisations.items()):
        if not each.endpoint:
            continue
        parts = urlsplit(each.endpoint)
        default = 443 if parts.scheme == "https" else 80
        path = parts.path.rstrip("/")
        other = known.setdefault((parts.hostname or "", parts.port or default, path), name)
        if other != name:
            raise FederationError(
                f"{other} and {name} have the same address {parts.netloc}{path}",
                remedy="give each organisation an endpoint of its own",
            )


def _check_newcomer(document: Federation, in_force: Federation, sender: str) -> None:
    changed = sorted(
        name
        for name, each in in_force.organisations.items()
        if document.organisations.get(name) != each
    )
    same_rights = (document.groups, document.rights) == (in_force.groups, in_force.rights)
    if sender not in document or changed or not same_rights:
        what = "give a document that does not name it"
        if changed or not same_rights:
            what = f"change {changed[0] if changed else 'groups and rights'}"
        raise NotAllowed(
            f"{sender} is not a member in version {in_force.version} of {in_force.name} and "
            f"cannot {what}",
            remedy=f"give version {document.version} to a member: a peer reads its configured "
            "document when it starts and at SIGHUP",
        )
