"""Configuration: reads and checks the TOML file of a peer before anything starts.

Every error names the key and what to write instead.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import inf, isnan
from pathlib import Path
from typing import Any, Final

from qns.errors import FederationError, NameNotKnown, QnsError, ValueRefused, show
from qns.federation.document import Federation
from qns.federation.document_xml import MAX_FEDERATION_BYTES
from qns.federation.roots import Anchor
from qns.federation.roots_xml import MAX_ANCHOR_BYTES, read_anchor
from qns.peer.tuning import Tuning
from qns.runtime.addresses import Listen, checked_listen, listen_of, serves
from qns.runtime.documents import read_document
from qns.runtime.evidence_settings import SECTION as EVIDENCE
from qns.runtime.evidence_settings import EvidenceSettings
from qns.runtime.evidence_settings import read_settings as read_evidence_settings
from qns.runtime.key_files import KeyFiles
from qns.runtime.logs import FORMATS
from qns.runtime.toml_tables import (
    choice_of,
    content_of,
    parsed,
    refuse_unknown,
    section_of,
    text_of,
    value_of,
)
from qns.runtime.ws_security import SECTION as WS_SECURITY
from qns.runtime.ws_security import WsSecuritySettings, read_settings
from qns.store.lineage import FileLineage, default_path

MERGING: Final = ("containment", "exact")
LEVELS: Final = ("debug", "info", "warning", "error")

_KEYS: Final = (
    *("organisation", "federation", "anchor", "store", "lineage", "listen", "admin", "history"),
    *("merging", "log", "tuning", "tls", "local", "local_tls", "seal", WS_SECURITY, EVIDENCE),
)
_FILE_KEYS: Final = ("certificate", "key")
_LOCAL: Final = "127.0.0.1:8711"
_LOG_KEYS: Final = ("level", "format")
_MAX_BYTES: Final = 1_000_000
_LARGEST: Final = {"notifications_per_call": 500, "bytes_per_call": 1_000_000}
"""The largest values with which messages stay within the bounds of the port Peer."""
_MOST_SOCKET_PATH_BYTES: Final = 107 if sys.platform == "linux" else 103
"""The operating system stores the path of a socket in a field of 108 or 104 bytes, with a NUL."""


@dataclass(frozen=True, slots=True)
class Configuration:
    organisation: str
    federation: Federation
    document: bytes
    """The exact bytes of the federation document."""
    store: Path
    lineage_file: Path
    """The path of the lineage file, which is not part of a backup."""
    listen: Listen
    admin: Path
    """The path of the socket on which the peer takes commands of its operator."""
    history: bool = False
    """True if the peer records the history that `qns verify` judges."""
    merging: str = MERGING[0]
    """How the views for producers are merged: by containment, or beyond it."""
    log_level: int = logging.INFO
    log_format: str = FORMATS[0]
    tuning: Tuning = field(default_factory=Tuning)
    anchor: Anchor | None = None
    """From here on the peer trusts signed documents; without it, it takes unsigned ones too."""
    tls: KeyFiles | None = None
    """The key and the certificate for other peers; None if this peer uses only loopback."""
    local: Listen | None = None
    """Where the port Local, health and metrics are served, if not at `listen`: with TLS."""
    local_tls: KeyFiles | None = None
    """The key and the certificate for users and programs; None for plain HTTP on loopback."""
    seal: KeyFiles | None = None
    """The key and the certificate of the seal; None if the document names none."""
    ws_security: WsSecuritySettings | None = None
    """Which messages are signed one by one; None if signatures of messages are not understood."""
    evidence: EvidenceSettings | None = None
    """How long the evidence of accepted events is kept; None if none is kept."""

    @property
    def has_tls(self) -> bool:
        return self.tls is not None

    @property
    def url(self) -> str:
        """The URL on which the peer listens for other peers."""
        return self.listen.tls_url if self.has_tls else self.listen.url

    @property
    def local_url(self) -> str:
        """The URL on which the peer listens for users and programs of its organisation."""
        if self.local is None:
            return self.listen.url
        return self.local.tls_url if self.local_tls is not None else self.local.url

    @property
    def served(self) -> Listen | None:
        """Where others call the peer directly; None if its endpoint is elsewhere, as of a proxy."""
        endpoint = self.federation[self.organisation].endpoint
        is_direct = bool(endpoint) and serves(self.listen, endpoint, has_tls=self.has_tls)
        return self.listen if is_direct else None

    @property
    def lineage(self) -> FileLineage:
        """The lineage of the store, with a second file beside the store."""
        beside = self.store.with_name(f"{self.store.name}.lineage")
        return FileLineage(self.lineage_file, beside)

    @property
    def drain(self) -> Path:
        """The path of the file that exists while the peer drains."""
        return self.store.with_name(f"{self.store.name}.draining")


def read_configuration(path: Path) -> Configuration:
    try:
        return _configuration(parsed(content_of(path, _MAX_BYTES, "configuration")), path.parent)
    except QnsError as error:
        raise error.at(str(path)) from None


def read_admin_path(path: Path) -> Path:
    """Returns the socket of the admin port, without checking the rest of the configuration.

    An operator can thereby reach a running peer whose files have become invalid.
    """
    try:
        table = parsed(content_of(path, _MAX_BYTES, "configuration"))
        return _admin(table, path.parent, _store(table, path.parent))
    except QnsError as error:
        raise error.at(str(path)) from None


def _configuration(table: dict[str, Any], folder: Path) -> Configuration:
    refuse_unknown(table, _KEYS, "key")
    organisation = text_of(table, "organisation", "INPS", required=True)
    file = folder / text_of(table, "federation", "federation.xml", required=True)
    document = content_of(file, MAX_FEDERATION_BYTES, "federation document")
    tls = _key_files(table, "tls", folder)
    try:
        federation = read_document(document, has_tls=tls is not None)
    except QnsError as error:
        raise error.at(str(file)) from None
    if organisation not in federation:
        raise NameNotKnown(
            "organisation", organisation, federation.organisations, place="organisation"
        )
    log = section_of(table, "log")
    refuse_unknown(log, _LOG_KEYS, "key")
    store = _store(table, folder)
    return Configuration(
        organisation,
        federation,
        document,
        store,
        _lineage(table, folder, store),
        _listen(table, federation, organisation, has_tls=tls is not None),
        _admin(table, folder, store),
        value_of(table, "history", bool) or False,
        choice_of(table, "merging", MERGING, MERGING[0]),
        getattr(logging, choice_of(log, "level", LEVELS, "info", "log").upper()),
        choice_of(log, "format", FORMATS, FORMATS[0], "log"),
        _tuning(section_of(table, "tuning")),
        _anchor(table, folder, federation),
        tls,
        *_local(table, folder, has_tls=tls is not None),
        _key_files(table, "seal", folder),
        read_settings(value_of(table, WS_SECURITY, dict), folder, federation),
        read_evidence_settings(value_of(table, EVIDENCE, dict), folder),
    )


# --- files ----------------------------------------------------------------------------------------


def _store(table: Mapping[str, Any], folder: Path) -> Path:
    organisation = text_of(table, "organisation", "INPS", required=True)
    store = folder / (text_of(table, "store", "inps.db") or f"{organisation}.db")
    if store.is_dir():
        raise ValueRefused(
            f"{store} is a folder",
            place="store",
            remedy=f"name a file in it, such as {store / f'{organisation}.db'}",
        )
    return store


def _lineage(table: Mapping[str, Any], folder: Path, store: Path) -> Path:
    given = text_of(table, "lineage", "/var/lib/qns-lineage/inps.lineage")
    return folder / given if given else default_path(store)


def _admin(table: Mapping[str, Any], folder: Path, store: Path) -> Path:
    given = text_of(table, "admin", "/run/qns/inps.admin")
    path = folder / given if given else store.with_name(f"{store.name}.admin")
    length = len(os.fsencode(path))
    if length > _MOST_SOCKET_PATH_BYTES:
        raise ValueRefused(
            f"the path of the admin port has {length} bytes, and a socket can have at most "
            f"{_MOST_SOCKET_PATH_BYTES}: {path}",
            place="admin",
            remedy='write a shorter path, such as admin = "/run/qns/inps.admin"',
        )
    return path


# --- the federation document and the address ------------------------------------------------------


def _anchor(table: Mapping[str, Any], folder: Path, federation: Federation) -> Anchor | None:
    given = text_of(table, "anchor", f"{federation.name}.anchor")
    if not given:
        return None
    file = folder / given
    try:
        return read_anchor(content_of(file, MAX_ANCHOR_BYTES, "anchor"))
    except QnsError as error:
        raise (error if error.place == str(file) else error.at(str(file))).at("anchor") from None


def _key_files(table: Mapping[str, Any], name: str, folder: Path) -> KeyFiles | None:
    if name not in table:
        return None
    section = section_of(table, name)
    refuse_unknown(section, _FILE_KEYS, f"key of [{name}]")
    try:
        kind = "seal" if name == "seal" else "tls"
        certificate = text_of(section, "certificate", f"INPS.{kind}.pem", required=True)
        key = text_of(section, "key", f"INPS.{kind}.key", required=True)
    except QnsError as error:
        raise error.at(name) from None
    return KeyFiles(folder / certificate, folder / key)


def _local(
    table: Mapping[str, Any], folder: Path, *, has_tls: bool
) -> tuple[Listen | None, KeyFiles | None]:
    """Returns where users and programs are served, and with which certificate."""
    text, tls = text_of(table, "local", _LOCAL), _key_files(table, "local_tls", folder)
    if not has_tls:
        for key in ("local", "local_tls"):
            if key in table:
                raise ValueRefused(
                    f"{key} needs a section [tls]",
                    place=key,
                    remedy="without one, other peers and users are served at one address, listen",
                )
        return None, None
    try:
        return checked_listen(text or _LOCAL, has_tls=tls is not None), tls
    except QnsError as error:
        remedy = "users are served on loopback, or over TLS: add a section [local_tls]"
        raise ValueRefused(error.problem, place="local", remedy=remedy) from None


def _listen(
    table: Mapping[str, Any], federation: Federation, organisation: str, *, has_tls: bool
) -> Listen:
    text = text_of(table, "listen", "127.0.0.1:8701")
    if text:
        try:
            return checked_listen(text, has_tls=has_tls)
        except QnsError as error:
            raise error.at("listen") from None
    endpoint = federation[organisation].endpoint
    if not endpoint:
        raise FederationError(
            f"the federation document has no endpoint for {organisation}",
            place="listen",
            remedy='add one there, or write listen = "127.0.0.1:8701" here',
        )
    return listen_of(endpoint, has_tls=has_tls)


# --- tuning ---------------------------------------------------------------------------------------


def _tuning(section: Mapping[str, Any]) -> Tuning:
    defaults = Tuning()
    known = {each.name: getattr(defaults, each.name) for each in fields(Tuning)}
    refuse_unknown(section, known, "tuning value")
    given: dict[str, Any] = {
        name: _number(name, value, known[name]) for name, value in section.items()
    }
    tuning = replace(defaults, **given)
    if tuning.longest_pause_s < tuning.first_pause_s:
        raise ValueRefused(
            f"longest_pause_s is {tuning.longest_pause_s:g}, less than first_pause_s, which is "
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
            remedy=f"use at most {_LARGEST[name]:,}; the default is {default:,}",
        )
    return value
