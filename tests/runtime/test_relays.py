"""Three peers over HTTP: what one of them cannot send to another goes through the third."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path

from qns.iil.requests import Deliveries, ListSubscriptions, PullDeliveries, Subscribe, Subscriptions
from qns.runtime.configuration import read_configuration
from qns.runtime.process import Running
from tests.runtime.peers import PATIENCE_S, agencies_on_loopback, change, configure

Peers = dict[str, Running]


async def start_all(folder: Path) -> Peers:
    federation, found = agencies_on_loopback(), Peers()
    for name in federation.organisations:
        configuration = read_configuration(configure(folder, federation, name))
        listening = socket.socket()
        listening.bind(configuration.listen)
        listening.setblocking(False)
        endpoint = federation[name].endpoint
        found[name] = await Running.start(configuration, listening, endpoint)
    return found


def break_link(peers: Peers, one: str, other: str) -> None:
    """Takes the endpoint of each of the two from the transport of the other."""
    for here, there in ((one, other), (other, one)):
        transport = peers[here].transport
        known = transport._endpoint_of
        transport._endpoint_of = lambda name, there=there, known=known: (
            "" if name == there else known(name)
        )


async def until(look: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.05)


async def stable(peer: Running) -> None:
    await peer.driver.submit(Subscribe("anna", "Enterprise/Holder", id="s"))
    for _ in range(200):
        listed = await peer.driver.submit(ListSubscriptions("anna"))
        assert isinstance(listed, Subscriptions)
        if not any(each.pending for each in listed.subscriptions):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the subscription is not stable")


def test_event_and_its_acknowledgement_go_through_a_third_peer(tmp_path: Path) -> None:
    async def scenario() -> None:
        peers = await start_all(tmp_path)
        try:
            await stable(peers["CoC"])
            break_link(peers, "INPS", "CoC")
            for id in ("e1", "e2", "e3"):
                await peers["INPS"].driver.submit(change(id))
            stream = peers["INPS"].driver.peer.edl.producer.streams["CoC"]
            await until(lambda: stream.acknowledged == 3, "everything is acknowledged")
            found = await peers["CoC"].driver.submit(PullDeliveries("anna", "s"))
            assert isinstance(found, Deliveries)
            assert [each.event for each in found.deliveries] == ["e1", "e2", "e3"]
            assert "CoC" in peers["INPS"].driver.peer.status.unreachable
            relay = peers["INAIL"].driver.peer
            assert relay.status.deliveries_waiting == relay.status.custody == 0
        finally:
            for each in peers.values():
                await each.stop()

    asyncio.run(scenario())
