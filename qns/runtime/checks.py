"""Checks: what `qns peer check` looks at before a peer is started, or while it runs."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from time import perf_counter, time
from typing import Any, Final, NamedTuple

import aiohttp

from qns.errors import QnsError
from qns.federation.document import Organisation
from qns.runtime.addresses import Listen, health_url
from qns.runtime.configuration import Configuration
from qns.runtime.health import free_bytes
from qns.store.connection import open_copy
from qns.store.sqlite import LOW_WATER_BYTES

ANSWER_WITHIN_S: Final = 5.0
_CLOCK_S: Final = 2.0
"""A difference of clocks that is worth a word."""
_MOST_BYTES: Final = 100_000


class Verdict(Enum):
    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


class Finding(NamedTuple):
    verdict: Verdict
    what: str
    words: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What `GET /health` of a peer said."""

    state: dict[str, Any]
    seconds: float
    clock_ahead_s: float


async def check(configuration: Configuration) -> list[Finding]:
    """Of a configuration that could be read."""
    timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        others = [
            each
            for name, each in sorted(configuration.federation.organisations.items())
            if name != configuration.organisation
        ]
        own, *answers = await asyncio.gather(
            _health(session, configuration.listen.url),
            *(_health(session, each.endpoint) for each in others if each.endpoint),
        )
    is_running = isinstance(own, Answer) and _name(own) == configuration.organisation
    findings = [
        Finding(Verdict.OK, "configuration", f"the peer of {configuration.organisation}"),
        *_document(configuration),
        *_store(configuration.store, is_running=is_running),
        *_port(configuration, own, is_running=is_running),
    ]
    remaining = iter(answers)
    for each in others:
        findings += _other(each, next(remaining) if each.endpoint else "", configuration)
    return findings


# --- this peer ------------------------------------------------------------------------------------


def _document(configuration: Configuration) -> Iterator[Finding]:
    federation = configuration.federation
    members = len(federation.organisations)
    classes = len(federation.schema.classes)
    yield Finding(
        Verdict.OK,
        "federation",
        f"{federation.name}, version {federation.version}: {members} organisations",
    )
    yield Finding(Verdict.OK, "schema", f"{classes} classes")
    hosts = len(federation[configuration.organisation].hosts)
    if not hosts:
        yield Finding(
            Verdict.WARN,
            "schema",
            f"{configuration.organisation} hosts no class, so it can publish nothing",
            "qns federation DOCUMENT --host NAME --hosts A,B makes the next version",
        )


def _store(store: Path, *, is_running: bool) -> Iterator[Finding]:
    folder = store.parent
    if not folder.is_dir():
        yield Finding(Verdict.FAIL, "store", f"there is no folder {folder}", "make it")
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            Verdict.FAIL, "store", f"{folder} may not be written", "let this user write there"
        )
    elif is_running and not store.exists():
        yield Finding(
            Verdict.FAIL,
            "store",
            f"a peer of this organisation runs at this address already, and not on {store}",
            "stop it, or give another address or its store",
        )
    elif is_running:
        yield Finding(Verdict.OK, "store", f"{store} is in use by the running peer")
    elif not store.exists():
        yield Finding(Verdict.OK, "store", f"{store} will be made")
    else:
        yield _existing(store)
    free = free_bytes(store)
    if free is None:
        return
    if free < LOW_WATER_BYTES:
        yield Finding(
            Verdict.FAIL,
            "disk",
            f"{free:,} bytes are free",
            f"free some space: below {LOW_WATER_BYTES:,} nothing new is stored",
        )
    else:
        yield Finding(Verdict.OK, "disk", f"{free / 2**30:,.1f} GiB are free")


def _existing(store: Path) -> Finding:
    try:
        open_copy(store).close()
    except QnsError as error:
        return Finding(Verdict.FAIL, "store", f"{store} {error.problem}", error.remedy)
    if not os.access(store, os.W_OK):
        return Finding(
            Verdict.FAIL, "store", f"{store} may not be written", "let this user write the file"
        )
    return Finding(Verdict.OK, "store", f"{store} can be opened")


