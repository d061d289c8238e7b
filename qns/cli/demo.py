"""`qns demo`: the worked case of the thesis, computed step by step (semantics §10)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from itertools import pairwise

from qns.cbr.covering import Delta
from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.cbr.witness import witness
from qns.cli.options import Commands, new_command
from qns.cli.screen import Part, Screen
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

_DESCRIPTION = """
Shows QNS at work on the three agencies of the thesis: four subscriptions and how they
contain each other, the merge subscription of each organisation, what the producers know,
who gets two events, and what is sent when users come and go. Everything is computed.
"""
_EXAMPLES = ("qns demo", "NO_COLOR=1 qns demo")
_INTRODUCTION: tuple[Part, ...] = (
    ("QNS", "bold"),
    ": three agencies share data on enterprises and want to hear when its quality changes\n"
    "(the worked case of the thesis, table 5.1 and figure 5.5; everything below is computed)",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "demo", "show QNS at work on three agencies", _DESCRIPTION, _EXAMPLES
    )
    parser.set_defaults(run=run)
    return parser


def run(_: Namespace, screen: Screen) -> int:
    screen.line(*_INTRODUCTION)
    demo = _Demo(screen)
    demo.show_subscriptions()
    demo.show_organisations()
    demo.show_tables()
    demo.show_events()
    demo.show_changes()
    screen.line()
    screen.line(("next: qns --help, and the same case as files in examples/agencies", "dim"))
    return 0


class _Demo:
    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.wanted = {n: parse_subscription(text, AGENCIES) for n, text in SUBSCRIPTIONS.items()}
        self.names = {subscription: name for name, subscription in self.wanted.items()}
        self.organisations = {name: Organisation(name, AGENCIES_MAPPING) for name in USERS}
        for name, users in USERS.items():
            for user, subscription in users.items():
                self.organisations[name].subscribe(user, self.wanted[subscription])
        self.section = 0

    def show_subscriptions(self) -> None:
        self._heading("Four subscriptions, from wide to narrow")
        for name, subscription in self.wanted.items():
            self._line((name, "bold yellow"), f"  {subscription.text}")
        chain: list[Part] = [(next(iter(self.wanted)), "bold yellow")]
        for (_, a), (name, b) in pairwise(self.wanted.items()):
            chain += [f" {_relation(a, b)} ", (name, "bold yellow")]
        self._line(*chain, ("   each contains the next one", "dim"))
        *_, (wide_name, wide), (narrow_name, narrow) = self.wanted.items()
        found = witness(narrow, wide, (narrow_name, wide_name))
        assert found is not None
        self._line((f"{narrow_name} does not contain {wide_name}: {found.reason}", "dim"))

    def show_organisations(self) -> None:
        self._heading("Who subscribes, and the one merge subscription that speaks for them")
        for name, organisation in self.organisations.items():
            users = ", ".join(f"{user} {wanted}" for user, wanted in USERS[name].items())
            merge_set = self._set(organisation.merge_set)
            self._line((f"{name:<7}", "bold"), f"{users or 'nobody':<26}M = ", *merge_set)

    def show_tables(self) -> None:
        self._heading("What each producer knows: its external merge table")
        for name in self.organisations:
            row: list[Part] = [(f"{name:<7}", "bold")]
            for other, view in external_merge_table(name, self.organisations.values()).items():
                row += [f"{other} → ", *self._set(view), "   "]
            self._line(*row)

    def show_events(self) -> None:
        reader = EventReader(AGENCIES)
        events = [reader.from_fields(fields) for fields in EVENTS]
        producers = sorted({event.source for event in events})
        self._heading(f"Two events at {', '.join(producers)}")
        for event in events:
            self._show_event(event)
            table = external_merge_table(event.source, self.organisations.values())
            for name in interested(table, event):
                self._show_delivery(event, self.organisations[name])

    def _show_event(self, event: Event) -> None:
        fields = write_event_json(event, AGENCIES)
        labels = {number: f"{label} ({number})" for label, number in AGENCIES.labels.items()}
        data = ", ".join(str(value) for value in fields["data"].values())
        quality = ", ".join(
            f"{spelled(AGENCIES, event.data_class, name)} = {labels.get(value, value)}"
            for name, value in fields["quality"].items()
        )
        self._line((event.id, "bold magenta"), f"  {data}: ", (quality, "magenta"))

    def _show_delivery(self, event: Event, organisation: Organisation) -> None:
        reached = sorted(organisation.users.match(event))
        others = [user for user in USERS[organisation.name] if user not in reached]
        reasons = [f"{user}: {self._refusal(organisation.users[user], event)}" for user in others]
        self._line(
            f"    sent once to {organisation.name:<6} → ",
            (f"{', '.join(reached):<15}", "bold green"),
            (f"not {'; '.join(reasons)}" if reasons else "", "dim"),
        )
        printed = PRINTED_IN_THESIS.get(event.id, {}).get(organisation.name, reached)
        for user in sorted(set(reached) - set(printed)):
            wanted = self.names[organisation.users[user]]
            self._line(
                ("    erratum: ", "bold red"),
                f"the thesis prints {', '.join(printed)} only, but {event.id} matches {wanted} "
                f"of {user} too",
            )

    def show_changes(self) -> None:
        self._heading("Users come and go; producers hear only of what matters to them")
        where, user, subscription = NEWCOMER
        told = self.organisations[where].subscribe(user, self.wanted[subscription])
        self._show_change(where, f"{user} joins {where} with {subscription}", told)
        where, user = LEAVER
        told = self.organisations[where].unsubscribe(user)
        self._show_change(where, f"{user} leaves {where}", told)

    def _show_change(self, where: str, what: str, told: dict[str, Delta]) -> None:
        merge_set = self._set(self.organisations[where].merge_set)
        self._line((f"{what:<24}", "bold"), "M = ", *merge_set, "   ", _number_of_messages(told))
        for producer, delta in sorted(told.items()):
            self._line(
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

    def _heading(self, text: str) -> None:
        self.section += 1
        self.screen.line()
        self.screen.line((f"{self.section}  {text}", "bold cyan"))

    def _line(self, *parts: Part) -> None:
        self.screen.line("   ", *parts)


def _relation(a: Subscription, b: Subscription) -> str:
    signs = {(True, False): "⊃", (False, True): "⊂", (True, True): "≡", (False, False): "∥"}
    return signs[a.contains(b), b.contains(a)]


def _number_of_messages(told: dict[str, Delta]) -> str:
    if not told:
        return "nothing is sent"
    return f"{len(told)} message" + ("s" if len(told) > 1 else "")
