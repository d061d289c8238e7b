"""Changes: the document that follows from an action on the federation."""

from __future__ import annotations

from qns.federation.document import Federation
from qns.simulation.actions import Action
from qns.simulation.growth import grown
from qns.simulation.rights import rules_of


def document_after(document: Federation, action: Action) -> Federation:
    """Returns the next version after a `host`, `grow` or `rights`; the same one if that changes
    nothing, or is of an organisation that has left."""
    if action.org not in document:
        return document
    if action.kind == "grow":
        return grown(document, action)
    if action.kind == "host":
        return document.hosting(action.org, str(action.fields["hosts"]).split(","))
    rules = rules_of(document, action)
    return document if rules == document.rights else document.with_rights(rules)
