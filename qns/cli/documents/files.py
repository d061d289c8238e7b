"""Files of `qns federation`: documents, keys and anchors, and what all its commands share."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from qns.cli.inputs import STDIN, Input
from qns.cli.options import Commands, new_command
from qns.cli.outputs import save
from qns.cli.problems import Problem, visible
from qns.cli.screen import Screen
from qns.errors import NameNotKnown, QnsError, ValueRefused, shorten
from qns.federation.acceptance import check_change
from qns.federation.changes import changes
from qns.federation.document import Federation
from qns.federation.document_xml import MAX_FEDERATION_BYTES, read_federation, write_federation
from qns.federation.ed25519 import read_public_key
from qns.federation.roots import Anchor, RootKey, RootSet
from qns.federation.roots_xml import MAX_ANCHOR_BYTES, read_anchor, read_expires, write_anchor
from qns.federation.shipped import FEDERATIONS

SHIPPED: Final = ", ".join(FEDERATIONS)
_MAX_KEY_BYTES: Final = 10_000
_DAYS: Final = re.compile(r"([0-9]{1,7})d\Z")

Content = TypeVar("Content")
Run = Callable[[Namespace, Screen], int]


class BadFile(Exception):
    """A file whose content is wrong, with its line."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def add_action(
    actions: Commands,
    name: str,
    summary: str,
    description: str,
    examples: tuple[str, ...],
    run: Run,
) -> ArgumentParser:
    """Adds a command of `qns federation`, which reports a wrong file with its line."""

    def reporting(args: Namespace, screen: Screen) -> int:
        try:
            return run(args, screen)
        except BadFile as error:
            screen.error(error.problem)
            return 2

    parser = new_command(actions, name, summary, description, examples)
    parser.set_defaults(run=reporting)
    return parser


def add_document(parser: ArgumentParser) -> None:
    parser.add_argument("document", metavar="DOCUMENT", help=f"{SHIPPED}, an .xml file, or -")


def add_output(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", dest="output", metavar="FILE", help="write the XML to this file and print the changes"
    )


def add_expires(parser: ArgumentParser, help: str) -> None:
    parser.add_argument("--expires", metavar="WHEN", help=f"{help}: 2027-01-31T12:00:00Z, or 90d")


# --- reading --------------------------------------------------------------------------------------


def read_document(name: str) -> Federation:
    """Returns a shipped document or the one in a file."""
    shipped = FEDERATIONS.get(name.casefold())
    if shipped is not None:
        return shipped
    if name != STDIN and not Path(name).suffix and not os.path.exists(name):
        problem = NameNotKnown("federation", name, FEDERATIONS)
        near = f"{problem.remedy} or " if problem.near_misses else ""
        problem.remedy = f"{near}give {SHIPPED} or an .xml file"
        raise problem
    return _read(name, MAX_FEDERATION_BYTES, read_federation)


def read_anchor_file(name: str) -> Anchor:
    return _read(name, MAX_ANCHOR_BYTES, read_anchor)


def read_root_keys(names: list[str]) -> tuple[RootKey, ...]:
    """Returns the public root keys in these files."""
    return tuple(_read(name, _MAX_KEY_BYTES, read_public_key) for name in names)


def read_secret(name: str) -> bytes:
    """Returns the content of a small file."""
    return _read(name, _MAX_KEY_BYTES, lambda data: data)


def read_passphrase(name: str | None) -> bytes | None:
    """Returns the first line of the file; None if there is no file."""
    if name is None:
        return None
    passphrase = read_secret(name).split(b"\n", 1)[0].rstrip(b"\r")
    if not passphrase:
        raise ValueRefused("the passphrase is empty", place=name, remedy="write it into its line 1")
    return passphrase


def _read(name: str, limit: int, reader: Callable[[bytes], Content]) -> Content:
    with Input(name) as source:
        try:
            return reader(source.read(limit))
        except QnsError as error:
            raise BadFile(Problem.of(error, source.name)) from None


def expiry(text: str, now: float) -> datetime:
    """Returns a time that is given as such or as a number of days from now."""
    days = _DAYS.match(text)
    try:
        today = datetime.fromtimestamp(int(now), UTC)
        found = today + timedelta(days=int(days[1])) if days else read_expires(text)
    except OverflowError:
        found = datetime.fromtimestamp(0, UTC)
    except ValueRefused as error:
        raise ValueRefused(
            error.problem, place="--expires", remedy=f"{error.remedy}, or days such as 90d"
        ) from None
    if found.timestamp() <= now:
        raise ValueRefused(
            f"{shorten(text)} is not a time to come", place="--expires", remedy="give a later one"
        )
    return found


# --- writing --------------------------------------------------------------------------------------


def write_document(
    old: Federation | None, new: Federation, output: str | None, screen: Screen
) -> None:
    """Writes a document to a file or to standard output; prints what it changes."""
    if old is not None and new != old:
        check_change(new, old)
    elif old is None:
        check_change(new, None)
    data = write_federation(new)
    if output is None:
        screen.raw(data.decode("utf-8"))
    else:
        save(output, data)
        screen.line(f"version {new.version} of {visible(new.name)} is in {visible(output)}")
        for change in changes(old, new) if old is not None and new != old else ():
            screen.line("  ", visible(change.text))
    if new.roots and not new.signatures:
        dropped = "the signatures are dropped; " if old is not None and old.signatures else ""
        threshold = new.roots[-1].threshold
        screen.note(f"{dropped}it needs {threshold} of the root keys: qns federation sign")


def write_anchor_file(output: str, document: Federation, screen: Screen) -> None:
    """Writes the anchor with the newest root set of the document."""
    roots = document.root_set
    assert roots is not None
    bare = RootSet(roots.number, roots.threshold, roots.keys)
    save(output, write_anchor(Anchor(document.name, bare)))
    screen.note(f"the anchor with root set {roots.number} is in {output}")
