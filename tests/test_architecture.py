"""docs/ARCHITECTURE.md names every module of the peer and the rooms around it, and true imports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_import_arrows import ARROWS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
DESCRIBED = (
    *("iil", "edl", "peer", "store", "runtime", "history", "simulation", "soap", "client"),
    "federation",
)
PARTS_OF_PEER = "parts of peer"
_HEADING = re.compile(r"^## [^`]*(?:`(qns/\w+)`$)?")
_FILE = re.compile(r"`([\w/]+(?:\.py|/))`")
_ROOM = re.compile(r"^\| `qns/(\w+)/` \|.*\| ([^|]*) \|$", re.MULTILINE)


def named_files() -> Iterator[str]:
    """Every Python file that the page names, as a path from the root.

    A name with a folder is relative to the root, to the room in the heading of its section, or to
    `qns/`. A name without one is in the folder that its row or paragraph named last.
    """
    room = folder = "qns"
    for line in PAGE.splitlines():
        heading = _HEADING.match(line)
        if heading:
            room = heading[1] or "qns"
        if heading or not line or line.startswith("|"):
            folder = room
        for name in _FILE.findall(line):
            if name.startswith(("qns/", "tests/", "benchmarks/")):
                path = name
            elif "/" in name:
                path = f"{room}/{name}"
                folder = path.rpartition("/")[0]
            else:
                path = f"{folder}/{name}"
            if path.endswith(".py"):
                yield path


def modules(room: str) -> set[str]:
    """The files of a room, without those that only make a folder a package."""
    found = (ROOT / "qns" / room).rglob("*.py")
    return {path.relative_to(ROOT).as_posix() for path in found if path.name != "__init__.py"}


def imported_rooms(room: str) -> set[str]:
    """The rooms that a row of ARROWS names; the modules of `peer` that are rooms count as one."""
    arrows = set().union(*(ARROWS[each] for each in ARROWS if each.partition(".")[0] == room))
    rooms = {PARTS_OF_PEER if each.startswith("peer.") else each for each in arrows}
    return rooms - {PARTS_OF_PEER} if "peer" in {room, *rooms} else rooms


@pytest.mark.parametrize("room", DESCRIBED)
def test_page_names_every_module_of_the_room(room: str) -> None:
    assert modules(room) - set(named_files()) == set()


def test_every_file_that_the_page_names_exists() -> None:
    assert [name for name in named_files() if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(("room", "imports"), _ROOM.findall(PAGE))
def test_page_lists_exactly_the_imports_of_the_room(room: str, imports: str) -> None:
    listed = set() if imports == "nothing" else set(imports.split(", "))
    assert listed == imported_rooms(room)


def test_page_has_a_row_for_every_room() -> None:
    rooms = {room.partition(".")[0] for room in ARROWS} - {"", "errors"}
    assert {room for room, _ in _ROOM.findall(PAGE)} == rooms
