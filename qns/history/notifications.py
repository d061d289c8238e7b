"""Notifications: judges Legality, Validity, Minimality and FIFO of each `ntfy` (semantics §9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from qns.history.branch import Subscription, subscriber_of
from qns.history.losses import is_declared_lost
from qns.history.lost_publications import LostPublications
from qns.history.organisation import Organisation
from qns.history.publication import Publication
from qns.history.records import Record
from qns.history.verdict import Findings, Rule
from qns.history.wording import moment, subscription_named, time
from qns.history.world import World


class Notifications:
    """The rules that concern a single notification."""

    def __init__(self, world: World, findings: Findings, lost: LostPublications) -> None:
        self._world = world
        self._lost = lost
        self._findings = findings
        self._checks = [findings.checks[r] for r in (Rule.LEGALITY, Rule.VALIDITY, Rule.MINIMALITY)]
        self._order_checks = findings.checks[Rule.FIFO]

    def judge(self, number: int, record: Record) -> None:
        organisation = self._world.organisation(record["org"])
        published = self._world.published(record["source"], record["event"])
        for checks in self._checks:
            checks.append(number)
        self._judge_legality(number, record, organisation, published)
        if not published:
            self._lost.notify(number, record)
        self._judge_minimality(number, record, organisation)
        if published and not record["group"]:
            self._judge_order(number, record, organisation, published)

    def conclude(self) -> int:
        """Judges the notifications of unknown events; returns how many events restores lost."""
        return self._lost.conclude(
            lambda number: self._broken(Rule.VALIDITY, _never_published, [number])
        )

    def _judge_legality(
        self,
        number: int,
        record: Record,
        organisation: Organisation,
        published: Sequence[Publication],
    ) -> None:
        subscription = organisation.branch.subscriptions.get(record["sub"])
        if subscription is None or subscription.group != record["group"]:
            self._broken(Rule.LEGALITY, _no_such, [number])
            return
        begun = subscription.number
        if subscription.ended:
            ended = subscription.ended
            self._broken(Rule.LEGALITY, _ended, [begun, ended, number], subscription, ended)
        elif subscription.paused:
            paused = subscription.paused
            self._broken(Rule.LEGALITY, _paused, [begun, paused, number], subscription, paused)
        elif published:
            for publication in published:
                if publication.matches(subscription.meaning):
                    return
            numbers = [begun, publication.number, number]
            self._broken(Rule.LEGALITY, _no_match, numbers, subscription, publication)

    def _judge_minimality(self, number: int, record: Record, organisation: Organisation) -> None:
        branch = organisation.branch
        key = subscriber_of(record), record["source"], record["event"]
        before, lapses = branch.notified.get(key, ()), 0
        if before and record["group"]:
            since = max(branch.left, organisation.came)  # the group of a new incarnation is new
            before = tuple(each for each in before if each > since)
            lapses = sum(each > since for each in branch.lapses.get(key, ()))
        if before and any(map(self._lost.is_unpublished, before)):
            # The producer has forgotten the event, so its factory may publish it once more.
            lapses += len(self._world.published(record["source"], record["event"]))
        if len(before) > lapses:
            self._broken(Rule.MINIMALITY, _duplicate, [*before, number], before, lapses)

    def _judge_order(
        self,
        number: int,
        record: Record,
        organisation: Organisation,
        published: Sequence[Publication],
    ) -> None:
        branch, producer = organisation.branch, self._world.organisation(record["source"])
        sub, source, id = record["sub"], record["source"], record["event"]
        if ((sub, False), source, id) in branch.notified:  # Minimality judges duplicates
            return
        if producer.incarnation not in {each.incarnation for each in published}:
            return  # the order of what a producer owed when it left is not guaranteed
        self._order_checks.append(number)
        if branch.next_in_order(sub, source, id, number) is None:
            if any(each.withdrawn < producer.restored for each in published):
                return  # the restored producer has forgotten that it withdrew the event
            if any(is_declared_lost(self._world, organisation, each) for each in published):
                return  # an event that was declared lost may still arrive, late
            if any(
                producer.has_denied(organisation.name, each.event.data_class, each.number)
                for each in published
            ):
                return  # it was sent when the consumer might read it, or might read it again
            late = published[-1]
            early, notified = branch.newest[sub, source, late.incarnation]
            if producer.remembered(late, number) and not producer.remembered(late, early.number):
                return  # a second restore has brought back an event that the first one undid
            if not self._was_stable(organisation, record, late.incarnation, notified):
                return  # the producer may not have known the subscription that a rollback revived
            numbers = [late.number, early.number, notified, number]
            subscription = branch.subscriptions.get(sub)
            self._broken(Rule.FIFO, _out_of_order, numbers, late, early, notified, subscription)

    def _was_stable(
        self, organisation: Organisation, record: Record, incarnation: int, notified: int
    ) -> bool:
        """True if the subscription was stable at the producer before that notification, and since
        the last restore of its organisation, if there was one before it."""
        restored = organisation.restored
        if not restored or notified < restored:
            return True
        stream = record["org"], record["sub"], record["source"], incarnation
        return any(restored < each.number < notified for each in self._world.stables[stream])

    def _broken(
        self, rule: Rule, words: Callable[..., str], numbers: list[int], *about: object
    ) -> None:
        self._findings.broken(rule, numbers, partial(words, self._world, numbers[-1], *about))


# -- in words -------------------------------------------------------------------------------------


def _no_such(world: World, number: int) -> str:
    record = world.records[number - 1]
    group = f" in the delivery group {record['group']}" if record["group"] else ""
    return (
        f"{_committed(world, number)} for subscription {record['sub']}, but at that moment "
        f"{record['org']} has no subscription of this id{group}. Only a subscription that has "
        "begun and has not ended may be notified."
    )


def _ended(world: World, number: int, subscription: Subscription, ended: int) -> str:
    record, end = world.records[number - 1], world.records[ended - 1]
    return (
        f"{_committed(world, number)} for {subscription_named(record['org'], subscription)}, "
        f"although it ended ({end['why']}) {moment(world.records, ended)}. Events that are queued "
        "when a subscription ends must be dropped and counted, not notified."
    )


def _paused(world: World, number: int, subscription: Subscription, paused: int) -> str:
    record = world.records[number - 1]
    return (
        f"{_committed(world, number)} for {subscription_named(record['org'], subscription)}, "
        f"which is paused since {time(world.records, paused)}. While a subscription is paused, "
        "its events must be queued; they may be notified only after it is resumed."
    )


def _no_match(
    world: World, number: int, subscription: Subscription, publication: Publication
) -> str:
    record = world.records[number - 1]
    return (
        f"{_committed(world, number)} for {subscription_named(record['org'], subscription)}, but "
        f"the event, published {moment(world.records, publication.number)}, does not match it: "
        f"{subscription.meaning.mismatch(publication.event)}. It should not have been notified."
    )


def _never_published(world: World, number: int) -> str:
    record = world.records[number - 1]
    return (
        f"{_committed(world, number)} for subscription {record['sub']}, but up to then "
        f"{record['source']} had published no event of this id. Only published events may be "
        "notified."
    )


def _duplicate(world: World, number: int, earlier: Sequence[int], lapses: int) -> str:
    record = world.records[number - 1]
    if record["group"]:
        who = f"the delivery group {record['group']} (member {record['sub']})"
        leases = "lease" if lapses == 1 else "leases"
        allowed = f"a group counts as one subscriber, and {lapses} {leases} had lapsed by then"
    else:
        who, allowed = f"subscription {record['sub']}", "a subscriber gets each event at most once"
    times = ", ".join(moment(world.records, each) for each in earlier)
    return (
        f"{_committed(world, number)} for {who}, which had been notified of it before, {times}: "
        f"{allowed}. This notification should not have been committed."
    )


def _out_of_order(
    world: World,
    number: int,
    late: Publication,
    early: Publication,
    notified: int,
    subscription: Subscription | None,
) -> str:
    record = world.records[number - 1]
    who = f"subscription {record['sub']}"
    if subscription is not None:
        who = subscription_named(record["org"], subscription)
    return (
        f"{_committed(world, number)} for {who}, after it had been notified of event {early.id} "
        f"{moment(world.records, notified)}. {late.source} published {late.id} "
        f"{moment(world.records, late.number)}, before {early.id} "
        f"{moment(world.records, early.number)}: a subscriber must be notified of the events of "
        f"one producer in publication order, so {late.id} should have come first."
    )


def _committed(world: World, number: int) -> str:
    record = world.records[number - 1]
    return (
        f"{record['org']} committed a notification of event {record['event']} of "
        f"{record['source']} {moment(world.records, number)}"
    )
