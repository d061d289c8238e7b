"""Owed: every acknowledged publication is read once by each user to whom it is owed (semantics §8).

An event is owed if its publication was acknowledged, the subscription was acknowledged and has not
ended, and either the subscription was stable at the producer before the publication, or the event
is available for ever. A subscription is stable at a producer if the answer to it did not name the
producer as pending, or if all was calm since. A loss is accepted only if the world caused it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from qns.iil.requests import Subscribe
from qns.simulation.findings import Findings
from qns.simulation.ledger import Ledger
from qns.simulation.ledger_entries import Call, Key, Publication, pending_of

RULE = "Owed"
SPLIT = "deliveries lost while a twin ran"
"""The count of deliveries that were owed and are missing, of producers that had a twin by then."""


@dataclass(slots=True, eq=False)
class Owed:
    ledger: Ledger
    findings: Findings
    now: float
    """The time at which everything had been read."""

    def judge(self) -> None:
        """Judges all that was acknowledged; the world is at rest and every user has read."""
        ledger = self.ledger
        for key, subscription in ledger.subscriptions.items():
            if not subscription.is_granted or ledger.is_undone(subscription):
                continue
            if ledger.may_have_ended(key, self.now):
                continue
            read = self._read_by(key, subscription)
            missing = []
            for publication in self._owed_to(subscription):
                self.findings.ask(RULE)
                if (publication.org, publication.fields["id"]) not in read:
                    missing.append(publication)
            if len(missing) > self._dropped(key, subscription):
                for publication in missing:
                    self._judge_missing(key, publication)

    def _judge_missing(self, key: Key, publication: Publication) -> None:
        """A loss is no violation if its producer had a twin; both must say so (rule Twin)."""
        if self.ledger.may_be_split(publication.org, publication.asked_at):
            self.findings.apart[SPLIT] += 1
        else:
            self.findings.break_rule(RULE, _words(key, publication))

    def _read_by(self, key: Key, subscription: Call) -> set[Key]:
        """Returns what the subscription has read, or any member of its group."""
        return {
            (each.source, each.event)
            for member in self._members(key, subscription)
            for each in self.ledger.reads[member]
        }

    def _members(self, key: Key, subscription: Call) -> list[Key]:
        group = _group(subscription)
        if not group:
            return [key]
        return [
            each
            for each, other in self.ledger.subscriptions.items()
            if each[0] == key[0] and _group(other) == group
        ]

    def _dropped(self, key: Key, subscription: Call) -> float:
        """Returns how many deliveries may be missing: as many as were declared to the users.

        It is any number if a restore has undone a declaration, or if a member of the group has
        ended, because nothing is declared to its user any more.
        """
        ledger, members = self.ledger, self._members(key, subscription)
        if ledger.tuning.longest_queue == inf:
            return 0
        if ledger.restores[key[0]] or any(
            ledger.may_have_ended(each, self.now) for each in members
        ):
            return inf
        declared = {
            (member, number)
            for member in members
            for each in ledger.declared[member]
            for number in range(each.first, each.last + 1)
        }
        return len(declared)

    def _owed_to(self, subscription: Call) -> Iterator[Publication]:
        ledger = self.ledger
        for publication in ledger.all_publications():
            if (
                publication.is_granted
                and not ledger.is_undone(publication)
                and ledger.matches(subscription, publication) == {True}
                and self._is_owed(subscription, publication)
            ):
                yield publication

    def _is_owed(self, subscription: Call, publication: Publication) -> bool:
        ledger, producer, consumer = self.ledger, publication.org, subscription.org
        since = min(publication.asked_at, subscription.asked_at)
        if producer == consumer:
            if ledger.may_move_after(producer, since):
                return False
            is_early = subscription.answered_at < publication.asked_at
            return is_early or self._is_for_ever(publication)
        if ledger.may_move_after(producer, publication.asked_at) or ledger.moved_after(
            consumer, subscription.asked_at
        ):
            return False
        if ledger.may_be_split(consumer, publication.asked_at):
            return False
        if ledger.may_be_dropped(producer):
            return False
        read = consumer, producer, str(publication.fields["class"])
        if self._is_for_ever(publication):
            return ledger.documents.let_read(inf, *read)  # a new right brings the whole backlog
        settled = max((each for each in ledger.calms if each < publication.asked_at), default=0.0)
        if not ledger.documents.let_read(settled, *read):
            return False
        return not ledger.restored_after(consumer, publication.asked_at) and self._is_stable(
            subscription, publication
        )

    def _is_for_ever(self, publication: Publication) -> bool:
        """True if late subscribers get the event."""
        return publication.available_s == inf and self.ledger.always_hosts(
            publication.org, str(publication.fields["class"])
        )

    def _is_stable(self, subscription: Call, publication: Publication) -> bool:
        """True if the producer's view covered the subscription before the publication."""
        asked, calms = publication.asked_at, self.ledger.calms
        before = [each for each in calms if each < asked]
        settled = before[-1] if before else 0.0
        if any(
            self.ledger.unsettled(name, settled, publication.answered_at)
            for name in (publication.org, subscription.org)
        ):
            return False
        if before and subscription.answered_at < settled:
            return True
        return subscription.answered_at < asked and publication.org not in pending_of(subscription)


def _group(subscription: Call) -> str:
    request = subscription.request
    assert isinstance(request, Subscribe)
    return request.group


def _words(key: Key, publication: Publication) -> str:
    org, sub = key
    return (
        f"{publication.org} acknowledged the publication of event {publication.fields['id']} at "
        f"{publication.answered_at:.3f} s. It was owed to subscription {sub} of {org}, whose user "
        "never read it, and nothing that happened to the two peers explains the loss."
    )
