"""The demo's first chapters: the worked case of the thesis, step by step (semantics §10).

What should happen is computed by the core; what happens is asked of the peers, and compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from qns.cbr.covering import Delta
from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.cbr.witness import witness
from qns.cli.demo_peers import DemoFailed
from qns.cli.demo_story import Story
from qns.cli.screen import Part
from qns.cli.worked_case import (
    EVENTS,
    LEAVER,
    NEWCOMER,
    PRINTED_IN_THESIS,
    SUBSCRIPTIONS,
    USERS,
    Organisation,
    external_merge_table,
    interested,
)
from qns.d2q.description import spelled
from qns.d2q.event_json import EventReader, write_event_json
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_thesis
from qns.d2q.shipped import AGENCIES
from qns.federation.shipped import AGENCIES_MAPPING


@dataclass(slots=True)
class Count:
    """Messages that were sent, and that would have been sent without merging."""

    sent: int = 0
    otherwise: int = 0


class WorkedCase:
    def __init__(self, story: Story) -> None:
        self.story = story
        self.wanted = {n: parse_subscription(text, AGENCIES) for n, text in SUBSCRIPTIONS.items()}
        self.names = {subscription: name for name, subscription in self.wanted.items()}
        self.organisations = {name: Organisation(name, AGENCIES_MAPPING) for name in USERS}
        self.received: dict[str, list[str]] = {}
        """User -> the events that it should have got by now."""
        self.change_subs = Count()
        self.notifies = Count()

    def show_subscriptions(self) -> None:
        self.story.heading("Four subscriptions, from wide to narrow")
        for name, subscription in self.wanted.items():
            self.story.line((name, "bold yellow"), f"  {subscription.text}")
        chain: list[Part] = [(next(iter(self.wanted)), "bold yellow")]
        for (_, a), (name, b) in pairwise(self.wanted.items()):
            chain += [f" {_relation(a, b)} ", (name, "bold yellow")]
        self.story.line(*chain, ("   each contains the next one", "dim"))
        *_, (wide_name, wide), (narrow_name, narrow) = self.wanted.items()
        found = witness(narrow, wide, (narrow_name, wide_name))
        assert found is not None
        self.story.line((f"{narrow_name} does not contain {wide_name}: {found.reason}", "dim"))

    def subscribe_all(self) -> None:
        self.story.heading("Who subscribes, and the one merge subscription that speaks for them")
        with self.story.waiting("users subscribe"):
            for name, users in USERS.items():
                for user, subscription in users.items():
                    self._subscribe(name, user, subscription)
            self.story.wait_until_stable()
        self.change_subs.sent = self.story.peers.sent("changeSub")
        for name, organisation in self.organisations.items():
            users_told = ", ".join(f"{user} {wanted}" for user, wanted in USERS[name].items())
            merge_set = self._set(organisation.merge_set)
            self.story.line((f"{name:<7}", "bold"), f"{users_told or 'nobody':<26}M = ", *merge_set)

    def _subscribe(self, where: str, user: str, subscription: str) -> dict[str, Delta]:
        wanted = self.wanted[subscription]
        self.story.subscribe(where, user, subscription, SUBSCRIPTIONS[subscription])
        self.received[user] = []
        self.change_subs.otherwise += self._concerned(where, wanted)
        return self.organisations[where].subscribe(user, wanted)

    def _concerned(self, where: str, wanted: Subscription) -> int:
        """How many other organisations have to do with a subscription."""
        return sum(
            wanted.projected(name, AGENCIES_MAPPING.hosted_by(name)) is not None
            for name in self.organisations
            if name != where
        )

    def show_tables(self) -> None:
        self.story.heading("What each producer knows: its external merge table")
        for name in self.organisations:
            row: list[Part] = [(f"{name:<7}", "bold")]
            for other, view in external_merge_table(name, self.organisations.values()).items():
                row += [f"{other} → ", *self._set(view), "   "]
            self.story.line(*row)

    def publish_events(self) -> None:
        reader = EventReader(AGENCIES)
        producers = sorted({fields["source"] for fields in EVENTS})
        self.story.heading(f"Two events at {', '.join(producers)}")
        peers, crossings = self.story.peers, 0
        before = peers.sent("notify")
        for fields in EVENTS:
            event = reader.from_fields(fields)
            self._show_event(event)
            reached = self.reached(event)
            crossings += len(reached)
            with self.story.waiting(f"{event.id} is on its way"):
                sent_to = self.story.publish(fields)
                if sorted(sent_to) != sorted(reached):
                    raise DemoFailed(
                        f"{event.id} went to {', '.join(sent_to) or 'nobody'} "
                        f"instead of {', '.join(reached)}"
                    )
                self._await(event.id, reached)
            for name in reached:
                self._show_delivery(event, self.organisations[name])
        self.story.wait_for(  # a delivery may overtake the answer to who sent it
            "all events to be answered for", lambda: peers.sent("notify") - before >= crossings
        )
        self.notifies.sent = peers.sent("notify") - before

    def reached(self, event: Event) -> dict[str, list[str]]:
        """Organisation -> its users whom the event concerns."""
        table = external_merge_table(event.source, self.organisations.values())
        return {
            name: sorted(self.organisations[name].users.match(event))
            for name in interested(table, event)
        }

    def _await(self, event: str, reached: dict[str, list[str]]) -> None:
        """Until they have got it; and nobody else has."""
        for users in reached.values():
            self.story.wait_for_delivery(event, users)
            self.notifies.otherwise += len(users)
        self.check({event: reached})

    def check(self, events: dict[str, dict[str, list[str]]]) -> None:
        """Whether these, and nobody else, have got the events, each once and after the others."""
        for event, reached in events.items():
            for users in reached.values():
                for user in users:
                    self.received[user].append(event)
        self.story.check(self.received)

    def _show_event(self, event: Event) -> None:
        fields = write_event_json(event, AGENCIES)
        labels = {number: f"{label} ({number})" for label, number in AGENCIES.labels.items()}
        data = ", ".join(str(value) for value in fields["data"].values())
        quality = ", ".join(
            f"{spelled(AGENCIES, event.data_class, name)} = {labels.get(value, value)}"
            for name, value in fields["quality"].items()
        )
        self.story.line((event.id, "bold magenta"), f"  {data}: ", (quality, "magenta"))

    def _show_delivery(self, event: Event, organisation: Organisation) -> None:
        reached = sorted(organisation.users.match(event))
        others = [user for user in USERS[organisation.name] if user not in reached]
        reasons = [f"{user}: {self._refusal(organisation.users[user], event)}" for user in others]
        self.story.line(
            f"    sent once to {organisation.name:<6} → ",
            (f"{', '.join(reached):<15}", "bold green"),
            (f"not {'; '.join(reasons)}" if reasons else "", "dim"),
        )
        printed = PRINTED_IN_THESIS.get(event.id, {}).get(organisation.name, reached)
        for user in sorted(set(reached) - set(printed)):
            wanted = self.names[organisation.users[user]]
            self.story.line(
                ("    erratum: ", "bold red"),
                f"the thesis prints {', '.join(printed)} only, but {event.id} matches {wanted} "
                f"of {user} too",
            )

    def change_users(self) -> None:
        self.story.heading("Users come and go; producers hear only of what matters to them")
        where, user, subscription = NEWCOMER
        told = self._subscribe(where, user, subscription)
        self._await_change(where, f"{user} joins {where} with {subscription}", told)
        where, user = LEAVER
        leaver = self.wanted[USERS[where][user]]
        self.change_subs.otherwise += self._concerned(where, leaver)
        told = self.organisations[where].unsubscribe(user)
        self.story.unsubscribe(user)
        self._await_change(where, f"{user} leaves {where}", told)

    def _await_change(self, where: str, what: str, told: dict[str, Delta]) -> None:
        """Until the producers have heard what they should hear, and not more."""
        before, peers = self.change_subs.sent, self.story.peers
        with self.story.waiting(what):
            self.story.wait_for(
                f"{where} to tell its producers",
                lambda: peers.sent("changeSub") >= before + len(told),
            )
            self.story.wait_until_stable()
        self.change_subs.sent = peers.sent("changeSub")
        if self.change_subs.sent - before != len(told):
            raise DemoFailed(
                f"{what}: {self.change_subs.sent - before} changeSub instead of {len(told)}"
            )
        self._show_change(where, what, told)

    def _show_change(self, where: str, what: str, told: dict[str, Delta]) -> None:
        merge_set = self._set(self.organisations[where].merge_set)
        self.story.line(
            (f"{what:<24}", "bold"), "M = ", *merge_set, "   ", _number_of_messages(told)
        )
        for producer, delta in sorted(told.items()):
            self.story.line(
                f"    changeSub to {producer:<6}  ",
                *(("−", *self._set(delta.removed), "  ") if delta.removed else ()),
                *(("+", *self._set(delta.added)) if delta.added else ()),
            )

    def _set(self, subscriptions: Iterable[Subscription]) -> list[Part]:
        names = (self.names.get(s) or write_thesis(s, AGENCIES) for s in subscriptions)
        return ["{", (", ".join(sorted(names)), "bold yellow"), "}"]

    def _refusal(self, subscription: Subscription, event: Event) -> str:
        """Why an event does not match, in a few words."""
        name = self.names[subscription]
        if subscription.sources is not None and event.source not in subscription.sources:
            return f"{name} does not listen to {event.source}"
        attribute = subscription.failing_attribute(event)
        if attribute is not None:
            return f"{name} asks for another {spelled(AGENCIES, event.data_class, attribute)}"
        return f"{name} is about another class"


def _relation(a: Subscription, b: Subscription) -> str:
    signs = {(True, False): "⊃", (False, True): "⊂", (True, True): "≡", (False, False): "∥"}
    return signs[a.contains(b), b.contains(a)]


def _number_of_messages(told: dict[str, Delta]) -> str:
    if not told:
        return "nothing is sent"
    return f"{len(told)} message" + ("s" if len(told) > 1 else "")
