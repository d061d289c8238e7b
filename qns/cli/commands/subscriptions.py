"""`qns subscriptions`: lists the subscriptions of one owner at a peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_connection import add_peer_options, client_of
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.table_layout import table_lines
from qns.cli.wording import moment
from qns.iil.requests import SubscriptionInfo

_DESCRIPTION = """
Lists the subscriptions of an owner: the number of events that were delivered, that wait for an
acknowledgement and that were dropped because nobody read them, and the producers at which a
subscription is still pending. Below them it prints why a subscription, or a part of it, may never
match: an unknown source, for example, or a class that your organisation may not read.
"""
_EXAMPLES = ("qns subscriptions", "qns subscriptions --owner maria --json")
_HEAD = ("id", "waiting", "delivered", "dropped", "state", "subscription")


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "subscriptions", "list your subscriptions at a peer", _DESCRIPTION, _EXAMPLES
    )
    add_peer_options(parser)
    add_json_option(parser, "one JSON object per subscription")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    with client_of(args) as client:
        found, owner = client.subscriptions(), client.owner
    if screen.as_json:
        for each in found:
            screen.json(_as_json(each))
        return 0
    if not found:
        screen.line(f"{visible(owner)} has no subscriptions")
        return 0
    rows = [_row(each) for each in found]
    for line in table_lines(_HEAD, rows, numbers=("waiting", "delivered", "dropped")):
        screen.line(*line)
    for each in found:
        for warning in each.warnings:
            screen.line(visible(f"{each.id}: {warning}"))
    return 0


def _row(info: SubscriptionInfo) -> tuple[str, ...]:
    state = ["paused" if info.paused else "active"]
    if info.pending:
        state.append(f"pending at {', '.join(info.pending)}")
    if info.group:
        state.append(f"one of {info.group}")
    if (expires := moment(info.expires_at)) is not None:
        state.append(f"ends {expires}")
    numbers = (f"{number:,}" for number in (info.waiting, info.delivered, info.dropped))
    return (visible(info.id), *numbers, visible("; ".join(state)), visible(info.text))


def _as_json(info: SubscriptionInfo) -> dict[str, object]:
    return {
        "id": info.id,
        "text": info.text,
        "group": info.group or None,
        "paused": info.paused,
        "expires": moment(info.expires_at),
        "pending": list(info.pending),
        "delivered": info.delivered,
        "dropped": info.dropped,
        "waiting": info.waiting,
        "warnings": list(info.warnings),
    }
