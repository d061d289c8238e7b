"""Checks: the checks of `qns peer check`, which can be made before and while a peer runs."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from time import time
from typing import Final, NamedTuple

import aiohttp

from qns.edl.messages import Document, Envelope, FetchDocument
from qns.errors import FederationError, QnsError
from qns.federation.acceptance import Freshness, freshness
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation
from qns.federation.roots_xml import write_expires
from qns.peer.opening import DocumentPlan, Opening, ReadableStore, inspect, plan_document
from qns.runtime.addresses import Listen, peer_url
from qns.runtime.admin_socket import check_socket
from qns.runtime.configuration import Configuration
from qns.runtime.connections import ANSWER_WITHIN_S, Answer, ask_one, check_connections
from qns.runtime.evidence_checks import check_evidence
from qns.runtime.findings import Finding, Verdict
from qns.runtime.health import NEARLY_FULL_BYTES, free_bytes, moved_words
from qns.runtime.incidents import LOST_STORE
from qns.runtime.key_checks import check_call_key, check_seal, check_tls
from qns.runtime.peer_tls import PeerTls, local_pin
from qns.runtime.reasons import REMEDIES, ReasonKind
from qns.runtime.twin import find_twin
from qns.soap.peer_client import read_reply, write_call
from qns.store.connection import check_unused, refuse_emptied
from qns.store.memory import MemoryStore
from qns.store.reading import StoreReader
from qns.store.sqlite import LOW_WATER_BYTES

_EMPTY: Final = MemoryStore()
"""Stands for a store that will be created."""


async def check(configuration: Configuration, running_at: str = "") -> list[Finding]:
    """Checks a valid configuration, the store, the port and the other peers.

    `running_at` is the address of the peer that runs on this store, or "" if there is none.
    """
    me = configuration.organisation
    tls, tls_findings = check_tls(configuration)
    own = await _ask_own(configuration)
    is_running = isinstance(own, Answer) and own.organisation == me
    # A peer that moves still runs at its former address when its operator checks the new one.
    elsewhere = "" if is_running else running_at
    start = None if is_running or elsewhere else _start(configuration)
    url = elsewhere or configuration.url
    in_force = await _in_force(me, url, tls) if start is None else start.in_force
    return [
        Finding(Verdict.OK, "configuration", f"the peer of {configuration.organisation}"),
        *_document(configuration),
        *tls_findings,
        *check_seal(configuration),
        *check_call_key(configuration),
        *[each async for each in check_evidence(configuration)],
        *_store(configuration, start, in_force),
        *_running_elsewhere(configuration, elsewhere),
        *_port(configuration, own, in_force, is_running=is_running),
        *_admin(configuration, is_running=start is None),
        *await _twin(configuration, tls, is_running=start is None),
        *(
            await check_connections(_used(configuration, in_force), me, tls)
            if tls is not None or not configuration.has_tls
            else ()
        ),
    ]


async def _ask_own(configuration: Configuration) -> Answer | str:
    """Asks this peer, at the address for its users."""
    files = configuration.local_tls
    try:
        pin = local_pin(files) if files is not None else None
    except QnsError as error:
        return str(error)
    return await ask_one(configuration.local_url, pin=pin)


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
    yield from _expiry(configuration)
    yield Finding(Verdict.OK, "schema", f"{classes} classes")
    hosts = len(federation[configuration.organisation].hosts)
    if not hosts:
        yield Finding(
            Verdict.WARN,
            "schema",
            f"{configuration.organisation} hosts no class, so it can publish nothing",
            "qns federation host DOCUMENT NAME --hosts A,B makes the next version",
        )


def _expiry(configuration: Configuration) -> Iterator[Finding]:
    """Yields that the configured document has expired; a peer that has it in its store starts."""
    federation, grace_s = configuration.federation, configuration.tuning.document_grace_s
    if (
        federation.expires is not None
        and freshness(federation, time(), grace_s) is not Freshness.FRESH
    ):
        yield Finding(
            Verdict.WARN,
            "federation",
            f"version {federation.version} expired at {write_expires(federation.expires)}",
            REMEDIES[ReasonKind.DOCUMENT_EXPIRED].words,
        )


def _store(
    configuration: Configuration, start: _Start | None, in_force: bytes | None
) -> Iterator[Finding]:
    """Yields what is found of the store; `start` is None if the peer runs."""
    store = configuration.store
    folder = store.parent
    if not folder.is_dir():
        yield Finding(Verdict.FAIL, "store", f"there is no folder {folder}", "create it")
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            Verdict.FAIL, "store", f"{folder} is not writable", "let this user write there"
        )
    elif start is None and not store.exists():
        yield Finding(
            Verdict.FAIL,
            "store",
            f"a peer of this organisation runs at this address already, and not on {store}",
            "stop it, or configure another address or its store",
        )
    elif start is None:
        yield Finding(Verdict.OK, "store", f"{store} is in use by the running peer")
        if in_force is not None:
            yield from _plan(_planned(configuration, in_force))
    else:
        yield from _of_start(configuration, start)
    free = free_bytes(store)
    if free is None:
        return
    if free < LOW_WATER_BYTES:
        yield Finding(
            Verdict.FAIL,
            "disk",
            f"{free:,} bytes are free",
            f"free some space: with less than {LOW_WATER_BYTES:,} bytes nothing new is stored",
        )
    elif free < NEARLY_FULL_BYTES:
        yield Finding(
            Verdict.WARN,
            "disk",
            f"{free:,} bytes are free",
            f"free some space: with less than {LOW_WATER_BYTES:,} bytes nothing new is stored",
        )
    else:
        yield Finding(Verdict.OK, "disk", f"{free / 2**30:,.1f} GiB are free")


class _Start(NamedTuple):
    """What a start of the peer finds."""

    opening: Opening | QnsError
    """What is in the store, or the error with which the start fails."""
    has_run: bool = False
    """True if the lineage file knows earlier starts."""
    is_restored: bool = False
    """True if the start takes the store for an older copy."""

    @property
    def in_force(self) -> bytes | None:
        """The document that the store has; None if there is none or the start fails."""
        return self.opening.stored if isinstance(self.opening, Opening) else None


def _start(configuration: Configuration) -> _Start:
    store = configuration.store
    try:
        refuse_emptied(store, configuration.lineage)
        marks = configuration.lineage.read()
        if store.exists():
            check_unused(store)
            with StoreReader(store) as rows:
                opening = _inspected(configuration, rows)
        else:
            opening = _inspected(configuration, _EMPTY)
    except QnsError as error:
        return _Start(error)
    return _Start(opening, has_run=bool(marks), is_restored=opening.is_restored(marks))


def _of_start(configuration: Configuration, start: _Start) -> Iterator[Finding]:
    """Yields what a start of the peer finds in its store and does with its document."""
    store, opening = configuration.store, start.opening
    if isinstance(opening, FederationError):
        yield Finding(Verdict.FAIL, "federation", opening.problem, opening.remedy)
        return
    if isinstance(opening, QnsError):
        yield Finding(Verdict.FAIL, "store", f"{store} {opening.problem}", opening.remedy)
        return
    if store.exists() and not os.access(store, os.W_OK):
        yield Finding(
            Verdict.FAIL, "store", f"{store} is not writable", "let this user write the file"
        )
    elif opening.identity is not None and start.is_restored:
        yield Finding(
            Verdict.WARN,
            "store",
            f"{store} was restored from an older copy, or its lineage file is missing",
            "if that is intended, start the peer: it tells the others what it cannot send any more",
        )
    elif opening.identity is not None:
        yield Finding(Verdict.OK, "store", f"{store} can be opened")
    elif start.has_run:
        remedy = REMEDIES[ReasonKind.LOST_STORE].words
        yield Finding(Verdict.WARN, "store", LOST_STORE, remedy)
    else:
        yield Finding(Verdict.OK, "store", f"{store} will be created")
    yield from _plan(opening.plan)


def _used(configuration: Configuration, in_force: bytes | None) -> Federation:
    """Returns the document that the peer uses: a configured one that is older is not used."""
    if in_force is None or _planned(configuration, in_force).installs:
        return configuration.federation
    return read_federation(in_force)


def _inspected(configuration: Configuration, store: ReadableStore) -> Opening:
    return inspect(
        store,
        configuration.organisation,
        configuration.document,
        now=time(),
        anchor=configuration.anchor,
    )


def _planned(configuration: Configuration, in_force: bytes) -> DocumentPlan:
    document, anchor = configuration.document, configuration.anchor
    return plan_document(in_force, document, now=time(), anchor=anchor)


def _plan(plan: DocumentPlan) -> Iterator[Finding]:
    """Yields what becomes of the configured document."""
    refusal = plan.refusal
    if refusal is not None:
        place = f"{refusal.place}: " if refusal.place else ""
        yield Finding(Verdict.FAIL, "federation", f"{place}{refusal.problem}", refusal.remedy)
    elif plan.installs:
        yield Finding(Verdict.OK, "federation", "the peer puts it in force when it starts")
    elif plan.notice:
        yield Finding(
            Verdict.WARN, "federation", plan.notice, "replace the file by the document in force"
        )


def _running_elsewhere(configuration: Configuration, elsewhere: str) -> Iterator[Finding]:
    if elsewhere:
        me, url = configuration.organisation, configuration.url
        yield Finding(
            Verdict.WARN,
            "listen",
            f"{me} is running on {elsewhere}, and not on {url}",
            "restart it, so that it listens on the configured address",
        )


def _port(
    configuration: Configuration, own: Answer | str, in_force: bytes | None, *, is_running: bool
) -> Iterator[Finding]:
    listen = configuration.listen
    if is_running and isinstance(own, Answer):
        status = own.state.get("status")
        reasons = "; ".join(map(str, own.state.get("reasons", ())))
        words = f"{configuration.organisation} is running on {configuration.url}"
        if status == "ok":
            yield Finding(Verdict.OK, "listen", words)
        else:
            yield Finding(Verdict.WARN, "listen", f"{words} and is {status}", reasons)
        return
    addresses = {"listen": (listen, configuration.url)}
    if configuration.local is not None:
        addresses["local"] = (configuration.local, configuration.local_url)
    for key, (address, url) in addresses.items():
        problem = _bind_problem(address)
        if problem:
            yield Finding(
                Verdict.FAIL,
                key,
                f"{url}: {problem}",
                f"stop the program that uses the port, or set another one with {key}",
            )
        else:
            yield Finding(Verdict.OK, key, f"{url} is free")
    endpoint = configuration.federation[configuration.organisation].endpoint
    if not endpoint:
        yield Finding(
            Verdict.WARN,
            "listen",
            f"the federation document has no endpoint for {configuration.organisation}",
            "add one there: without it, other peers cannot call this peer",
        )
    used = _used(configuration, in_force)
    moved = moved_words(
        used, configuration.organisation, configuration.served, has_tls=configuration.has_tls
    )
    if moved:
        yield Finding(Verdict.WARN, "listen", moved, REMEDIES[ReasonKind.MOVED].words)


def _admin(configuration: Configuration, *, is_running: bool) -> Iterator[Finding]:
    """Yields why a start cannot open the admin port; a folder without a store is named before."""
    folder = configuration.store.parent
    is_named = configuration.admin.parent == folder and not os.access(folder, os.W_OK | os.X_OK)
    if is_running or is_named:
        return
    try:
        check_socket(configuration.admin)
    except QnsError as error:
        yield Finding(Verdict.FAIL, "admin", f"{error.place}: {error.problem}", error.remedy)


async def _twin(
    configuration: Configuration, tls: PeerTls | None, *, is_running: bool
) -> list[Finding]:
    cannot_ask = configuration.has_tls and tls is None
    twin = None if is_running or cannot_ask else await find_twin(configuration, tls)
    return [] if twin is None else [Finding(Verdict.FAIL, "listen", twin.problem, twin.remedy)]


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


async def _in_force(organisation: str, running: str, tls: PeerTls | None) -> bytes | None:
    """Returns the document in force at the peer that runs there; None if it does not answer."""
    request = Envelope(organisation, 0, (), FetchDocument())
    body, action = write_call(request)
    headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
    url = peer_url(running)
    try:
        pin = tls.pin(organisation) if tls is not None else None
    except FederationError:
        return None
    connector = aiohttp.TCPConnector(ssl=True if pin is None else pin.pinned)
    context = True if pin is None else pin.context
    timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
            session.post(url, data=body, headers=headers, ssl=context) as response,
        ):
            answer = read_reply(request, response.status, await response.read())
    except (aiohttp.ClientError, OSError, TimeoutError):
        return None
    document = None if isinstance(answer, str) else answer.body
    return document.xml if isinstance(document, Document) else None
