"""Inside each room the imports between sub-packages form no cycle.

A node of the graph is a sub-package, or the modules that lie directly in the room, taken together.
Entry points are a node of their own: those of the command line import every command, and the
process of a peer wires all of its parts.
`tests/test_import_arrows.py` checks the arrows between rooms.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.test_import_arrows import ROOT, imports_of

TOP = "(modules of the room itself)"
ENTRY_POINTS = {"qns.cli.main", "qns.cli.__main__", "qns.runtime.process"}


def sources_of(room: Path) -> dict[str, str]:
    """Dotted module name -> source text, for every module of the room."""
    found = {}
    for path in sorted(room.rglob("*.py")):
        parts = path.relative_to(room.parent.parent).with_suffix("").parts
        found[".".join(parts)] = path.read_text(encoding="utf-8")
    return found


def graph_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Node -> the other nodes of the same room that its modules import."""
    packages = {".".join(name.split(".")[:3]) for name in sources if name.count(".") > 2}

    def node_of(module: str) -> str:
        if ENTRY_POINTS & {module, module.rpartition(".")[0]}:
            return "(entry points)"
        package = ".".join(module.split(".")[:3])
        return package if package in packages else TOP

    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        room = ".".join(module.split(".")[:2])
        is_package = module.endswith(".__init__")
        name = module.removesuffix(".__init__")
        targets = graph.setdefault(node_of(module), set())
        for imported in imports_of(name, ast.parse(source), is_package):
            if imported.target.startswith(f"{room}."):
                targets.add(node_of(imported.target))
        targets.discard(node_of(module))
    return graph


def cycle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """The nodes of one cycle; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


ROOMS = sorted(path for path in (ROOT / "qns").iterdir() if (path / "__init__.py").is_file())


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.name)
def test_subpackages_of_a_room_import_each_other_without_a_cycle(room: Path) -> None:
    cycle = cycle_in(graph_of(sources_of(room)))
    assert not cycle, " -> ".join(cycle)


@pytest.mark.parametrize(
    "sources",
    [
        {"qns.a.b.one": "import qns.a.c.two", "qns.a.c.two": "from qns.a.b import one"},
        {"qns.a.b.one": "from qns.a.low import x", "qns.a.low": "from qns.a.b.one import y"},
        {"qns.a.b.one": "from ..low import x", "qns.a.low": "def f():\n    from .b import one"},
        {
            "qns.a.b.one": "from qns.a.c.two import x",
            "qns.a.c.two": "from qns.a.d.three import y",
            "qns.a.d.three": "from qns.a.b.other import z",
        },
    ],
)
def test_cycle_between_subpackages_is_found(sources: dict[str, str]) -> None:
    assert cycle_in(graph_of(sources))


def test_imports_in_one_direction_are_no_cycle() -> None:
    sources = {
        "qns.a.b.one": "from qns.a.b.other import x\nfrom qns.a.low import y",
        "qns.a.b.other": "from qns.a.b.one import z",
        "qns.a.c.two": "from qns.a.b import one\nimport qns.other",
        "qns.a.low": "",
    }
    graph = graph_of(sources)
    assert graph == {"qns.a.b": {TOP}, "qns.a.c": {"qns.a.b"}, TOP: set()}
    assert not cycle_in(graph)
