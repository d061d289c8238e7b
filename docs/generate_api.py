"""Writes docs/api.md: the names that `qns` exports, from their docstrings and signatures.

python docs/generate_api.py

It reads the source without importing it, so the page does not depend on the version of Python.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

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

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign


def api_page() -> str:
    """Returns the page as Markdown."""
    chapters: dict[str, list[str]] = {title: [] for title in _CHAPTERS.values()}
    for name, module in sorted(_exports().items(), key=lambda item: item[0].lower()):
        node, docstring = _definition(module, name)
        is_error = isinstance(node, ast.ClassDef) and _is_error(node)
        room = "qns.errors" if is_error else ".".join(module.split(".")[:2])
        chapters[_CHAPTERS[room]] += _entry(name, node, docstring)
    parts = [_HEAD]
    for title, entries in chapters.items():
        parts += [f"## {title}\n", *entries]
    return "\n".join(parts)


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


def _definition(module: str, name: str) -> tuple[Definition, str]:
    """The definition of a name and its docstring. Follows an import under another name."""
    tree = _tree(module)
    for node, following in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node, ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node, _text(following)
    for inner in ast.walk(tree):
        if isinstance(inner, ast.ImportFrom):
            for alias in inner.names:
                if name == (alias.asname or alias.name):
                    return _definition(inner.module or "", alias.name)
    raise LookupError(f"{module} has no {name}")


def _text(node: ast.stmt) -> str:
    """The text of a string that stands alone, as the docstring of what precedes it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return inspect.cleandoc(str(node.value.value))
    return ""


def _is_error(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base) for base in node.bases}
    return bool(bases & {"Exception", "QnsError", "Busy"})


def _entry(name: str, node: Definition, docstring: str) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        yield f"### `{name}`\n"
        yield f"{docstring or _value(node)}\n"
        return
    if isinstance(node, ast.ClassDef) and _is_error(node):
        yield f"### `{name}({', '.join(map(ast.unparse, node.bases))})`\n"
    else:
        yield f"### `{name}{_signature(node)}`\n"
    if docstring:
        yield f"{docstring}\n"
    if isinstance(node, ast.ClassDef):
        rows = list(_members(node))
        if rows:
            yield "\n".join([*rows, ""])


def _value(node: ast.Assign) -> str:
    return f"A `{ast.unparse(node.value).partition('(')[0]}`."


def _members(node: ast.ClassDef) -> Iterator[str]:
    """An item of a list for each public field, property and method."""
    for member, following in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(member, ast.AnnAssign):
            field, text = ast.unparse(member.target), _text(following)
            shown = f"{field}: {ast.unparse(member.annotation)}"
        elif isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
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
            yield f"- `{shown}`" + (f"\n{_indented(text)}" if text else "")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _signature(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The parameters without `self`, and the result; of a class those of its constructor."""
    if isinstance(node, ast.ClassDef):
        made = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"]
        return _signature(made[0]).partition(" -> ")[0] if made else ""
    arguments = node.args
    for positional in (arguments.posonlyargs, arguments.args):
        if positional and positional[0].arg in ("self", "cls"):
            del positional[0]
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){result}"


if __name__ == "__main__":
    PAGE.write_text(api_page(), encoding="utf-8")
