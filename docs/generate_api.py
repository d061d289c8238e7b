"""Writes docs/api.md: the names that `qns` exports, from their docstrings and signatures.

python docs/generate_api.py

It reads the source without importing it, so the page does not depend on the version of Python.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/api.md"

_HEAD = """\
# Python API

`docs/generate_api.py` writes this page from the docstrings. Every name is imported from `qns`, as
in `from qns import Client`; the names of the clients can also be imported from `qns.client`.
[client.md](client.md) explains the clients with examples, [language.md](language.md) the
subscription language; "semantics §" refers to [semantics.md](semantics.md).
"""
_CHAPTERS = {
    "qns.client": "Clients",
    "qns.iil": "Answers of the clients",
    "qns.cbr": "Subscriptions, events, matching and merging",
    "qns.d2q": "Schemas, the language, XML and JSON",
    "qns.errors": "Errors",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """A name as its module defines it."""

    module: str
    node: ast.ClassDef | Function | ast.Assign
    docstring: str


def api_page() -> str:
    """Returns the page as Markdown."""
    chapters: dict[str, list[str]] = {title: [] for title in _CHAPTERS.values()}
    for name, module in sorted(_exports().items(), key=lambda item: item[0].lower()):
        found = _definition(module, name)
        room = "qns.errors" if _is_error(found) else ".".join(found.module.split(".")[:2])
        chapters[_CHAPTERS[room]] += _entry(name, found)
    parts = [_HEAD]
    for title, entries in chapters.items():
        parts += [f"## {title}\n", *entries]
    return "\n".join(parts)


@cache
def _exports() -> dict[str, str]:
    """Exported name -> its module, from the stub."""
    return {
        alias.name: node.module or ""
        for node in _tree("qns", ".pyi").body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _tree(module: str, suffix: str = ".py") -> ast.Module:
    path = ROOT.joinpath(*module.split("."))
    file = path / f"__init__{suffix}" if path.is_dir() else path.with_suffix(suffix)
    return ast.parse(file.read_text(encoding="utf-8"))


def _definition(module: str, name: str) -> Definition:
    """The definition of a name. Follows an import, also under another name."""
    tree = _tree(module)
    for node, following in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return Definition(module, node, ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return Definition(module, node, _text(following))
    for inner in ast.walk(tree):
        if isinstance(inner, ast.ImportFrom):
            for alias in inner.names:
                if name == (alias.asname or alias.name):
                    return _definition(inner.module or "", alias.name)
    raise LookupError(f"{module} has no {name}")


def _bases(found: Definition) -> Iterator[Definition]:
    """The base classes that this package defines, each followed by its own."""
    if isinstance(found.node, ast.ClassDef):
        for base in found.node.bases:
            name = ast.unparse(base)
            if _is_ours(found.module, name):
                definition = _definition(found.module, name)
                yield definition
                yield from _bases(definition)


def _is_ours(module: str, name: str) -> bool:
    """True if the module defines the name, or imports it from this package."""
    return any(
        node.name == name
        if isinstance(node, ast.ClassDef)
        else isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("qns.")
        and any(name == (alias.asname or alias.name) for alias in node.names)
        for node in ast.walk(_tree(module))
    )


def _text(node: ast.stmt) -> str:
    """The text of a string that stands alone, as the docstring of what precedes it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return inspect.cleandoc(str(node.value.value))
    return ""


def _is_error(found: Definition) -> bool:
    classes = [found, *_bases(found)]
    return any(getattr(each.node, "name", "") == "QnsError" for each in classes)


def _entry(name: str, found: Definition) -> Iterator[str]:
    node, docstring = found.node, found.docstring
    if isinstance(node, ast.Assign):
        yield f"### `{name}`\n"
        yield f"{docstring or _value(node)}\n"
        return
    if not isinstance(node, ast.ClassDef):
        yield f"### `{name}{_signature(node)}`\n"
    elif _is_error(found):
        yield f"### `{name}({', '.join(map(ast.unparse, node.bases))})`\n"
    else:
        yield f"### `{name}{_constructor(found)}`\n"
    if docstring:
        yield f"{docstring}\n"
    rows = list(_members(found))
    if rows:
        yield "\n".join([*rows, ""])


def _value(node: ast.Assign) -> str:
    return f"A `{ast.unparse(node.value).partition('(')[0]}`."


def _members(found: Definition) -> Iterator[str]:
    """An item of a list for each public field, property and method.

    Those of a base class follow, unless the page has an entry for the base class, or they return
    what only the package itself uses.
    """
    seen = set[str]()
    exported = set(_exports())
    for each in (found, *_bases(found)):
        node = each.node
        if isinstance(node, ast.ClassDef) and (each is found or node.name not in exported):
            internal = set() if each is found else _internal_members(each)
            items = {name: item for name, item in _own_members(node) if name not in seen | internal}
            seen |= set(items)
            yield from items.values()


def _internal_members(found: Definition) -> set[str]:
    """The methods that return an object of a class that `qns` does not export."""
    return {
        member.name
        for member in getattr(found.node, "body", [])
        if isinstance(member, Function) and member.returns is not None
        if _is_internal(found.module, ast.unparse(member.returns))
    }


def _own_members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Name and item of each public member that the body of the class defines."""
    for member, following in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(member, ast.AnnAssign):
            field, text = ast.unparse(member.target), _text(following)
            shown = f"{field}: {ast.unparse(member.annotation)}"
        elif isinstance(member, Function):
            field, text = member.name, ast.get_docstring(member) or ""
            decorators = {ast.unparse(each) for each in member.decorator_list}
            if any(each.endswith(".setter") for each in decorators):
                continue
            if "property" in decorators:
                shown = f"{field}: {ast.unparse(member.returns)}" if member.returns else field
            else:
                shown = f"{'await ' * isinstance(member, ast.AsyncFunctionDef)}{field}"
                shown += _signature(member)
        else:
            continue
        if not field.startswith("_"):
            yield field, f"- `{shown}`" + (f"\n{_indented(text)}" if text else "")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _constructor(found: Definition) -> str:
    """The parameters of the constructor, or nothing if programs do not call it.

    They do not if a parameter is of a class that `qns` does not export.
    """
    for each in (found, *_bases(found)):
        for member in getattr(each.node, "body", []):
            if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                if any(_is_internal(each.module, name) for name in _annotated(member)):
                    return ""
                return _signature(member).partition(" -> ")[0]
    return ""


def _annotated(function: ast.FunctionDef) -> set[str]:
    """The names in the annotations of the parameters."""
    return {inner.id for inner in ast.walk(function.args) if isinstance(inner, ast.Name)}


def _is_internal(module: str, name: str) -> bool:
    """True if the name is a class of this package that it does not export."""
    if name in _exports() or not _is_ours(module, name):
        return False
    return isinstance(_definition(module, name).node, ast.ClassDef)


def _signature(node: Function) -> str:
    """The parameters without `self`, and the result."""
    arguments = node.args
    for positional in (arguments.posonlyargs, arguments.args):
        if positional and positional[0].arg in ("self", "cls"):
            del positional[0]
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){result}"


if __name__ == "__main__":
    PAGE.write_text(api_page(), encoding="utf-8")
