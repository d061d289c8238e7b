"""`qns peer dead-letters`: lists, shows, redelivers and drops rejected notifications."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.table_layout import table_lines
from qns.cli.wording import moment, shortened
from qns.errors import QnsError

_DESCRIPTION = """
Handles the dead letters of a running peer: notifications that their receiver rejected for good.
The event of a dead letter is kept until the letter is redelivered or dropped.
"""
_EXAMPLES = ("qns peer dead-letters list --help", "qns peer dead-letters redeliver --help")
_LIST = """
Lists the dead letters, oldest first: number, age, receiver, source and id of the event, reason.
"""
_SHOW = """
Shows one dead letter. The content of the event is printed only with --payload.
"""
_REDELIVER = """
Sends dead letters once more: those of the given numbers, or all of a receiver. Do this when the
cause of the rejection is gone; otherwise they become dead letters again. Exit status: 1 if a
letter could not be sent, such as one whose receiver has left.
"""
_DROP = """
Drops dead letters for good: those of the given numbers, or all of a receiver. The receiver does
not get these events from this peer any more. The history records the loss, and qns verify counts
it. Nothing is dropped without --yes.
"""
_HEAD = ("number", "age", "receiver", "source", "event", "class", "reason")
_LONGEST_REASON = 80


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "dead-letters", "handle rejected notifications", _DESCRIPTION, _EXAMPLES
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = new_command(
        actions, "list", "list the dead letters", _LIST, ("qns peer dead-letters list --help",)
    )
    add_peer_arguments(listing)
    listing.add_argument("--receiver", metavar="NAME", help="only those of this receiver")
    listing.add_argument(
        "--limit", metavar="N", type=int, default=50, help="at most N (default: 50)"
    )
    listing.set_defaults(run=run_list)
    showing = new_command(
        actions, "show", "show one dead letter", _SHOW, ("qns peer dead-letters show --help",)
    )
    add_peer_arguments(showing)
    showing.add_argument("number", metavar="NUMBER", type=int, help="the number of the letter")
    showing.add_argument("--payload", action="store_true", help="print the content of the event")
    showing.set_defaults(run=run_show)
    redelivering = new_command(
        actions,
        "redeliver",
        "send dead letters once more",
        _REDELIVER,
        ("qns peer dead-letters redeliver --help",),
    )
    _add_choice(redelivering)
    redelivering.set_defaults(run=run_redeliver)
    dropping = new_command(
        actions, "drop", "drop dead letters for good", _DROP, ("qns peer dead-letters drop --help",)
    )
    _add_choice(dropping)
    dropping.add_argument("--yes", action="store_true", help="drop them without a question")
    dropping.set_defaults(run=run_drop)
    return parser


def _add_choice(parser: ArgumentParser) -> None:
    add_peer_arguments(parser)
    parser.add_argument("numbers", metavar="NUMBER", type=int, nargs="*", help="numbers of letters")
    parser.add_argument("--receiver", metavar="NAME", help="all letters of this receiver")


def run_list(args: Namespace, screen: Screen) -> int:
    found = ask_peer(args, "dead-letters list", receiver=args.receiver, limit=args.limit)
    if screen.as_json:
        screen.json(found)
        return 0
    if not found["total"]:
        of = f" of {args.receiver}" if args.receiver else ""
        screen.line(visible(f"there are no dead letters{of}"))
        return 0
    rows = [_row(each) for each in found["rows"]]
    for line in table_lines(_HEAD, rows, numbers=("number", "age")):
        screen.line(*line)
    left = found["total"] - len(rows)
    if left:
        screen.line((f"… and {left:,} more: see --limit", "yellow"))
    return 0


def _row(letter: dict[str, Any]) -> tuple[str, ...]:
    texts = (letter["receiver"], letter["source"], letter["event"], letter["data_class"])
    reason = shortened(letter["reason"], _LONGEST_REASON)
    return (str(letter["number"]), f"{letter['age_s']:,.0f} s", *map(visible, (*texts, reason)))


def run_show(args: Namespace, screen: Screen) -> int:
    payload = True if args.payload else None
    letter = ask_peer(args, "dead-letters show", number=args.number, payload=payload)
    content = letter.get("payload")
    if screen.as_json:
        screen.json(letter)
        return 0
    rows = {
        "receiver": letter["receiver"],
        "event": f"{letter['event']} of {letter['source']}",
        "class": letter["data_class"],
        "rejected": f"{moment(letter['at'])}, {letter['age_s']:,.0f} s ago",
        "reason": letter["reason"],
    }
    screen.line(f"dead letter {letter['number']}")
    for name, value in rows.items():
        screen.line(visible(f"  {name:<8}  {value}"))
    if content is not None:
        for part in ("data", "quality", "previous"):
            for name, value in content.get(part, {}).items():
                screen.line(visible(f"  {part:<8}  {name} = {value}"))
    return 0


def run_redeliver(args: Namespace, screen: Screen) -> int:
    return _show_done(_asked(args, "dead-letters redeliver"), "sent again", screen)


def run_drop(args: Namespace, screen: Screen) -> int:
    if not args.yes:
        raise QnsError(
            "nothing was dropped: the receiver would never get these events from this peer",
            remedy="give --yes to drop them, or redeliver them",
        )
    return _show_done(_asked(args, "dead-letters drop"), "dropped", screen)


def _asked(args: Namespace, operation: str) -> dict[str, Any]:
    return ask_peer(args, operation, numbers=args.numbers or None, receiver=args.receiver)


def _show_done(result: dict[str, Any], verb: str, screen: Screen) -> int:
    if screen.as_json:
        screen.json(result)
        return int(bool(result["refused"]))
    done = ", ".join(map(str, result["done"]))
    screen.line(f"{verb}: {done}" if done else f"no dead letter was {verb}")
    for each in result["refused"]:
        screen.line((f"not {verb}: ", "yellow"), visible(f"{each['number']}: {each['problem']}"))
    return int(bool(result["refused"]))
