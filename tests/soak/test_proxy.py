"""The fault proxy: each fault has its effect at both ends of a TCP connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import aiohttp
import pytest
from aiohttp import web

from qns.runtime.tls_contexts import fingerprint_at
from tests.soak.member_keys import MemberKeys
from tests.soak.proxy import HOST, FaultProxy
from tests.soak.weather import DRAWN, Fault, Weather

NO_ANSWER = (aiohttp.ClientError, asyncio.TimeoutError)


@dataclass
class Bench:
    """A sender, the proxy, and a receiver that records and returns the requests that arrive."""

    proxy: FaultProxy
    session: aiohttp.ClientSession
    url: str
    arrived: list[str] = field(default_factory=list)
    connections: set[str] = field(default_factory=set)

    async def post(self, text: str, sender: str = "INPS") -> str:
        body = f"<q:organisation>{sender}</q:organisation><t>{text}</t>"
        async with self.session.post(self.url, data=body.encode()) as response:
            return await response.text()

    async def arrival(self, text: str) -> None:
        """Waits until the request has arrived."""
        async with asyncio.timeout(10):
            while text not in self.arrived:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def bench(weather: Weather) -> AsyncIterator[Bench]:
    found: list[Bench] = []

    async def handle(request: web.Request) -> web.Response:
        text = (await request.text()).partition("<t>")[2].removesuffix("</t>")
        found[0].arrived.append(text)
        return web.Response(text=f"had {text} " + "." * 500)

    app = web.Application()
    app.router.add_post("/peer", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    proxy = FaultProxy(weather)
    port = await proxy.listen("CoC", runner.addresses[0][1])
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        found.append(Bench(proxy, session, f"http://{HOST}:{port}/peer"))
        try:
            yield found[0]
        finally:
            await proxy.close()
            await runner.cleanup()


def with_fault(
    fault: Fault | None, story: Callable[[Bench], Awaitable[None]], seed: int = 1
) -> Counted:
    async def play() -> Counted:
        faults = (fault,) if fault else DRAWN
        weather = Weather(Random(seed), 1.0 if fault else 0.0, 0.1, faults)
        async with bench(weather) as found:
            await story(found)
            return Counted(dict(found.proxy.injected), found.proxy.passed, found.arrived)

    return asyncio.run(play())


@dataclass
class Counted:
    injected: dict[Fault, int]
    passed: int
    arrived: list[str]


def test_proxy_without_faults_forwards_every_request() -> None:
    async def story(found: Bench) -> None:
        for number in range(5):
            assert (await found.post(f"m{number}")).startswith(f"had m{number} ")

    counted = with_fault(None, story)
    assert counted == Counted({}, 5, [f"m{number}" for number in range(5)])


def test_delayed_request_arrives_and_is_answered() -> None:
    async def story(found: Bench) -> None:
        assert (await found.post("late")).startswith("had late ")

    assert with_fault(Fault.DELAY, story) == Counted({Fault.DELAY: 1}, 0, ["late"])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fault", [Fault.DROP, Fault.CUT_REQUEST])
def test_lost_request_never_arrives(fault: Fault, seed: int) -> None:
    async def story(found: Bench) -> None:
        with pytest.raises(NO_ANSWER):
            await found.post("lost")
        found.proxy.weather.heal()
        await found.post("next")

    counted = with_fault(fault, story, seed)
    assert counted == Counted({fault: 1}, 1, ["next"])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fault", [Fault.LOSE_RESPONSE, Fault.CUT_RESPONSE])
def test_request_arrives_although_its_response_is_lost(fault: Fault, seed: int) -> None:
    async def story(found: Bench) -> None:
        with pytest.raises(NO_ANSWER):
            await found.post("heard")

    assert with_fault(fault, story, seed) == Counted({fault: 1}, 0, ["heard"])


def test_duplicated_request_arrives_twice_and_is_answered_once() -> None:
    async def story(found: Bench) -> None:
        assert (await found.post("twice")).startswith("had twice ")
        await found.proxy.settle()

    assert with_fault(Fault.DUPLICATE, story) == Counted(
        {Fault.DUPLICATE: 1}, 0, ["twice", "twice"]
    )


def test_request_that_is_held_back_arrives_after_a_later_one_of_the_same_sender() -> None:
    async def story(found: Bench) -> None:
        with pytest.raises(NO_ANSWER):
            await found.post("first")
        found.proxy.weather.heal()
        await found.post("of another", sender="INAIL")
        assert found.arrived == ["of another"]
        await found.post("second")
        await found.arrival("first")

    counted = with_fault(Fault.REORDER, story)
    assert counted.arrived == ["of another", "second", "first"]


def test_request_that_is_held_back_arrives_when_the_proxy_settles() -> None:
    async def story(found: Bench) -> None:
        with pytest.raises(NO_ANSWER):
            await found.post("first")
        await found.proxy.settle()

    assert with_fault(Fault.REORDER, story).arrived == ["first"]


@pytest.mark.parametrize("seed", range(4))
def test_partition_blocks_requests_in_one_direction_only(seed: int) -> None:
    async def story(found: Bench) -> None:
        found.proxy.weather.blocked.add(("INPS", "CoC"))
        with pytest.raises(NO_ANSWER):
            await asyncio.wait_for(found.post("no way"), 0.5)
        await found.post("of another", sender="INAIL")
        found.proxy.weather.heal()
        await found.post("mended")

    counted = with_fault(None, story, seed)
    assert counted.arrived == ["of another", "mended"]
    assert counted.injected == {Fault.PARTITION: 1}


@pytest.mark.parametrize("seed", range(4))
def test_partition_in_the_other_direction_loses_only_the_response(seed: int) -> None:
    async def story(found: Bench) -> None:
        found.proxy.weather.blocked.add(("CoC", "INPS"))
        with pytest.raises(NO_ANSWER):
            await asyncio.wait_for(found.post("heard"), 0.5)

    counted = with_fault(None, story, seed)
    assert counted.arrived == ["heard"]
    assert counted.injected == {Fault.PARTITION: 1}


def test_request_to_a_receiver_that_is_down_is_not_answered() -> None:
    async def play() -> None:
        async with bench(Weather(Random(1))) as found:
            port = await found.proxy.listen("gone", 1)
            found.url = f"http://{HOST}:{port}/peer"
            with pytest.raises(NO_ANSWER):
                await found.post("nobody")

    asyncio.run(play())


def test_proxy_with_keys_calls_the_receiver_with_the_certificate_of_the_sender(
    tmp_path: Path,
) -> None:
    keys = {name: MemberKeys.make(tmp_path, name) for name in ("INPS", "INAIL", "CoC")}
    seen: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        seen.append(fingerprint_at(request.transport))
        return web.Response(text="had it")

    async def play() -> None:
        app = web.Application()
        app.router.add_post("/peer", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, HOST, 0, ssl_context=keys["CoC"].as_server(keys)).start()
        proxy = FaultProxy(Weather(Random(1)), keys)
        port = await proxy.listen("CoC", runner.addresses[0][1])
        proxy.weather.blocked.add(("INAIL", "CoC"))
        try:
            for name in ("INPS", "INAIL"):
                tls = aiohttp.TCPConnector(ssl=keys[name].as_client(keys["CoC"]))
                limit = aiohttp.ClientTimeout(total=2)
                async with aiohttp.ClientSession(connector=tls, timeout=limit) as session:
                    # The body names somebody else: over TLS only the certificate counts.
                    sent = session.post(
                        f"https://{HOST}:{port}/peer", data=b"<organisation>CoC</organisation>"
                    )
                    if name == "INAIL":
                        with pytest.raises(NO_ANSWER):
                            await sent
                    else:
                        assert (await sent).status == 200
        finally:
            await proxy.close()
            await runner.cleanup()

    asyncio.run(play())
    assert seen == [keys["INPS"].fingerprint]


def test_roughness_of_one_half_injects_every_fault_and_about_half_of_the_requests_pass() -> None:
    async def story(found: Bench) -> None:
        found.proxy.weather.roughness = 0.5
        for number in range(200):
            try:
                await found.post(f"m{number}")
            except NO_ANSWER:
                continue
        found.proxy.weather.heal()
        await found.proxy.settle()

    counted = with_fault(None, story)
    assert set(counted.injected) == set(DRAWN)
    assert sum(counted.injected.values()) + counted.passed == 200
    assert 60 < counted.passed < 140
