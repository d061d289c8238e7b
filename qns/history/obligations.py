"""Obligations: Liveness and Completeness, judged whenever all is calm (semantics §8, §9)."""

from __future__ import annotations

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
"""Under which rule an event is owed, and since which record: a `stable`, or a local `sub`."""


@dataclass(slots=True)
class Obligations:
    world: World
    findings: Findings
    _counted: set[tuple[str, Subscriber, int]] = field(default_factory=set)
    """Organisation, subscriber, publication: seen to be owed once; likewise `_reported`."""
    _reported: set[tuple[str, Subscriber, int]] = field(default_factory=set)

    def judge(self, calm: int) -> None:
        for organisation in self.world.organisations.values():
            if organisation.joined is not None:
                for each in organisation.branch.subscriptions.values():
                    if not each.ended and not each.paused and each.joined == organisation.joined:
                        self._judge(calm, organisation, each)

    def _judge(self, calm: int, organisation: Organisation, subscription: Subscription) -> None:
        matching = self.world.matching(subscription.meaning)
        if subscription.looked < len(matching):
            subscription.open += [
                each
                for each in matching[subscription.looked :]
                if each.number > subscription.number or each.t + each.available_s >= subscription.t
            ]
            subscription.looked = len(matching)
        group = subscription.group
        subscriber = (group, True) if group else (subscription.id, False)
        still_open = []
        for publication in subscription.open:
            if publication.is_lost:
                continue
            debt = self._debt(organisation, subscription, publication)
            if debt is None:
                if publication.available_s:  # it may become stable in time
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
            if self._is_excused(organisation, publication):
                self.findings.excused.add(case)
            elif case not in self._reported:
                self._reported.add(case)
                self._report(calm, organisation, subscription, publication, debt)
        subscription.open = still_open

    def _debt(
        self, organisation: Organisation, subscription: Subscription, publication: Publication
    ) -> _Debt | None:
        """Whether the event is owed to the subscription, and why."""
        if organisation.name == publication.source:
            if subscription.joined != publication.joined:
                return None
            if subscription.number < publication.number:
                return Rule.LIVENESS, subscription.number
            if publication.is_available(subscription.number, subscription.t):
                return Rule.COMPLETENESS, subscription.number
            return None
        late = 0
        for stable in self.world.stables.get(
            (organisation.name, subscription.id, publication.source, publication.joined), ()
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
        """Whether it is declared lost, or nobody can bring it any more."""
        if is_declared_lost(self.world, consumer, publication):
            return True
        producer = self.world.organisation(publication.source)
        return (  # what a restored consumer has forgotten, a producer that left cannot send again
            consumer.restored > publication.number
            and producer.joined != publication.joined
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
        journey = [
            each
            for each in crossings_of(self.world, organisation, publication)
            if each.event == publication.id
        ][-1:]
        taken = organisation.branch.taken.get((publication.source, publication.id), 0)
        records = [*sorted({publication.number, subscription.number, since}), calm]

        def words() -> str:
            told = self.world.records
            return " ".join(
                (
                    f"Event {publication.id} of {publication.source}, published "
                    f"{moment(told, publication.number)}, was owed to "
                    f"{subscription_named(organisation.name, subscription)}: "
                    f"{self._why(organisation, publication, debt)}.",
                    f"When all was calm {moment(told, calm)} it had still not been notified.",
                    self._progress(organisation, publication, journey, taken),
                )
            )

        self.findings.broken(rule, records, words)

    def _why(self, organisation: Organisation, publication: Publication, debt: _Debt) -> str:
        rule, since = debt
        told = self.world.records
        when = moment(told, since)
        is_local = organisation.name == publication.source
        if rule is Rule.LIVENESS:
            if is_local:
                return f"the subscription began {when}, before the publication"
            return f"it was stable at {publication.source} since {time(told, since)}"
        delta = publication.available_s
        available = "for ever" if delta == inf else f"for {seconds(delta)}"
        became = "began" if is_local else f"became stable at {publication.source}"
        return f"the subscription {became} {when}, and the event is available {available}"

    def _progress(
        self,
        organisation: Organisation,
        publication: Publication,
        journey: list[Crossing],
        taken: int,
    ) -> str:
        """How far it came: where to look for the fault."""
        told, source, name = self.world.records, publication.source, organisation.name
        if name == source:
            return "It needed no transport: producer and subscriber are the same organisation."
        if not journey:
            return f"{source} never gave it a number in its stream to {name}."
        number = (
            f"{source} gave it number {journey[0].place} in its stream to {name} "
            f"{moment(told, journey[0].number)}"
        )
        if not taken:
            return f"{number}, but {name} never consumed it."
        return f"{number} and {name} consumed it {moment(told, taken)}."
