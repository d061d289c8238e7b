"""`qns watch`: follows a subscription until Ctrl-C."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from time import monotonic, sleep

from qns.cli.delivery_lines import show_delivery
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_options import add_peer_options, add_reading_schema_option, client_of
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.client import Client, Delivered, DeliveryStream, PeerUnreachable
from qns.client.patience import Patience
from qns.client.scope import LIFETIME_S, Lease
from qns.errors import Busy, QnsError

_WAIT_S = 30.0
_DESCRIPTION = """
Prints what is delivered to a subscription as it comes, until Ctrl-C. What was printed is
acknowledged: the next watch goes on after it. What is interrupted just then is printed again.

Given the text of a subscription instead of an id, it subscribes, and unsubscribes at the end.
If the peer goes away, it waits for it to come back.
"""
_EXAMPLES = (
    "qns watch bad-names",
    "qns watch 'Enterprise/Holder where Name.accuracy <= medium' --json",
)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "watch", "follow what is delivered, until Ctrl-C", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("what", metavar="ID|TEXT", help="a subscription, by its id or as text")
    add_peer_options(parser)
    add_reading_schema_option(parser)
    add_json_option(parser, "one JSON object per delivery: number, event")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    with (
        client_of(args) as client,
        suppress(KeyboardInterrupt),  # the usual way to end it
        _subscription(client, args.what) as (id, is_ours),
        client.deliveries(id) as stream,
    ):
        _tell(screen, f"watching {id}; Ctrl-C ends it")
        for delivered in _deliveries(client, stream, screen, Lease() if is_ours else None):
            show_delivery(screen, delivered)
    return 0


@contextmanager
def _subscription(client: Client, what: str) -> Iterator[tuple[str, bool]]:
    """The subscription to follow, and whether it was made for this."""
    if any(each.id == what for each in client.subscriptions()):
        yield what, False
        return
    try:
        id = client.subscribe(what, lifetime_s=LIFETIME_S).id
    except QnsError as problem:
        if len(what.split()) == 1 and "/" not in what and not isinstance(problem, PeerUnreachable):
            problem.remedy = f"{client.owner} has no subscription of that id" + (
                f"; as a text: {problem.remedy}" if problem.remedy else ""
            )
        raise
    try:
        yield id, True
    finally:
        with suppress(PeerUnreachable):  # then it ends by itself, in a day
            client.unsubscribe(id)


def _deliveries(
    client: Client, stream: DeliveryStream, screen: Screen, lease: Lease | None
) -> Iterator[Delivered]:
    """Without end, also when the peer goes away for a while."""
    is_away, patience = False, Patience(inf)
    while True:
        try:
            if lease is not None and lease.is_due:
                client.renew(stream.id, lifetime_s=LIFETIME_S)
                lease.was_renewed()
            found = stream.take(0.0 if is_away else _WAIT_S)  # tell at once that it is back
        except (PeerUnreachable, Busy) as problem:
            if not is_away:
                _tell(screen, f"{problem.problem}; waiting for it")
            is_away = True
            sleep(patience.next_pause_s(monotonic()) or 0.0)
            continue
        if is_away:
            _tell(screen, "the peer is back")
            is_away, patience = False, Patience(inf)
        if found is not None:
            yield found


def _tell(screen: Screen, words: str) -> None:
    """What goes on, for somebody who looks; programs read the deliveries alone."""
    if not screen.as_json:
        sys.stderr.write(f"{visible(words)}\n")
        sys.stderr.flush()
