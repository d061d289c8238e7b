"""Forwarder: sends notifications to the children in the diffusion tree (thesis 5.4.4).

Parcels wait on the link to their receiver. If the receiver does not answer, its subtree is adopted
at once: the children get their own parcels, the receiver alone is tried again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from qns.edl.custody import Custody
from qns.edl.link import Link, Parcel
from qns.edl.membership import Membership
from qns.edl.messages import Notification, Outcome
from qns.event_log import EventLog
from qns.tuning import Tuning
from qns.turn import Turn

_ENTRY_BYTES: Final = 400
"""About what one receiver in a subtree takes."""


@dataclass(slots=True, eq=False)
class Forwarder:
    me: str
    log: EventLog
    membership: Membership
    tuning: Tuning
    custody: Custody
    links: dict[str, Link] = field(default_factory=dict)

    def link(self, other: str) -> Link:
        found = self.links.get(other)
        if found is None:
            tuning = self.tuning
            found = Link(self.me, other, tuning.first_pause_s, tuning.longest_pause_s)
            self.links[other] = found
        return found

    def send(self, turn: Turn, parcel: Parcel) -> None:
        receiver = parcel.entry.receiver
        link = self.link(receiver)
        twin = link.parcels.get(parcel.key)
        if twin is not None and parcel.custody is not None and twin is not parcel:
            if twin.custody is None or twin.custody == parcel.custody:
                link.parcels[parcel.key] = parcel
            else:  # promised before: one promise is enough, its subtree included
                self._adopt(turn, parcel)
                self.custody.fulfil(turn, parcel)
                return
        else:
            link.parcels[parcel.key] = parcel
        if not self.membership.reachable(receiver):
            self._adopt(turn, parcel)

    def promise(self, turn: Turn, parcel: Parcel) -> None:
        """Takes custody: the parcel will be brought, whatever happens here."""
        self.custody.promise(turn, parcel)
        source, event = parcel.event
        turn.record(
            "promise",
            to=parcel.entry.receiver,
            joined=parcel.entry.joined,
            source=source,
            event=event,
        )
        self.send(turn, parcel)

    def next_notifications(
        self, turn: Turn, link: Link, limit: int, room: int
    ) -> list[Notification]:
        """Up to so many, and so many bytes, or one at least if there is room at all."""
        link.sent = []
        gone = []
        for key, parcel in link.parcels.items():
            known = self.log.get(parcel.event)
            if known is None:  # everybody concerned has it already
                gone.append(key)
                continue
            size = len(known.xml)
            if parcel.entry.children:
                size += _ENTRY_BYTES * len(parcel.entry.receivers())
            if len(link.sent) >= limit or room <= 0 or (link.sent and size > room):
                break
            room -= size
            link.sent.append(key)
        for key in gone:
            del link.parcels[key]
        return [self._notification(turn, link.parcels[key]) for key in link.sent]

    def _notification(self, turn: Turn, parcel: Parcel) -> Notification:
        known = self.log[parcel.event]
        joined, epoch, sequence = known.position
        source, event = parcel.event
        return Notification(
            source,
            joined,
            epoch,
            sequence,
            event,
            known.xml,
            max(0.0, known.expires_at - turn.now),
            parcel.entry,
            (*parcel.path, self.me),
        )

    def outcomes(self, turn: Turn, link: Link, outcomes: Sequence[Outcome]) -> None:
        """What became of the parcels under way."""
        for key, outcome in zip(link.sent, outcomes, strict=True):
            parcel = link.parcels.pop(key, None)
            if parcel is None:
                continue
            if not outcome.taken:
                self._adopt(turn, parcel)
            if outcome.taken or parcel.custody is None:  # what is ours the stream sends again
                self.custody.fulfil(turn, parcel)
            elif outcome.permanent:
                self.custody.refuse(turn, parcel, outcome.reason)
            else:  # to the end of the line: it does not keep the others waiting
                link.parcels[key] = parcel

    def bypass(self, turn: Turn, other: str) -> None:
        """The other does not answer: its subtrees are adopted, its own parcels wait."""
        for key, parcel in list(self.link(other).parcels.items()):
            self._adopt(turn, parcel)
            if parcel.custody is None:  # the stream resends it when the other is back
                del self.link(other).parcels[key]

    def drop_all(self, turn: Turn, other: str) -> None:
        """The other left the federation: nothing is owed to it, but its subtrees are."""
        link = self.links.get(other)
        if link is None:
            return
        for parcel in list(link.parcels.values()):
            self._adopt(turn, parcel)
            self.custody.fulfil(turn, parcel)
        link.parcels.clear()

    def _adopt(self, turn: Turn, parcel: Parcel) -> None:
        children = parcel.entry.children
        if not children:
            return
        parcel.entry = parcel.entry.alone()
        if parcel.custody is not None:
            self.custody.put(turn, parcel)
        for child in children:
            adopted = Parcel(parcel.event, parcel.joined, child, parcel.path, None)
            if parcel.custody is not None:
                self.promise(turn, adopted)
            else:
                self.send(turn, adopted)
