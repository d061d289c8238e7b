"""Diagnostics: what helps to explain the behaviour of a peer, without payloads and secrets.

Every value is chosen here by name; nothing is copied as a whole. Texts of other programs, such as
the reasons of faults, are included without what they quote.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from logging import getLevelName
from pathlib import Path
from time import time
from typing import Any, Final

from qns import __version__
from qns.errors import StoreFailed
from qns.federation.document import Federation
from qns.peer.status import PeerStatus
from qns.runtime.configuration import Configuration
from qns.runtime.log_reason import without_quotes
from qns.store.sqlite import SqliteStore

README: Final = """A report of a QNS peer, made by qns peer report.

It has versions, settings, health, metrics, counts, links, facts of the store and the newest log
lines. It has no event, no subscription's text, no value of either, no key and no environment.
It does name organisations, their addresses, paths of files, and ids of events and subscriptions.
"""
_LIBRARIES: Final = (
    *("aiohttp", "apsw", "cryptography", "httptools", "lark", "lxml", "numba", "numpy"),
    *("orjson", "prometheus-client", "pybase64", "rich", "spyne", "uvloop"),
)
_PAGES_PER_CHECK: Final = 256


def of_platform() -> dict[str, Any]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "qns": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "pid": os.getpid(),
        "user": os.geteuid(),
        "open_files_limit": [soft, hard],
        "peak_memory_kib": usage.ru_maxrss // (1 if sys.platform == "linux" else 1_024),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "time": time(),
    }


def of_configuration(configuration: Configuration) -> dict[str, Any]:
    return {
        "organisation": configuration.organisation,
        "federation": of_federation(configuration.federation),
        "store": str(configuration.store.absolute()),
        "listen": configuration.url,
        "local": configuration.local_url,
        "admin": str(configuration.admin.absolute()),
        "history": configuration.history,
        "merging": configuration.merging,
        "log_level": getLevelName(configuration.log_level),
        "log_format": configuration.log_format,
        "tuning": {name: str(value) for name, value in asdict(configuration.tuning).items()},
    }


def of_federation(federation: Federation) -> dict[str, Any]:
    return {
        "name": federation.name,
        "version": federation.version,
        "classes": len(federation.schema.classes),
        "organisations": {
            name: {
                "endpoint": each.endpoint,
                "hosts": len(each.hosts),
                "capability": each.capability,
                "incarnation": each.incarnation,
            }
            for name, each in federation.organisations.items()
        },
    }


def of_status(status: PeerStatus) -> dict[str, Any]:
    """Returns counts, streams and links."""
    return {
        "organisation": status.organisation,
        "epoch": status.epoch,
        "document": of_federation(status.federation),
        "subscriptions": status.subscriptions,
        "deliveries_waiting": status.deliveries_waiting,
        "events_kept": status.events_kept,
        "custody": status.custody,
        "dead_letters": status.dead_letters,
        "early_entries": status.early_entries,
        "external_elements": status.external_elements,
        "streams_to": [each._asdict() for each in status.outbound()],
        "streams_from": [each._asdict() for each in status.inbound()],
        "views": [{**each._asdict(), "state": each.state.value} for each in status.views()],
        "links": [
            {**each._asdict(), "problem": without_quotes(status.problem_with(each.other))}
            for each in status.links()
        ],
        "unreachable": list(status.unreachable),
    }


def of_store(store: SqliteStore, path: Path) -> dict[str, Any]:
    """Returns facts of the store; verifies the checksum of every page, a few at a time."""
    facts = store.facts()
    sizes = {}
    for end in ("", "-wal", ".lineage", ".draining"):
        file = path.with_name(path.name + end)
        if file.exists():
            found = file.stat()
            sizes[file.name] = {"bytes": found.st_size, "mode": f"{found.st_mode & 0o777:03o}"}
    integrity = "ok" if store.has_checksums else "not verified: the store has no checksums"
    try:
        for _ in range(0, int(facts["page_count"]) + _PAGES_PER_CHECK, _PAGES_PER_CHECK):
            store.check_next_pages(_PAGES_PER_CHECK)
    except StoreFailed as error:
        integrity = str(error)
    return {**facts, "files": sizes, "checksums": integrity}


def hidden(value: Any) -> Any:
    """Returns a value of JSON in which no text quotes another text."""
    if isinstance(value, str):
        return without_quotes(value)
    if isinstance(value, dict):
        return {key: hidden(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hidden(each) for each in value]
    return value


def as_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str).encode() + b"\n"


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
