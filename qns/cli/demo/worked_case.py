"""Worked case: the demo's chapters on the worked case of the thesis (semantics §10).

The demo prints the tables of the running peers. The scenario's model computes what should happen;
the demo compares it with what the peers do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from qns.cbr.delta import Delta
from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.cbr.witness import witness
from qns.cli.demo.peers import DemoFailed
from qns.cli.demo.scenario import (
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
from qns.cli.demo.story import Story
from qns.cli.screen import Part
from qns.d2q.description import spelled
from qns.d2q.event_json import EventReader, write_event_json
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_thesis
from qns.d2q.shipped import AGENCIES
from qns.federation.shipped import AGENCIES_MAPPING


@dataclass(slots=True)
class Count:
    """The messages that were sent, and those that would be sent without merging."""

    sent: int = 0
    otherwise: int = 0


class WorkedCase:
    """Plays the chapters and compares the peers with the model."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.wanted = {n: parse_subscription(text, AGENCIES) for n, text in SUBSCRIPTIONS.items()}
        self.names = {subscription: name for name, subscription in self.wanted.items()}
        self.organisations = {name: Organisation(name, AGENCIES_MAPPING) for name in USERS}
        self.received: dict[str, list[str]] = {}
        """User -> the events that the user should have got by now."""
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
        self.story.heading("The users' subscriptions and the merge subscription of each agency")
        with self.story.waiting("users subscribe"):
            for name, users in USERS.items():
                for user, subscription in users.items():
                    self._subscribe(name, user, subscription)
            self.story.wait_until_stable()
        self.change_subs.sent = self.story.peers.sent("changeSub")
        for name, organisation in self.organisations.items():
            shown = ", ".join(f"{user} {wanted}" for user, wanted in USERS[name].items())
            merge_set = self._merge_set(organisation)
            self.story.line((f"{name:<7}", "bold"), f"{shown or 'nobody':<26}M = ", *merge_set)

    def _merge_set(self, organisation: Organisation) -> list[Part]:
        """Returns the merge subscription that the peer has, after a comparison with the model."""
        name = organisation.name
        found = _read(self.story.peers[name].tables()["merge"])
        if found != organisation.merge_set:
            raise DemoFailed(f"the merge subscription of {name} is not as computed")
        return self._set(found)

    def _subscribe(
        self, where: str, user: str, subscription: str
    ) -> dict[str, Delta[Subscription]]:
        wanted = self.wanted[subscription]
        self.story.subscribe(where, user, subscription, SUBSCRIPTIONS[subscription])
        self.received[user] = []
        self.change_subs.otherwise += self._concerned(where, wanted)
        return self.organisations[where].subscribe(user, wanted)

    def _concerned(self, where: str, wanted: Subscription) -> int:
        """Returns the number of other organisations that a subscription concerns."""
        return sum(
            wanted.projected(name, AGENCIES_MAPPING.hosted_by(name)) is not None
            for name in self.organisations
            if name != where
        )

    def show_tables(self) -> None:
        self.story.heading("The External Merge Table of each producer")
        for name in self.organisations:
            row: list[Part] = [(f"{name:<7}", "bold")]
            for other, view in self._external_merge_table(name).items():
                row += [f"{other} → ", *self._set(view), "   "]
            self.story.line(*row)

    def _external_merge_table(self, name: str) -> dict[str, frozenset[Subscription]]:
        """Returns the table that the peer has, after a comparison with the model."""
        rows = self.story.peers[name].tables()["external"]["rows"]
        found = {row["consumer"]: _read(row["elements"]) for row in rows}
        if found != external_merge_table(name, self.organisations.values()):
            raise DemoFailed(f"the External Merge Table of {name} is not as computed")
        return {other: found[other] for other in self.organisations if other in found}

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
        self.story.wait_for(  # a delivery may overtake the answer to its sender
            "the answers to all notify calls", lambda: peers.sent("notify") - before >= crossings
        )
        self.notifies.sent = peers.sent("notify") - before

    def reached(self, event: Event) -> dict[str, list[str]]:
        """Returns organisation -> its users that the event concerns, by the model."""
        table = external_merge_table(event.source, self.organisations.values())
        return {
            name: sorted(self.organisations[name].users.match(event))
            for name in interested(table, event)
        }

    def _await(self, event: str, reached: dict[str, list[str]]) -> None:
        """Waits until these users have got the event, and checks that no others have."""
        for users in reached.values():
            self.story.wait_for_delivery(event, users)
            self.notifies.otherwise += len(users)
        self.check({event: reached})

    def check(self, events: dict[str, dict[str, list[str]]]) -> None:
        """Adds the events to what these users should have, then checks what all users have."""
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
        self.story.heading("Subscriptions change; producers get only the deltas of their views")
        where, user, subscription = NEWCOMER
        deltas = self._subscribe(where, user, subscription)
        self._await_change(where, f"{user} joins {where} with {subscription}", deltas)
        where, user = LEAVER
        leaver = self.wanted[USERS[where][user]]
        self.change_subs.otherwise += self._concerned(where, leaver)
        deltas = self.organisations[where].unsubscribe(user)
        self.story.unsubscribe(user)
        self._await_change(where, f"{user} leaves {where}", deltas)

    def _await_change(self, where: str, what: str, deltas: dict[str, Delta[Subscription]]) -> None:
        """Waits for the expected changeSub messages, and checks that there are no others."""
        before, peers = self.change_subs.sent, self.story.peers
        with self.story.waiting(what):
            self.story.wait_for(
                f"{where} to send its changeSub messages",
                lambda: peers.sent("changeSub") >= before + len(deltas),
            )
            self.story.wait_until_stable()
        self.change_subs.sent = peers.sent("changeSub")
        if self.change_subs.sent - before != len(deltas):
            raise DemoFailed(
                f"{what}: {self.change_subs.sent - before} changeSub instead of {len(deltas)}"
            )
        self._show_change(where, what, deltas)

    def _show_change(self, where: str, what: str, deltas: dict[str, Delta[Subscription]]) -> None:
        merge_set = self._merge_set(self.organisations[where])
        self.story.line(
            (f"{what:<24}", "bold"), "M = ", *merge_set, "   ", _number_of_messages(deltas)
        )
        for producer, delta in sorted(deltas.items()):
            self.story.line(
                f"    changeSub to {producer:<6}  ",
                *(("−", *self._set(delta.removed), "  ") if delta.removed else ()),
                *(("+", *self._set(delta.added)) if delta.added else ()),
            )

    def _set(self, subscriptions: Iterable[Subscription]) -> list[Part]:
        names = (self.names.get(s) or write_thesis(s, AGENCIES) for s in subscriptions)
        return ["{", (", ".join(sorted(names)), "bold yellow"), "}"]

    def _refusal(self, subscription: Subscription, event: Event) -> str:
        """Returns a short reason why an event does not match."""
        name = self.names[subscription]
        if subscription.sources is not None and event.source not in subscription.sources:
            return f"{name} excludes {event.source}"
        attribute = subscription.failing_attribute(event)
        if attribute is not None:
            return f"{name} has another {spelled(AGENCIES, event.data_class, attribute)}"
        return f"{name} has another class"


def _read(elements: dict[str, Any]) -> frozenset[Subscription]:
    """Returns the subscriptions of a table of a peer, which has them as texts."""
    return frozenset(parse_subscription(text, AGENCIES) for text in elements["rows"])


def _relation(a: Subscription, b: Subscription) -> str:
    signs = {(True, False): "⊃", (False, True): "⊂", (True, True): "≡", (False, False): "∥"}
    return signs[a.contains(b), b.contains(a)]


def _number_of_messages(deltas: dict[str, Delta[Subscription]]) -> str:
    if not deltas:
        return "nothing is sent"
    return f"{len(deltas)} message" + ("s" if len(deltas) > 1 else "")
