"""`qns watch`: prints the deliveries of a subscription as they arrive, until Ctrl-C."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from time import monotonic, sleep
from typing import NoReturn

from qns.cli.delivery_lines import show_delivery, show_dropped
from qns.cli.options import Commands, new_command
from qns.cli.peer_connection import add_peer_options, add_reading_options, client_of
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.client import Client, Delivered, DeliveriesDropped, DeliveryStream, PeerUnreachable
from qns.client.patience import Patience
from qns.client.scope import Lease
from qns.errors import Busy, QnsError, ValueRefused

_WAIT_S = 30.0
_LIFETIME_S = 600.0
"""The lifetime of a subscription made for this command, so that it ends soon after a kill."""
_DESCRIPTION = """
Prints the deliveries of a subscription as they arrive, until Ctrl-C. Printed deliveries are
acknowledged, so the next watch continues after them. A delivery that is interrupted while it is
printed is printed again.

With the text of a subscription instead of an id, it subscribes, and unsubscribes at the end.
If the command is killed, the subscription ends within ten minutes. If the peer stops, the
command waits until the peer is back. If the peer was away for longer than these ten minutes, the
command says so and subscribes again; events that were published meanwhile are then missing.
"""
_EXAMPLES = (
    "qns watch bad-names",
    "qns watch 'Enterprise/Holder where Name.accuracy <= medium' --json",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "watch", "print deliveries as they arrive, until Ctrl-C", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("what", metavar="ID|TEXT", help="the id of a subscription, or its text")
    add_peer_options(parser)
    add_reading_options(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    with (
        client_of(args) as client,
        _Interrupt() as interrupt,
        suppress(KeyboardInterrupt),  # the usual way to end it
    ):
        if any(each.id == args.what for each in client.subscriptions()):
            _watch(client, args.what, screen, interrupt, None)
        while True:
            with _subscription(client, args.what, screen) as id:
                try:
                    _watch(client, id, screen, interrupt, Lease(_LIFETIME_S))
                except ValueRefused:
                    if any(each.id == id for each in client.subscriptions()):
                        raise
                    _report(
                        screen,
                        f"{id} has ended at the peer, as after a long absence: subscribing again; "
                        "events of the time between are missing",
                    )
    return 0


def _watch(
    client: Client, id: str, screen: Screen, interrupt: _Interrupt, lease: Lease | None
) -> NoReturn:
    """Prints deliveries until Ctrl-C raises KeyboardInterrupt."""
    with client.deliveries(id) as stream:
        _report(screen, f"watching {id}; Ctrl-C ends it")
        for delivered in _deliveries(client, stream, screen, lease):
            interrupt.check()
            if delivered is not None:
                show_delivery(screen, delivered)
    raise AssertionError("the deliveries of a subscription have no end")


class _Interrupt:
    """Remembers Ctrl-C: Python loses a KeyboardInterrupt that is raised inside a finalizer."""

    def __init__(self) -> None:
        self._has_come = False

    def __enter__(self) -> _Interrupt:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, *_: object) -> None:
        self._has_come = True
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was pressed, even if the first one was lost."""
        if self._has_come:
            raise KeyboardInterrupt


@contextmanager
def _subscription(client: Client, text: str, screen: Screen) -> Iterator[str]:
    """Subscribes for the time of the command; yields the id."""
    try:
        made = client.subscribe(text, lifetime_s=_LIFETIME_S)
    except QnsError as problem:
        if len(text.split()) == 1 and "/" not in text and not isinstance(problem, PeerUnreachable):
            problem.remedy = f"{client.owner} has no subscription of that id" + (
                f"; as a text: {problem.remedy}" if problem.remedy else ""
            )
        raise
    for warning in made.warnings:
        _report(screen, f"warning: {warning}")
    try:
        yield made.id
    finally:
        with suppress(PeerUnreachable, ValueRefused):  # its lifetime ends it, or has ended it
            client.unsubscribe(made.id)


def _deliveries(
    client: Client, stream: DeliveryStream, screen: Screen, lease: Lease | None
) -> Iterator[Delivered | None]:
    """Yields deliveries without end, also after the peer was unreachable; None if none came."""
    is_away, patience = False, Patience(inf)
    while True:
        try:
            if lease is not None and lease.is_due:
                client.renew(stream.id, lifetime_s=lease.lifetime_s)
                lease.was_renewed()
            # While the peer is unreachable, no wait is requested: its return is seen at once.
            found = stream.take(0.0 if is_away else _WAIT_S)
        except DeliveriesDropped as declared:
            show_dropped(screen, declared)
            found = None
        except (PeerUnreachable, Busy) as problem:
            if not is_away:
                _report(screen, f"{problem.problem}; waiting for it")
            is_away = True
            sleep(patience.next_pause_s(monotonic()) or 0.0)
            yield None
            continue
        if is_away:
            _report(screen, "the peer is back")
            is_away, patience = False, Patience(inf)
        yield found


def _report(screen: Screen, message: str) -> None:
    """Prints a message to standard error, unless the output is JSON."""
    if not screen.as_json:
        sys.stderr.write(f"{visible(message)}\n")
        sys.stderr.flush()
