"""Obligations: judges Liveness and Completeness at each calm (semantics §8, §9)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from math import inf

from qns.history.branch import Subscriber, Subscription
from qns.history.losses import crossings_of, is_declared_lost
from qns.history.organisation import Organisation
from qns.history.publication import Publication
from qns.history.verdict import Findings, Rule
from qns.history.wording import moment, seconds, subscription_named, time
from qns.history.world import Crossing, World

_Debt = tuple[Rule, int]
"""The rule under which an event is owed, and the record since which it is: a `stable`, or a `sub`
if producer and subscriber are the same organisation."""


@dataclass(slots=True)
class Obligations:
    """The rules about events that are owed to subscribers."""

    world: World
    findings: Findings
    _counted: set[tuple[str, Subscriber, int]] = field(default_factory=set)
    """Organisation, subscriber, publication: debts that are counted as checks."""
    _reported: set[tuple[str, Subscriber, int]] = field(default_factory=set)
    """The debts that are reported as violations."""

    def judge(self, calm: int) -> None:
        for organisation in self.world.organisations.values():
            incarnation = organisation.incarnation
            if incarnation is not None:
                for each in organisation.branch.subscriptions.values():
                    if not each.ended and not each.paused and each.incarnation == incarnation:
                        self._judge(calm, organisation, each)

    def judge_ways(self, number: int, ways: Container[tuple[str, ...]]) -> None:
        """Judges what is owed between organisations that are connected by working links.

        Views that a restore or a change of hosting has unsettled since the last calm are left out:
        they may need a message that only the two ends can exchange.
        """
        for organisation in self.world.organisations.values():
            for each in organisation.branch.subscriptions.values():
                if (
                    each.incarnation == organisation.incarnation
                    and not (each.ended or each.paused)
                    and self._is_settled(organisation)
                ):
                    self._judge_ways(number, ways, organisation, each)

    def _judge_ways(
        self,
        number: int,
        ways: Container[tuple[str, ...]],
        organisation: Organisation,
        subscription: Subscription,
    ) -> None:
        for publication in self.world.matching(subscription.meaning):
            source = self.world.organisation(publication.source)
            if (source.name, organisation.name) not in ways or not self._is_settled(source):
                continue
            debt = self._debt(organisation, subscription, publication)
            key = subscription.subscriber, publication.source, publication.id
            case = organisation.name, subscription.subscriber, publication.number
            if debt is None or publication.is_lost or case in self._reported:
                continue
            self.findings.checks[debt[0]].append(number)
            branch = organisation.branch
            is_served = key in branch.notified or key in branch.overflows
            if not is_served and not self._is_excused(organisation, publication):
                self._reported.add(case)
                self._report(number, organisation, subscription, publication, debt)

    def _is_settled(self, organisation: Organisation) -> bool:
        """True if it was not restored, stayed and hosts the same classes since the last calm."""
        calms = self.world.calms
        unsettled = max(organisation.restored, organisation.returned, organisation.rehosted)
        return unsettled <= (calms[-1] if calms else 0)

    def _judge(self, calm: int, organisation: Organisation, subscription: Subscription) -> None:
        matching = self.world.matching(subscription.meaning)
        if subscription.examined < len(matching):
            subscription.open += [
                each
                for each in matching[subscription.examined :]
                if each.number > subscription.number or each.t + each.available_s >= subscription.t
            ]
            subscription.examined = len(matching)
        subscriber = subscription.subscriber
        still_open = []
        for publication in subscription.open:
            if publication.is_lost:
                continue
            debt = self._debt(organisation, subscription, publication)
            if debt is None:
                if publication.available_s:  # the subscription may become stable in time
                    still_open.append(publication)
                continue
            rule, _ = debt
            case = organisation.name, subscriber, publication.number
            if case not in self._counted:
                self._counted.add(case)
                self.findings.checks[rule].append(calm)
            key = subscriber, publication.source, publication.id
            if key in organisation.branch.notified:
                continue
            still_open.append(publication)
            if key in organisation.branch.overflows or self._is_excused(organisation, publication):
                self.findings.excused.add(case)
            elif case not in self._reported:
                self._reported.add(case)
                self._report(calm, organisation, subscription, publication, debt)
        subscription.open = still_open

    def _debt(
        self, organisation: Organisation, subscription: Subscription, publication: Publication
    ) -> _Debt | None:
        """Returns why the event is owed to the subscription; None if it is not."""
        if organisation.name == publication.source:
            if subscription.incarnation != publication.incarnation:
                return None
            if subscription.number < publication.number:
                return Rule.LIVENESS, subscription.number
            if publication.is_available(subscription.number, subscription.t):
                return Rule.COMPLETENESS, subscription.number
            return None
        late = 0
        for stable in self.world.stables.get(
            (organisation.name, subscription.id, publication.source, publication.incarnation), ()
        ):
            if publication.event.data_class not in stable.classes:
                continue
            if stable.number < publication.number:
                if publication.number < stable.until_number and publication.t <= stable.until_t:
                    return Rule.LIVENESS, stable.number
            elif not late and publication.is_available(stable.number, stable.t):
                late = stable.number
        return (Rule.COMPLETENESS, late) if late else None

    def _is_excused(self, consumer: Organisation, publication: Publication) -> bool:
        """True if the event is declared lost, or if no organisation can deliver it any more."""
        if is_declared_lost(self.world, consumer, publication):
            return True
        producer = self.world.organisation(publication.source)
        return (  # a producer that left cannot send again what a restored consumer has forgotten
            consumer.restored > publication.number
            and producer.incarnation != publication.incarnation
            and (publication.source, publication.id) not in consumer.branch.taken
        )

    def _report(
        self,
        calm: int,
        organisation: Organisation,
        subscription: Subscription,
        publication: Publication,
        debt: _Debt,
    ) -> None:
        rule, since = debt
        crossings = [
            each
            for each in crossings_of(self.world, organisation, publication)
            if each.event == publication.id
        ]
        taken = organisation.branch.taken.get((publication.source, publication.id), 0)
        records = [*sorted({publication.number, subscription.number, since}), calm]

        def words() -> str:
            history = self.world.records
            return (
                f"Event {publication.id} of {publication.source}, published "
                f"{moment(history, publication.number)}, was owed to "
                f"{subscription_named(organisation.name, subscription)}: "
                f"{self._why(organisation, publication, debt)}. "
                f"{self._when(calm)} {moment(history, calm)} it had still not been notified. "
                f"{self._progress(organisation, publication, crossings, taken)}"
            )

        self.findings.broken(rule, records, words)

    def _when(self, number: int) -> str:
        if self.world.records[number - 1]["do"] == "calm":
            return "When all was calm"
        return "Though a way over working links led there,"

    def _why(self, organisation: Organisation, publication: Publication, debt: _Debt) -> str:
        rule, since = debt
        history = self.world.records
        when = moment(history, since)
        is_local = organisation.name == publication.source
        if rule is Rule.LIVENESS:
            if is_local:
                return f"the subscription began {when}, before the publication"
            return f"it was stable at {publication.source} since {time(history, since)}"
        delta = publication.available_s
        available = "for ever" if delta == inf else f"for {seconds(delta)}"
        became = "began" if is_local else f"became stable at {publication.source}"
        return f"the subscription {became} {when}, and the event is available {available}"

    def _progress(
        self,
        organisation: Organisation,
        publication: Publication,
        crossings: list[Crossing],
        taken: int,
    ) -> str:
        """Returns how far the event came, which shows where to look for the fault."""
        history, source, name = self.world.records, publication.source, organisation.name
        if name == source:
            return "It needed no transport: producer and subscriber are the same organisation."
        if not crossings:
            return f"{source} never gave it a number in its stream to {name}."
        number = (
            f"{source} gave it number {crossings[-1].place} in its stream to {name} "
            f"{moment(history, crossings[-1].number)}"
        )
        if not taken:
            return f"{number}, but {name} never consumed it."
        return f"{number} and {name} consumed it {moment(history, taken)}."
