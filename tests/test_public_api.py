"""The names that `qns` and `qns.client` export to programs."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import qns
import qns.client

ROOT = Path(__file__).parents[1]


def visible_names(module: ModuleType) -> set[str]:
    """The public attributes of a module, without its submodules."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }


def stub_names() -> dict[str, str]:
    """Exported name -> its module, as `qns/__init__.pyi` has them."""
    tree = ast.parse((ROOT / "qns/__init__.pyi").read_text(encoding="utf-8"))
    return {
        alias.name: node.module or ""
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("module", [qns, qns.client], ids=lambda module: module.__name__)
def test_every_visible_name_is_in_all_and_the_other_way_round(module: ModuleType) -> None:
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert visible_names(module) == set(module.__all__)
    assert len(module.__all__) == len(set(module.__all__))


def test_dir_lists_the_exported_names() -> None:
    assert set(dir(qns)) == {*qns.__all__, "__version__"}


def test_stub_has_the_names_and_modules_of_the_table() -> None:
    assert stub_names() == qns._MODULE_OF


def test_errors_that_programs_catch_are_exported() -> None:
    tree = ast.parse((ROOT / "qns/errors.py").read_text(encoding="utf-8"))
    errors = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert errors <= set(qns.__all__)


def test_names_of_the_client_are_names_of_the_package() -> None:
    for name in qns.client.__all__:
        assert getattr(qns, name) is getattr(qns.client, name)


def test_api_page_is_up_to_date() -> None:
    generate = runpy.run_path(str(ROOT / "docs/generate_api.py"))
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    assert page == generate["api_page"](), "run python docs/generate_api.py"


def test_unknown_name_raises_attribute_error() -> None:
    for module in (qns, qns.client):
        with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
            _ = module.Nothing


def test_import_loads_no_module_of_the_package_and_no_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import qns; "
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before} - {'qns'}; "
        "print(sorted(loaded - sys.stdlib_module_names), sorted(n for n in sys.modules "
        "if n.startswith('qns.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[] []\n"


@pytest.mark.parametrize(
    ("name", "unneeded"),
    [
        ("QnsError", {"lxml", "lark", "aiohttp", "orjson", "numba", "spyne"}),
        ("Client", {"aiohttp", "spyne", "numba"}),
        ("parse_subscription", {"aiohttp", "spyne", "numba"}),
    ],
)
def test_exported_name_loads_only_what_it_needs(name: str, unneeded: set[str]) -> None:
    code = f"import sys; from qns import {name}; print(sorted({unneeded!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
