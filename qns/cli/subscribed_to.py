"""`qns subscriptions`: the subscriptions of one owner at a peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from rich.cells import cell_len

from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.peer_options import add_peer_options, client_of
from qns.cli.problems import visible
from qns.cli.screen import Part, Screen
from qns.cli.subscribe import moment
from qns.iil.requests import SubscriptionInfo

_DESCRIPTION = """
Lists an owner's subscriptions: how many events were delivered, how many of them wait to be
read and acknowledged, which were dropped because nobody read them, and the producers at which
a subscription is still pending.
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
    widths = [max(map(cell_len, column)) for column in zip(_HEAD, *rows, strict=True)]
    screen.line(*_cells(_HEAD, widths, "dim"))
    for row in rows:
        screen.line(*_cells(row, widths, "bold cyan"))
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
    }


def _cells(texts: tuple[str, ...], widths: list[int], first: str) -> list[Part]:
    """A line of the table; numbers stand to the right."""
    parts: list[Part] = []
    for column, (text, width) in enumerate(zip(texts, widths, strict=True)):
        space = " " * (width - cell_len(text))
        style = first if first == "dim" or column == 0 else ""
        is_number = _HEAD[column] in {"waiting", "delivered", "dropped"}
        parts += [space, (text, style), "  "] if is_number else [(text, style), space, "  "]
    return parts
