"""Story: the screen, the peers and the users that the chapters of the demo share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, sleep
from typing import Any, Final

from rich.console import Console
from rich.status import Status

from qns.cli.demo.peers import DemoFailed, DemoPeers
from qns.cli.screen import Part, Screen
from qns.client import Client
from qns.iil.requests import SubscriptionInfo

WITHIN_S: Final = 20.0
"""The timeout of every step of the demo."""
_LOOK_EVERY_S: Final = 0.05


@dataclass(slots=True)
class User:
    """A user with one subscription, whose id is the user's name."""

    name: str
    organisation: str
    subscription: str
    client: Client
    got: list[str] = field(default_factory=list)
    read: str = "0"
    """The cursor of the last delivery."""


@dataclass(slots=True, eq=False)
class Story:
    """Prints the chapters, runs the users' requests and checks their deliveries."""

    screen: Screen
    peers: DemoPeers
    users: dict[str, User] = field(default_factory=dict)
    gone: dict[str, User] = field(default_factory=dict)
    """The users that have unsubscribed."""
    chapter: int = 0
    _console: Console = field(default_factory=lambda: Console(stderr=True))

    # --- printing ---------------------------------------------------------------------------------

    def heading(self, text: str) -> None:
        self.chapter += 1
        self.screen.line()
        self.screen.line((f"{self.chapter}  {text}", "bold cyan"))

    def line(self, *parts: Part) -> None:
        self.screen.line("   ", *parts)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Shows on a terminal what the demo waits for."""
        if not self._console.is_terminal:
            yield
            return
        with Status(f"{what} …", console=self._console):
            yield

    # --- users ------------------------------------------------------------------------------------

    def subscribe(self, organisation: str, name: str, subscription: str, text: str) -> None:
        client = Client(self.peers[organisation].url, name, patience_s=WITHIN_S)
        self.users[name] = User(name, organisation, subscription, client)
        client.subscribe(text, id=name)

    def unsubscribe(self, name: str) -> None:
        user = self.gone[name] = self.users.pop(name)
        user.client.unsubscribe(name)

    def wait_until_stable(self) -> None:
        """Waits until no subscription is pending at a producer."""
        for user in self.users.values():
            listed = user.client.subscriptions
            self.wait_for(
                f"the subscription of {user.name} of {user.organisation} to be stable",
                partial(_none_is_pending, listed),
            )

    def publish(self, event: Mapping[str, Any]) -> tuple[str, ...]:
        """Publishes an event. Returns the organisations to which it is sent."""
        url = self.peers[event["source"]].url
        with Client(url, "Quality Factory", patience_s=WITHIN_S) as factory:
            return factory.publish(event).sent_to

    def wait_for_delivery(self, event: str, names: Iterable[str]) -> None:
        """Waits until these users have got the event."""
        for name in names:
            self.wait_for(f"{name} to get {event}", partial(self._has_got, name, event))

    def _has_got(self, name: str, event: str) -> bool:
        return event in self.pulled(name)

    def pulled(self, name: str) -> list[str]:
        """Pulls and acknowledges new deliveries. Returns all events that the user has got."""
        user = self.users[name]
        fresh = user.client.pull(name, after=user.read)
        if fresh:
            user.got += [each.id for each in fresh]
            user.read = fresh[-1].cursor
            user.client.acknowledge(name, user.read)
        return user.got

    # --- checking ---------------------------------------------------------------------------------

    def wait_for(self, what: str, happened: Callable[[], bool]) -> None:
        deadline = monotonic() + WITHIN_S
        while not happened():
            if monotonic() > deadline:
                raise DemoFailed(f"timeout after {WITHIN_S:g} s: waited for {what}")
            sleep(_LOOK_EVERY_S)

    def check(self, expected: Mapping[str, list[str]]) -> None:
        """Raises DemoFailed unless every user has got exactly these events in this order."""
        for name, events in expected.items():
            user = self.users.get(name) or self.gone[name]
            got = self.pulled(name) if name in self.users else user.got
            if got != events:
                raise DemoFailed(
                    f"{name} of {user.organisation} got {', '.join(got) or 'nothing'} "
                    f"instead of {', '.join(events) or 'nothing'}"
                )

    def close(self) -> None:
        for user in (*self.users.values(), *self.gone.values()):
            user.client.close()


def _none_is_pending(listed: Callable[[], Iterable[SubscriptionInfo]]) -> bool:
    return not any(each.pending for each in listed())
