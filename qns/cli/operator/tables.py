"""`qns peer tables`: shows the merge subscriptions, streams, custody and links of a peer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from qns.cli.operator.port import add_peer_arguments, ask_peer
from qns.cli.options import Commands, new_command
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.table_layout import table_lines

_DESCRIPTION = """
Shows the tables of a running peer: its merge subscription, and how far each producer has it; the
views that consumers have sent to it; the streams in both directions, with numbers and lag; the
events that it has promised to forward; and the links to the other peers, with the last error.
"""
_EXAMPLES = (
    "qns peer tables services/peer/inps.toml",
    "qns peer tables services/peer/inps.toml --limit 100 --json",
)
_NUMBERS: Final = frozenset(
    ("version", "pending", "number", "acknowledged", "lag", "last", "early", "waiting", "failures")
)
_Table = tuple[str, tuple[str, ...], Callable[[dict[str, Any]], Iterator[Sequence[object]]]]


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "tables", "show the tables of a running peer", _DESCRIPTION, _EXAMPLES
    )
    add_peer_arguments(parser)
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        default=20,
        help="at most N rows of each table (default: 20)",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    found = ask_peer(args, "tables", limit=args.limit)
    if screen.as_json:
        screen.json(found)
        return 0
    merge = found["merge"]
    screen.line(visible(f"the merge subscription of {found['organisation']}"))
    for element in (*merge["rows"], *([] if merge["total"] else ["none"])):
        screen.line(visible(f"  {element}"))
    _show_cut(screen, merge)
    for name, (title, head, rows_of) in _TABLES.items():
        _show_table(screen, found[name], title, head, rows_of)
    return 0


def _show_table(
    screen: Screen,
    table: dict[str, Any],
    title: str,
    head: tuple[str, ...],
    rows_of: Callable[[dict[str, Any]], Iterator[Sequence[object]]],
) -> None:
    screen.line()
    screen.line(title)
    rows = [tuple(map(_cell, row)) for each in table["rows"] for row in rows_of(each)]
    if not rows:
        screen.line("  none")
        return
    for line in table_lines(head, rows, numbers=_NUMBERS):
        screen.line("  ", *line)
    _show_cut(screen, table)


def _show_cut(screen: Screen, table: dict[str, Any]) -> None:
    left = table["total"] - len(table["rows"])
    if left:
        screen.line((f"  … and {left:,} more: see --limit", "yellow"))


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else visible(str(value))


def _elements(first: Sequence[object], elements: dict[str, Any]) -> Iterator[Sequence[object]]:
    """Yields one row for each element of a view; only the first one has the other columns."""
    texts = list(elements["rows"]) or ["none"]
    left = elements["total"] - len(elements["rows"])
    if left:
        texts.append(f"… and {left:,} more: see --limit")
    for nth, text in enumerate(texts):
        yield (*first, text) if not nth else (*[""] * len(first), text)


def _views(view: dict[str, Any]) -> Iterator[Sequence[object]]:
    first = (view["producer"], view["version"], view["state"], view["pending"])
    return _elements(first, view["elements"])


def _external(view: dict[str, Any]) -> Iterator[Sequence[object]]:
    return _elements((view["consumer"], view["version"]), view["elements"])


def _streams_to(stream: dict[str, Any]) -> Iterator[Sequence[object]]:
    yield (
        stream["consumer"],
        stream["number"],
        stream["acknowledged"],
        stream["lag_events"],
        stream["state"],
    )


def _streams_from(stream: dict[str, Any]) -> Iterator[Sequence[object]]:
    gap = stream["gap"]
    missing = "nothing" if gap is None else f"{gap[0]:,} to {gap[1]:,}"
    yield stream["producer"], stream["last"], stream["early"], missing, stream["epoch"]


def _custody(promise: dict[str, Any]) -> Iterator[Sequence[object]]:
    yield promise["receiver"], promise["source"], promise["event"], promise["number"]


def _links(link: dict[str, Any]) -> Iterator[Sequence[object]]:
    state = link["state"]
    if link["request"]:
        state = f"{state} ({link['request']})"
    if link["next_try_s"] is not None:
        state = f"{state}, next try in {link['next_try_s']:.0f} s"
    yield link["other"], link["parcels"], link["failures"], state, link["problem"] or "none"


_TABLES: Final[dict[str, _Table]] = {
    "views": (
        "Merge Subscriptions Table: what each producer is asked for",
        ("producer", "version", "state", "pending", "element"),
        _views,
    ),
    "external": (
        "External Merge Table: what each consumer asks for",
        ("consumer", "version", "element"),
        _external,
    ),
    "streams_to": (
        "streams to consumers",
        ("consumer", "number", "acknowledged", "lag", "state"),
        _streams_to,
    ),
    "streams_from": (
        "streams from producers",
        ("producer", "last", "early", "missing", "epoch"),
        _streams_from,
    ),
    "custody": (
        "custody: events to forward",
        ("receiver", "source", "event", "number"),
        _custody,
    ),
    "links": (
        "links",
        ("peer", "waiting", "failures", "state", "last error"),
        _links,
    ),
}
"""Key in the answer -> the title, the columns and the rows of a table."""
