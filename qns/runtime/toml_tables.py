"""TOML tables: reads files and checked values of a configuration; errors say what to write."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from qns.errors import DocumentError, NameNotKnown, QnsError, ValueRefused, show

_PLACE: Final = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)
_KINDS: Final = {
    str: ("a text", 'in quotes, such as "{}"'),
    bool: ("yes or no", "true or false, without quotes"),
    dict: ("a section", "a line [{}] above its keys"),
}


def content_of(path: Path, limit: int, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise QnsError(
            f"the {what} cannot be read: {error.strerror or error}",
            place=str(path),
            remedy="check the path; paths in a configuration are relative to its folder",
        ) from None
    if len(content) > limit:
        raise QnsError(f"the {what} is larger than {limit:,} bytes", place=str(path))
    return content


def parsed(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"byte {error.start + 1} is not UTF-8", remedy="save the file as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        problem, line, column = str(error), None, None
        if found := _PLACE.fullmatch(problem):
            problem, line, column = found[1], int(found[2]), int(found[3])
        refusal = DocumentError(
            f"this is not TOML: {problem}", remedy='write lines such as organisation = "INPS"'
        )
        raise (refusal if line is None else refusal.at_mark(line, column)) from None


def refuse_unknown(table: Mapping[str, Any], known: Iterable[str], kind: str) -> None:
    for key in table:
        if key not in known:
            raise NameNotKnown(kind, key, known)


def value_of(table: Mapping[str, Any], key: str, kind: type, example: str = "") -> Any:
    value = table.get(key)
    if value is not None and not isinstance(value, kind):
        name, remedy = _KINDS[kind]
        raise ValueRefused(
            f"{show(value)} is not {name}",
            place=key,
            remedy=f"write {remedy.format(example or key)}",
        )
    return value


def text_of(table: Mapping[str, Any], key: str, example: str, *, required: bool = False) -> str:
    text: str | None = value_of(table, key, str, example)
    if not text and (required or text is not None):
        problem = f"{key} is {'missing' if text is None else 'empty'}"
        raise ValueRefused(problem, remedy=f'write a line such as {key} = "{example}"')
    return text or ""


def section_of(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return value_of(table, key, dict) or {}


def choice_of(
    table: Mapping[str, Any], key: str, known: tuple[str, ...], default: str, kind: str = ""
) -> str:
    text = text_of(table, key, default) or default
    if text not in known:
        raise NameNotKnown(f"{kind} {key}".strip(), text, known)
    return text
