"""Forwarder: sends notifications to the children in the diffusion tree (thesis 5.4.4).

Parcels wait on the link to their receiver. If the receiver does not answer, this peer adopts its
subtree at once: the children get parcels of their own, and only the receiver itself is retried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.edl.custody import Custody, rejection_of
from qns.edl.link import Carried, Link, Parcel
from qns.edl.messages import Entry, Notification, Outcome, Skip
from qns.edl.reachability import Reachability
from qns.edl.routes import Routes
from qns.federation.document import Federation
from qns.peer.event_log import EventLog, LoggedEvent
from qns.peer.ports import Store
from qns.peer.tuning import Tuning
from qns.peer.turn import Turn

_ENTRY_BYTES: Final = 400
"""The approximate size of one receiver in a subtree."""


@dataclass(slots=True, eq=False)
class Forwarder:
    me: str
    log: EventLog
    reachability: Reachability
    routes: Routes
    tuning: Tuning
    custody: Custody
    links: dict[str, Link] = field(default_factory=dict)
    _relayed_skips: dict[Skip, float] = field(default_factory=dict)
    """Skip -> when it was last passed on for another peer."""

    def link(self, other: str) -> Link:
        found = self.links.get(other)
        if found is None:
            found = self.links[other] = Link(self.me, other, self.tuning.link_backoff)
        return found

    def recover_from(self, store: Store) -> None:
        for parcel in self.custody.recover_from(store):
            self.link(parcel.entry.receiver).parcels[parcel.key] = parcel

    def start(self, turn: Turn) -> None:
        """Reports the dead letters, so that an operator sees them again after a restart."""
        for letter in self.custody.dead_letters.values():
            turn.outcomes.rejections.append(rejection_of(letter))

    def apply_document(self, turn: Turn, old: Federation, new: Federation) -> None:
        """Ends the obligations to organisations that have left."""
        self.routes.apply_document(old, new)
        for name in old.organisations:
            if name not in new:
                self.drop_receiver(turn, name)

    def send(self, turn: Turn, parcel: Parcel) -> None:
        receiver = parcel.entry.receiver
        link = self.link(receiver)
        twin = link.parcels.get(parcel.key) or link.refused_parcels.get(parcel.key)
        if twin is not None and parcel.custody is not None and twin is not parcel:
            if twin.custody is None or twin.custody == parcel.custody:
                link.parcels[parcel.key] = parcel
            else:  # there is a promise already: one is enough, if the subtree is adopted
                self._adopt(turn, parcel)
                self.custody.fulfil(turn, parcel)
                return
        else:
            link.parcels[parcel.key] = parcel
        if not self.reachability.reachable(receiver):
            self._adopt(turn, parcel)

    def promise(self, turn: Turn, parcel: Parcel) -> None:
        """Takes custody: promises durably to bring the parcel to its receiver."""
        self.custody.promise(turn, parcel)
        source, event = parcel.event
        turn.record(
            "promise",
            to=parcel.entry.receiver,
            joined=parcel.entry.incarnation,
            source=source,
            event=event,
        )
        self.send(turn, parcel)

    def relay(self, turn: Turn, parcel: Parcel) -> None:
        """Takes custody of a parcel whose sender does not reach the receiver.

        If this peer does not reach the receiver either, a copy goes through the next relay. The
        promise stays here until the receiver has accepted the event from this peer.
        """
        receiver = parcel.entry.receiver
        source, event = parcel.event
        turn.record(
            "relay", to=receiver, joined=parcel.entry.incarnation, source=source, event=event
        )
        self.promise(turn, parcel)
        if self.reachability.reachable(receiver):
            return
        content = self.log[parcel.event].event
        for hop in self.routes.hops(receiver, parcel.path, carrying=content)[:1]:
            incarnation, entry = parcel.producer_incarnation, parcel.entry.alone()
            copy = Parcel(parcel.event, incarnation, entry, parcel.path, None, parcel.seal)
            self.link(hop).parcels[copy.key] = copy

    def relay_skip(self, turn: Turn, sender: str, skip: Skip) -> None:
        """Passes on a skip of the sender, unless too many wait.

        It is not stored: its producer repeats it until it is acknowledged. It has no path, so the
        same skip is passed on only once in a while, in case that it goes in a circle.
        """
        receiver, relayed = skip.first.receiver, self._relayed_skips
        if turn.now - relayed.get(skip, -inf) < self.tuning.resend_after_s / 2:
            return
        hops = [receiver]
        if not self.reachability.reachable(receiver):
            hops = self.routes.hops(receiver, (skip.source, sender))
        for link in map(self.link, hops[:1]):
            if len(link.skips) < self.tuning.most_early:
                link.skips[skip] = None
                relayed.pop(skip, None)
                relayed[skip] = turn.now
        while len(relayed) > self.tuning.most_early:
            del relayed[next(iter(relayed))]

    def relay_standing(self, producer: str, consumer: str, carried: Carried, at: float) -> bool:
        """Sends a standing to a producer through another peer; False if no way is known."""
        if consumer != self.me and self.reachability.reachable(producer):
            hops = [producer]
        else:
            hops = self.routes.hops(producer, carried.path)
        for hop in hops[:1]:
            self.link(hop).add_standing(producer, consumer, carried, at)
        return bool(hops)

    def report_break(self, other: str) -> None:
        """Makes a gossip due to those who rely on this peer to reach the other one."""
        for parcel in self.link(other).all_parcels():
            if parcel.custody is not None and parcel.path:
                self.link(parcel.path[-1]).wants_gossip = True

    def next_notifications(
        self, turn: Turn, link: Link, limit: int, room: int
    ) -> list[Notification]:
        """Returns the next notifications, at most `limit` and about `room` bytes.

        There is at least one if any room is left, even if it is too large.
        """
        link.sent = []
        gone = []
        for key, parcel in link.parcels.items():
            logged = self.log.get(parcel.event)
            is_relayed = parcel.entry.receiver != link.other
            if logged is None or (  # everyone to whom it was owed has it
                is_relayed and not self.routes.may_carry(link.other, logged.event)
            ):
                gone.append(key)
                continue
            size = len(logged.xml)
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
        logged, path = self.log[parcel.event], (*parcel.path, self.me)
        return notification_of(logged, turn.now, parcel.entry, path, parcel.seal)

    def handle_outcomes(self, turn: Turn, link: Link, outcomes: Sequence[Outcome]) -> bool:
        """Handles the receiver's outcomes for the parcels in the request under way.

        Returns True if the receiver has refused one that it had not refused before.
        """
        is_new = False
        for key, outcome in zip(link.sent, outcomes, strict=True):
            parcel = link.parcels.pop(key, None)
            if parcel is None:
                continue
            if not outcome.taken:
                self._adopt(turn, parcel)
                is_new |= not parcel.was_refused
            elif parcel.was_refused:
                link.refused_parcel_taken(turn.now)
            if parcel.custody is None:  # the stream resends this peer's own events
                continue
            if outcome.taken:
                self.custody.fulfil(turn, parcel)
            elif outcome.permanent:
                self.custody.reject(turn, parcel, outcome.reason)
            else:
                link.put_aside(turn.now, parcel)
        return is_new

    def bypass(self, turn: Turn, other: str) -> None:
        """Adopts the subtrees of a peer that does not answer; its own parcels wait."""
        for key, parcel in list(self.link(other).parcels.items()):
            self._adopt(turn, parcel)
            if parcel.custody is None:  # the stream resends it later
                del self.link(other).parcels[key]

    def recall_own(self) -> None:
        """Drops the parcels with events of this peer, which its streams send again."""
        for link in self.links.values():
            for key, parcel in list(link.parcels.items()):
                if parcel.event[0] == self.me and parcel.custody is None:
                    del link.parcels[key]

    def drop_receiver(self, turn: Turn, other: str) -> None:
        """Drops the parcels for a peer that has left, and adopts their subtrees."""
        link = self.links.get(other)
        if link is None:
            return
        for parcel in list(link.all_parcels()):
            self._adopt(turn, parcel)
            self.custody.fulfil(turn, parcel)
        link.drop_parcels()

    def _adopt(self, turn: Turn, parcel: Parcel) -> None:
        children = parcel.entry.children
        if not children:
            return
        parcel.entry = parcel.entry.alone()
        if parcel.custody is not None:
            self.custody.put(turn, parcel)
        for child in children:
            incarnation, path = parcel.producer_incarnation, parcel.path
            adopted = Parcel(parcel.event, incarnation, child, path, None, parcel.seal)
            if parcel.custody is not None:
                self.promise(turn, adopted)
            else:
                self.send(turn, adopted)


def notification_of(
    logged: LoggedEvent, now: float, entry: Entry, path: tuple[str, ...], seal: bytes = b""
) -> Notification:
    """Returns the notification that brings the event to the receiver of the entry."""
    incarnation, epoch, sequence = logged.position
    source, event = logged.key
    remaining_s = max(0.0, logged.expires_at - now)
    return Notification(
        source, incarnation, epoch, sequence, event, logged.xml, remaining_s, entry, path, seal
    )
