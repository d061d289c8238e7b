"""Floods of one member over mutual TLS: it is refused, and the requests of others are served.

Each test prints the p99 of another member's requests without and with the flood.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

import pytest

from qns.d2q.event_xml import write_event
from qns.d2q.shipped import AGENCIES
from qns.d2q.subscription_xml import write_subscription
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    ChangeSub,
    Entry,
    Envelope,
    Fault,
    Gossip,
    Notification,
    Notify,
    Request,
)
from qns.edl.seals import Sealer
from qns.federation.document import Federation
from qns.federation.seal_keys import FileSigner
from qns.iil.interpreter import interpret
from qns.iil.requests import Subscribe
from qns.runtime.quotas import BYTES, CPU, REQUESTS
from qns.soap.peer_client import write_call
from tests.certificates import certificate
from tests.runtime.peers import (
    PeerProcess,
    change,
    eventually,
    post,
    running,
    tls_files,
)
from tests.runtime.test_seals import (
    SEALS,
    kinds,
    read_at,
    sealed_agencies,
    sealed_peer_in,
)
from tests.runtime.tls_stage import address_of, call, connected, context_of

pytestmark = pytest.mark.slow

FLOOD_S = 8.0
CONNECTIONS = 24
"""More than one member may have."""
EVERY_S = 0.02
QUOTAS = "requests_per_s = 200\ncpu_share = 0.1\n"
"""Less than by default, so that a flood exceeds them on a slow machine too."""


class Stage:
    """INPS and INAIL are processes. CoC, which the tests play, has gone bad."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.federation: Federation = sealed_agencies()
        self.peers = {
            name: sealed_peer_in(folder / name, self.federation, name) for name in ("INPS", "INAIL")
        }
        self.inps = self.peers["INPS"]
        path = self.inps.configuration
        path.write_text(path.read_text().replace("[tuning]\n", f"[tuning]\n{QUOTAS}"))
        tls_files(folder, "CoC", certificate("CoC"))

    @contextmanager
    def flood(self, request: Request, seconds: float = FLOOD_S) -> Iterator[subprocess.Popen[str]]:
        """Runs a process that sends one request of CoC again and again."""
        body, action = write_call(Envelope("CoC", 1, (), request))
        content = self.folder / "request"
        content.write_bytes(post("/peer", body, action))
        host, port = address_of(self.federation, "INPS")
        pem, key = (str(self.folder / f"CoC.tls.{end}") for end in ("pem", "key"))
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.runtime.flooder", f"{host}:{port}", pem, key),
                *(str(content), str(seconds), str(CONNECTIONS)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            yield process
            process.kill()

    def latencies(self, process: subprocess.Popen[str] | None, seconds: float) -> list[float]:
        """Calls INPS in the name of INAIL until the process or the time ends; all are served."""
        found: list[float] = []
        until = monotonic() + seconds
        context = context_of(self.folder, certificate("INAIL"))
        with connected(address_of(self.federation, "INPS"), context) as connection:
            connection.timeout = 30.0
            while monotonic() < until if process is None else process.poll() is None:
                begun = monotonic()
                answer = call(connection, Envelope("INAIL", 1, (), Gossip()))
                assert not isinstance(answer.body, Fault), answer
                found.append(monotonic() - begun)
                sleep(EVERY_S)
        return sorted(found)


def p99_ms(latencies: list[float]) -> float:
    return latencies[len(latencies) * 99 // 100] * 1_000


def view(elements: int) -> ChangeSub:
    """Returns a view of costly elements whose digest is wrong, so that it is never in force."""
    names = ", ".join(f'"{number:05d}"' for number in range(400))
    text = f"Enterprise/Holder where Name in {{{names}}}"
    whole = write_subscription(interpret(text, AGENCIES), AGENCIES).decode()
    texts = tuple(whole.replace("00000", f"x{number:05d}") for number in range(elements))
    return ChangeSub(1, 1, 1, None, 1, texts, (), str(Digest(("other",))))


def forged(items: int) -> Notify:
    """Returns events of INAIL that CoC has sealed; each has a signature of its own."""
    signer = FileSigner.read(SEALS["CoC"].certificate, SEALS["CoC"].key)
    real = FileSigner.read(SEALS["INAIL"].certificate, SEALS["INAIL"].key)
    sealer = Sealer("INAIL", replace(signer, fingerprint=real.fingerprint))
    xml = write_event(change("e", "INAIL").event, AGENCIES)
    found: list[Notification] = []
    for number in range(1, items + 1):
        entry = Entry("INPS", 1, 1, number, 0, carriers=("CoC",))
        item = Notification("INAIL", 1, 1, number, f"f{number}", xml, 0.0, entry, ("INAIL", "CoC"))
        (sealed,) = sealer.seal("agencies", [(item, "INPS")])
        assert isinstance(sealed, Notification)
        found.append(sealed)
    return Notify(tuple(found))


FLOODS: dict[str, Request] = {
    "small requests": Gossip(),
    "costly views": view(100),
    "bad seals": forged(1_000),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    found = Stage(tmp_path_factory.mktemp("floods"))
    with running(found.peers.values()):
        found.inps.ask(Subscribe("ada", "Enterprise/Holder", id="1"))
        wait_until_stable_at_inail(found.inps)
        yield found


def wait_until_stable_at_inail(inps: PeerProcess) -> None:
    eventually(lambda: "qns_subscriptions_pending" in inps.metrics(), "the peer runs")
    eventually(lambda: inps.metrics()["qns_subscriptions_pending"] <= 1, "stable at INAIL")


@pytest.mark.parametrize("what", FLOODS)
def test_flood_of_one_member_is_refused_and_others_are_served(
    stage: Stage, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = stage.latencies(None, 2.0)
    before = read_at(stage.inps)
    with stage.flood(FLOODS[what]) as process:
        stage.peers["INAIL"].ask(change(what, "INAIL"))
        flooded = stage.latencies(process, FLOOD_S)
        assert process.stdout is not None
        answers = json.loads(process.stdout.read())
    eventually(lambda: read_at(stage.inps) == [*before, what], "the event of INAIL arrives")
    with capsys.disabled():
        ratio = p99_ms(flooded) / p99_ms(quiet)
        print(
            f"\n{what}: p99 {p99_ms(quiet):.1f} ms alone, {p99_ms(flooded):.1f} ms beside the flood"
            f" ({ratio:.1f} x, {len(flooded)} calls); the flood got {answers}"
        )
    assert len(flooded) > 20
    assert answers.get("429", 0) > 0
    assert "quota_exceeded" in kinds(stage.inps)
    (*_, reason) = (
        each["words"] for each in stage.inps.health()["details"] if each["kind"] == "quota_exceeded"
    )
    assert reason.startswith("CoC exceeds the quota")
    metrics = stage.inps.metrics()
    refused = {
        quota: metrics.get(f'qns_quota_refusals_total{{member="CoC",quota="{quota}"}}', 0.0)
        for quota in (REQUESTS, BYTES, CPU)
    }
    assert sum(refused.values()) > 0
    assert not any('member="INAIL"' in name for name in metrics if "quota_refusals" in name)