def _port(
    configuration: Configuration, own: Answer | str, *, is_running: bool
) -> Iterator[Finding]:
    listen = configuration.listen
    if is_running and isinstance(own, Answer):
        status = own.state.get("status")
        reasons = "; ".join(map(str, own.state.get("reasons", ())))
        words = f"{configuration.organisation} is running on {listen.url}"
        if status == "ok":
            yield Finding(Verdict.OK, "listen", words)
        else:
            yield Finding(Verdict.WARN, "listen", f"{words} and is {status}", reasons)
        return
    problem = _bind_problem(listen)
    if problem:
        yield Finding(
            Verdict.FAIL,
            "listen",
            f"{listen.url}: {problem}",
            "stop who uses the port, or give another one: listen in the configuration",
        )
    else:
        yield Finding(Verdict.OK, "listen", f"{listen.url} is free")
    endpoint = configuration.federation[configuration.organisation].endpoint
    if not endpoint:
        yield Finding(
            Verdict.WARN,
            "listen",
            f"the federation document has no endpoint for {configuration.organisation}",
            "others cannot call this peer: add one there",
        )


def _bind_problem(listen: Listen) -> str:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(listen)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return "the port is in use by another program"
            return error.strerror or str(error)
    return ""


# --- other peers ----------------------------------------------------------------------------------


async def _health(session: aiohttp.ClientSession, endpoint: str) -> Answer | str:
    """The answer, or why there is none."""
    started, clock = perf_counter(), time()
    try:
        async with session.get(health_url(endpoint), allow_redirects=False) as response:
            state = await _state(response)
    except TimeoutError:
        return f"no answer within {ANSWER_WITHIN_S:g} s"
    except (aiohttp.ClientError, OSError):
        return "nobody answers"
    if not isinstance(state, dict) or "organisation" not in state:
        return "answers, but is no peer of QNS"
    seconds = perf_counter() - started
    told = state.get("time")
    theirs = told if isinstance(told, int | float) else clock
    return Answer(state, seconds, theirs - (clock + seconds / 2))


async def _state(response: aiohttp.ClientResponse) -> Any:
    content = b""
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > _MOST_BYTES:
            return None
    try:
        return json.loads(content)
    except ValueError:
        return None


def _other(
    other: Organisation, answer: Answer | str, configuration: Configuration
) -> Iterator[Finding]:
    name = other.name
    if not other.endpoint:
        yield Finding(
            Verdict.WARN,
            name,
            "the federation document has no endpoint for it",
            "add one: until then nothing reaches it",
        )
        return
    if isinstance(answer, str):
        yield Finding(
            Verdict.WARN, name, f"{other.endpoint}: {answer}", "start it, or check its endpoint"
        )
        return
    if _name(answer) != name:
        yield Finding(
            Verdict.FAIL,
            name,
            f"{other.endpoint} is the peer of {_name(answer)}",
            "correct the endpoint in the federation document",
        )
        return
    yield Finding(Verdict.OK, name, f"{other.endpoint} answers in {answer.seconds * 1000:.0f} ms")
    ahead = answer.clock_ahead_s
    if abs(ahead) > max(_CLOCK_S, answer.seconds):
        yield Finding(
            Verdict.WARN,
            name,
            f"its clock is {abs(ahead):.1f} s {'ahead' if ahead > 0 else 'behind'}",
            "set the clocks by NTP: times of publication are compared across organisations",
        )
    else:
        yield Finding(Verdict.OK, name, f"its clock differs by {abs(ahead) * 1000:.0f} ms")
    version = answer.state.get("document")
    if isinstance(version, int) and version != configuration.federation.version:
        yield Finding(
            Verdict.WARN,
            name,
            f"it has version {version} of the federation document, not "
            f"{configuration.federation.version}",
            "the newer one is fetched when the peers talk",
        )


def _name(answer: Answer) -> str:
    return str(answer.state.get("organisation"))
