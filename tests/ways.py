"""Traces an event and a subscription through two real peers and lists the files that they cross.

A file is *crossed* if one of its functions receives the event (or the subscription) as an argument
and passes it to a function of another file. "The event" is anything that contains the whole event:
bytes, objects, messages or batches of them. A file that gets only its id or one of its values is
not crossed, and neither is the last file of the way.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp

import qns
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import AGENCIES
from qns.federation.document import Federation
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.iil.requests import Answer, Deliveries, Publish, PullDeliveries, Request, Subscribe
from qns.runtime.configuration import read_configuration
from qns.runtime.process import Running
from qns.soap.local_client import read_local, write_local

from .runtime.peers import configure, free_ports

ROOT = Path(qns.__file__).parent
FIRST, SECOND = "FIRST-MARK", "SECOND-MARK"
"""The event and the subscription contain both texts, each in another place."""
QUIET = """
[tuning]
gossip_every_s = 3600
acknowledge_after_s = 3600
resend_after_s = 3600
"""
_DEEPEST = 8
_MOST_PARTS = 5_000
_COMPONENTS = [
    "Server",
    "HttpServer",
    "Endpoint",
    "Traffic",
    "Transport",
    "Driver",
    "PostedCall",
    "Gateway",
    "Peer",
    "PeerStatus",
    "Turn",
    "EventLog",
    "Federation",
    "Schema",
    "InternalInterfaceLayer",
    "LocalDispatcher",
    "Stability",
    "ExternalDiffusionLayer",
    "Consumer",
    "Producer",
    "Forwarder",
    "Merger",
    "Link",
    "Intake",
    "Dialogue",
    "Requests",
    "OutboundStream",
    "InboundStream",
    "ExternalMergeTable",
    "MergeSubscriptionsTable",
    "View",
    "ProducerViews",
    "Custody",
    "Publications",
    "Outcomes",
]
"""Components keep events in their state; an argument that is one does not count as the event."""


@dataclass
class Way:
    """The files and functions that one trace has recorded."""

    files: list[str] = field(default_factory=list)
    """Every file with a function that ran, in the order of the first call."""
    functions: list[tuple[str, str]] = field(default_factory=list)
    """(file, qualified name of the function), in the order of the first call."""
    passed_to: dict[str, set[str]] = field(default_factory=dict)
    """File -> the files to which it passed the event or the subscription."""
    is_over: bool = False
    """True if the trace has reached its last file."""

    @property
    def crossed(self) -> list[str]:
        return [file for file in self.files if file in self.passed_to]


def contains_both(value: object) -> bool:
    """True if both marks are somewhere in the value."""
    found: set[str] = set()
    _search(value, found, _DEEPEST, [_MOST_PARTS])
    return len(found) == 2


def _search(value: object, found: set[str], depth: int, budget: list[int]) -> None:
    budget[0] -= 1
    if depth < 0 or budget[0] < 0 or len(found) == 2:
        return
    if isinstance(value, str):
        found.update(mark for mark in (FIRST, SECOND) if mark in value)
    elif isinstance(value, bytes | bytearray | memoryview):
        found.update(mark for mark in (FIRST, SECOND) if mark.encode() in bytes(value))
    elif isinstance(value, tuple | list | set | frozenset):
        for part in list(value):
            _search(part, found, depth - 1, budget)
    elif isinstance(value, Mapping):
        for pair in list(value.items()):
            _search(pair, found, depth - 1, budget)
    elif is_dataclass(value) and type(value).__name__ not in _COMPONENTS:
        for each in fields(value):
            _search(getattr(value, each.name, None), found, depth - 1, budget)


@contextmanager
def traced(*, until: str = "") -> Iterator[Way]:
    """Traces the block, or only until the event is passed to the file `until`."""
    way, seen = Way(), set[tuple[str, str]]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        file = _file(frame)
        if event != "call" or file is None or way.is_over:
            return
        function = (file, frame.f_code.co_qualname)
        if function not in seen:
            seen.add(function)
            way.functions.append(function)
            if file not in way.files:
                way.files.append(file)
        caller = frame.f_back
        while caller is not None and _file(caller) is None:
            caller = caller.f_back
        origin = _file(caller) if caller is not None else None
        if origin is not None and origin != file and _carries(frame):
            way.passed_to.setdefault(origin, set()).add(file)
            way.is_over = file == until

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield way
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _file(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else None


def _carries(frame: FrameType) -> bool:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return any(contains_both(frame.f_locals.get(name)) for name in names if name != "self")


@dataclass
class Pair:
    """Two peers, INPS and CoC, in one process; each has its own HTTP server."""

    federation: Federation
    session: aiohttp.ClientSession

    async def post(self, name: str, body: bytes, action: str) -> tuple[int, bytes]:
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action}
        url = f"{self.federation[name].endpoint}local"
        async with self.session.post(url, data=body, headers=headers) as answer:
            return answer.status, await answer.read()

    async def ask(self, name: str, request: Request, *, wait_s: float = 0.0) -> Answer:
        status, body = await self.post(name, *_written(request, wait_s))
        return read_local(request, status, body)


def _written(request: Request, wait_s: float = 0.0) -> tuple[bytes, str]:
    schema = AGENCIES if isinstance(request, Publish) else None
    return write_local(request, wait_s=wait_s, schema=schema)


def trace(folder: Path) -> tuple[Way, Way]:
    """Returns the way of an event (publish to pull) and of a subscription (to changeSub)."""
    return asyncio.run(_trace(folder))


async def _trace(folder: Path) -> tuple[Way, Way]:
    names = ("INPS", "CoC")
    organisations = {
        name: replace(AGENCIES_FEDERATION[name], endpoint=f"http://127.0.0.1:{port}/")
        for name, port in zip(names, free_ports(2), strict=True)
    }
    federation = replace(AGENCIES_FEDERATION, organisations=organisations)
    running = []
    async with aiohttp.ClientSession() as session:
        for name in names:
            configuration = read_configuration(configure(folder, federation, name, QUIET))
            listening = socket.socket()
            listening.bind(configuration.listen)
            listening.setblocking(False)
            endpoint = federation[name].endpoint
            running.append(await Running.start(configuration, listening, endpoint))
        pair = Pair(federation, session)
        try:
            return await _follow(pair)
        finally:
            for each in running:
                await each.stop()


async def _follow(pair: Pair) -> tuple[Way, Way]:
    await _subscribe_until_stable(pair, "warm", _subscription("warm", "low"))
    await pair.ask("INPS", _event("warm"))
    pull = PullDeliveries("user", "warm")
    assert isinstance(await pair.ask("CoC", pull, wait_s=5.0), Deliveries)
    body = _written(_subscription(FIRST, SECOND))
    with traced(until="runtime/transport.py") as subscription:
        await pair.post("CoC", *body)
        await asyncio.sleep(0.5)
    await _subscribe_until_stable(pair, FIRST, _subscription(FIRST, SECOND))
    published, pulled = _written(_event(FIRST)), _written(PullDeliveries("user", FIRST), 5.0)
    with traced() as event:
        await pair.post("INPS", *published)
        status, answer = await pair.post("CoC", *pulled)
    found = read_local(PullDeliveries("user", FIRST), status, answer)
    assert isinstance(found, Deliveries)
    assert [each.event for each in found.deliveries] == [FIRST]
    return event, subscription


def _subscription(id: str, value: str) -> Subscribe:
    text = f'Enterprise/Holder where Name != "{id}" and Address != "not {value}"'
    return Subscribe("user", text, id=id)


def _event(id: str) -> Publish:
    fields_: dict[str, Any] = {
        "id": id,
        "class": "Enterprise/Holder",
        "source": "INPS",
        "data": {"Name": "M. Mecalla", "Address": SECOND if id == FIRST else "Roma"},
        "quality": {"Name.Accuracy": "low"},
    }
    return Publish(EventReader(AGENCIES).from_fields(fields_))


async def _subscribe_until_stable(pair: Pair, id: str, request: Subscribe) -> None:
    """Repeats the subscribe request until the subscription is stable at the other peer."""
    for _ in range(200):
        answer = await pair.ask("CoC", request)
        if not getattr(answer, "pending", ("",)):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{id} is not stable")


Write = Callable[[str], None]


def show(name: str, way: Way, write: Write) -> None:
    """Writes the crossed files of a way, one on each line."""
    write(f"{name}: crosses {len(way.crossed)} files, touches {len(way.files)}")
    for file in way.crossed:
        write(f"  {file} -> {', '.join(sorted(way.passed_to[file]))}")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for title, found in zip(("event", "subscription"), trace(Path(scratch)), strict=True):
            show(title, found, print)
