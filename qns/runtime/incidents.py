"""Incidents: logs the outcomes of committed turns that an operator should see."""

from __future__ import annotations

import logging
from typing import Final

from qns.peer.outcomes import IncidentKind, Outcomes
from qns.runtime.logs import log_event

LOST_STORE: Final = (
    "the store is lost: it is new, although this peer has run before; the subscriptions of its "
    "users and the events that it owed are gone"
)

TWIN: Final = "another peer seems to run as this organisation, with a copy of this store"

_MESSAGES: Final = {
    IncidentKind.SKIP: "a producer cannot send events any more",
    IncidentKind.DROP: "the retention limit dropped an event that was owed",
    IncidentKind.WITHHOLD: "an event that was owed is not sent any more: the newer document does "
    "not let the organisation read it",
    IncidentKind.DISCARD: "a dead letter was dropped: an operator did so, or there are too many of "
    "its source and its receiver",
    IncidentKind.REWIND: "a producer was put back from an older copy",
    IncidentKind.FORGOTTEN: "a producer remembers nothing that it sent here: its store was lost, "
    "or restored from a copy that is too old",
    IncidentKind.DOCUMENT: "the federation document of another peer is not put in force",
    IncidentKind.OWN_COPY: "the store was put back from an older copy",
    IncidentKind.OWN_LOSS: LOST_STORE,
    IncidentKind.OWN_TWIN: TWIN,
    IncidentKind.CLAIM: "a member claims that this peer has forgotten a later epoch, and is not "
    "believed: it has claimed that too often, or the epoch is too far ahead",
    IncidentKind.SEAL: "a message with a wrong seal is refused: its sender has altered or invented "
    "it, or uses an old certificate",
    IncidentKind.OVERFLOW: "the queue of a subscription is full: its oldest deliveries are dropped",
    IncidentKind.LAPSE: "a member of a delivery group let its lease lapse",
}


class Incidents:
    def __init__(self) -> None:
        self._last_letter = 0

    def observe(self, outcomes: Outcomes, _now: float) -> None:
        """Logs the incidents, the newer documents and the new dead letters of a turn."""
        for incident in outcomes.incidents:
            log_event(logging.WARNING, _MESSAGES[incident.kind], **incident.fields)
        for change in outcomes.documents:
            log_event(
                logging.INFO,
                "a newer federation document is in force",
                document=change.version,
                before=change.before,
                members=", ".join(change.members),
            )
        for rejection in outcomes.rejections:
            if rejection.number <= self._last_letter:  # logged before the store was reopened
                continue
            self._last_letter = rejection.number
            log_event(
                logging.WARNING,
                "a receiver will never take a notification: a dead letter",
                number=rejection.number,
                to=rejection.receiver,
                source=rejection.source,
                event=rejection.event,
                reason=rejection.reason,
            )
