"""Configuration: the TOML file of one peer, read and checked before anything starts.

Every error names the key and says what to write instead.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import inf, isnan
from pathlib import Path
from typing import Any, Final

from qns.errors import DocumentError, FederationError, NameNotKnown, QnsError, ValueRefused, show
from qns.federation.document import Federation
from qns.federation.document_xml import MAX_FEDERATION_BYTES, read_federation
from qns.runtime.addresses import Listen, checked_endpoint, checked_listen, listen_of
from qns.runtime.logs import FORMATS
from qns.tuning import Tuning

LEVELS: Final = ("debug", "info", "warning", "error")

_KEYS: Final = ("organisation", "federation", "store", "listen", "history", "log", "tuning")
_LOG_KEYS: Final = ("level", "format")
_MAX_BYTES: Final = 1_000_000
_LARGEST: Final = {"notifications_per_call": 500, "bytes_per_call": 1_000_000}
"""What others can read, of the port Peer's bounds."""
_PLACE: Final = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)
_KINDS: Final = {
    str: ("a text", 'in quotes, such as "{}"'),
    bool: ("yes or no", "true or false, without quotes"),
    dict: ("a section", "a line [{}] above its keys"),
}


@dataclass(frozen=True, slots=True)
class Configuration:
    organisation: str
    federation: Federation
    document: bytes
    """The federation document, as it is in its file."""
    store: Path
    listen: Listen
    history: bool = False
    """Keep the record that `qns verify` judges."""
    log_level: int = logging.INFO
    log_format: str = FORMATS[0]
    tuning: Tuning = field(default_factory=Tuning)

    @property
    def lineage(self) -> Path:
        """Beside the store, but not part of a backup."""
        return self.store.with_name(f"{self.store.name}.lineage")


def read_configuration(path: Path) -> Configuration:
    try:
        return _configuration(_parsed(_content(path, _MAX_BYTES, "configuration")), path.parent)
    except QnsError as error:
        raise error.at(str(path)) from None


def _configuration(table: dict[str, Any], folder: Path) -> Configuration:
    _refuse_unknown(table, _KEYS, "key")
    organisation = _text(table, "organisation", "INPS", required=True)
    file = folder / _text(table, "federation", "federation.xml", required=True)
    document = _content(file, MAX_FEDERATION_BYTES, "federation document")
    try:
        federation = read_federation(document)
    except QnsError as error:
        raise error.at(str(file)) from None
    if organisation not in federation:
        raise NameNotKnown(
            "organisation", organisation, federation.organisations, place="organisation"
        )
    log = _section(table, "log")
    _refuse_unknown(log, _LOG_KEYS, "key")
    return Configuration(
        organisation,
        federation,
        document,
        folder / (_text(table, "store", "inps.db") or f"{organisation}.db"),
        _listen(table, federation, organisation),
        _value(table, "history", bool) or False,
        getattr(logging, _choice(log, "level", LEVELS, "info").upper()),
        _choice(log, "format", FORMATS, FORMATS[0]),
        _tuning(_section(table, "tuning")),
    )


# --- the federation document and the address ------------------------------------------------------


def _listen(table: Mapping[str, Any], federation: Federation, organisation: str) -> Listen:
    for name, other in federation.organisations.items():
        if other.endpoint and name != organisation:
            _at_endpoint_of(name, other.endpoint)
    text = _text(table, "listen", "127.0.0.1:8701")
    if text:
        try:
            return checked_listen(text)
        except QnsError as error:
            raise error.at("listen") from None
    endpoint = federation[organisation].endpoint
    if not endpoint:
        raise FederationError(
            f"the federation document has no endpoint for {organisation}",
            place="listen",
            remedy='add one there, or write listen = "127.0.0.1:8701" here',
        )
    return _at_endpoint_of(organisation, endpoint)


def _at_endpoint_of(name: str, endpoint: str) -> Listen:
    try:
        checked_endpoint(endpoint)
        return listen_of(endpoint)
    except QnsError as error:
        raise error.at(f"federation: {name}") from None


# --- tuning ---------------------------------------------------------------------------------------


def _tuning(section: Mapping[str, Any]) -> Tuning:
    defaults = Tuning()
    known = {each.name: getattr(defaults, each.name) for each in fields(Tuning)}
    _refuse_unknown(section, known, "tuning value")
    given: dict[str, Any] = {
        name: _number(name, value, known[name]) for name, value in section.items()
    }
    tuning = replace(defaults, **given)
    if tuning.longest_pause_s < tuning.first_pause_s:
        raise ValueRefused(
            f"longest_pause_s is {tuning.longest_pause_s:g}, first_pause_s is "
            f"{tuning.first_pause_s:g}",
            place="tuning",
            remedy="pauses grow from the first to the longest",
        )
    return tuning


def _number(name: str, value: object, default: float) -> float:
    place = f"tuning: {name}"
    whole = isinstance(default, int)
    fits = isinstance(value, int) if whole else isinstance(value, int | float)
    if not fits or isinstance(value, bool):
        kind = "a whole number" if whole else "a number"
        raise ValueRefused(
            f"{show(value)} is not {kind}", place=place, remedy=f"the default is {default}"
        )
    assert isinstance(value, int | float)
    if isnan(value) or value <= 0:
        raise ValueRefused(
            f"{value} is not more than 0", place=place, remedy=f"the default is {default}"
        )
    if value > _LARGEST.get(name, inf):
        raise ValueRefused(
            f"{value:,} is too much for one message",
            place=place,
            remedy=f"at most {_LARGEST[name]:,}; the default is {default:,}",
        )
    return value


# --- reading --------------------------------------------------------------------------------------


def _content(path: Path, limit: int, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise QnsError(
            f"the {what} cannot be read: {error.strerror or error}",
            place=str(path),
            remedy="check the path; those in a configuration are relative to its folder",
        ) from None
    if len(content) > limit:
        raise QnsError(f"the {what} is larger than {limit:,} bytes", place=str(path))
    return content


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"byte {error.start + 1} is not UTF-8", remedy="save the file as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        told = _PLACE.fullmatch(str(error))
        problem = DocumentError(
            f"this is not TOML: {told[1] if told else error}",
            remedy='write lines such as organisation = "INPS"',
        )
        raise (problem.at_mark(int(told[2]), int(told[3])) if told else problem) from None


def _refuse_unknown(table: Mapping[str, Any], known: Iterable[str], kind: str) -> None:
    for key in table:
        if key not in known:
            raise NameNotKnown(kind, key, known)


def _value(table: Mapping[str, Any], key: str, kind: type, example: str = "") -> Any:
    value = table.get(key)
    if value is not None and not isinstance(value, kind):
        name, remedy = _KINDS[kind]
        raise ValueRefused(
            f"{show(value)} is not {name}",
            place=key,
            remedy=f"write {remedy.format(example or key)}",
        )
    return value


def _text(table: Mapping[str, Any], key: str, example: str, *, required: bool = False) -> str:
    text: str | None = _value(table, key, str, example)
    if not text and (required or text is not None):
        problem = f"{key} is {'missing' if text is None else 'empty'}"
        raise ValueRefused(problem, remedy=f'write a line such as {key} = "{example}"')
    return text or ""


def _section(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return _value(table, key, dict) or {}


def _choice(table: Mapping[str, Any], key: str, known: tuple[str, ...], default: str) -> str:
    text = _text(table, key, default) or default
    if text not in known:
        raise NameNotKnown(f"log {key}", text, known)
    return text
