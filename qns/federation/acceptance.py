"""Acceptance: whether a federation document may replace the one in force, and from whom.

Every peer and every command decides with `may_accept`. Until documents are signed, the sender of a
document is what counts. A check of signatures belongs here and replaces the rule about senders.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from qns.errors import FederationError, NotAllowed
from qns.federation.changes import check_follows
from qns.federation.document import Federation

OPERATOR: Final = ""
"""Stands for the operator of the peer as the sender of a document."""


def may_accept(document: Federation, in_force: Federation | None, sender: str = OPERATOR) -> None:
    """Raises a QnsError unless this document of this sender may replace the one in force.

    The operator and the members may give any later version. An organisation that is not a member
    yet may give a version with which it joins, if that leaves every member as it is. `in_force` is
    None for the first document of a peer.
    """
    if in_force is not None and document.version == in_force.version:
        raise FederationError(
            f"another document of version {document.version} is in force",
            remedy=f"a correction needs the next version: {in_force.version + 1}",
        )
    if in_force is not None:
        check_follows(in_force, document)
    _check_endpoints(document)
    if in_force is not None and sender != OPERATOR and sender not in in_force:
        _check_newcomer(document, in_force, sender)


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
    if sender not in document or changed:
        what = f"change {changed[0]}" if changed else "give a document that does not name it"
        raise NotAllowed(
            f"{sender} is not a member in version {in_force.version} of {in_force.name} and "
            f"cannot {what}",
            remedy=f"give version {document.version} to a member: a peer reads its configured "
            "document when it starts and at SIGHUP",
        )
