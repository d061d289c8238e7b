"""Tests of `qns loss`."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from math import log
from pathlib import Path
from threading import Thread

import pytest

from qns.cli.metrics_page import T_DIFF, T_SUB
from tests.cli.conftest import Cli
from tests.client.peers import PeerProcess, holder

SUB = (0.03, 0.05)
DIFF = (0.004, 0.012, 0.014)
BOUNDS = (0.01, 0.02, 0.05, 0.1)


def histogram(name: str, values: tuple[float, ...]) -> str:
    """Formats a histogram for Prometheus: cumulative buckets, a count and a sum."""
    classes = [(str(bound), sum(value <= bound for value in values)) for bound in BOUNDS]
    lines = [
        f"# HELP {name} Words.",
        f"# TYPE {name} histogram",
        *(f'{name}_bucket{{le="{b}"}} {n}.0' for b, n in [*classes, ("+Inf", len(values))]),
        f"{name}_count {len(values)}.0",
        f"{name}_sum {sum(values)}",
    ]
    return "\n".join([*lines, ""])


def page(sub: tuple[float, ...] = SUB, diff: tuple[float, ...] = DIFF) -> str:
    return histogram(T_SUB, sub) + histogram("qns_commit_seconds", (9.0,)) + histogram(T_DIFF, diff)


Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that answers /metrics: `serve(text, status)` returns its address."""
    servers: list[HTTPServer] = []

    def start(text: str, status: int = 200) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.path == "/metrics"
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


# --- from given numbers ---------------------------------------------------------------------------


def test_d_from_given_delays_equals_paper_002(cli: Cli) -> None:
    found = cli("loss", "--t-on", 60, "--t-sub", 12, "--t-diff", 8, "--json").json
    assert found["d"] == pytest.approx(1 - 20 / 2.14 / 60)
    assert found["loss"] == pytest.approx(1 - found["d"])
    assert found["rapidity"] == pytest.approx(1.14)
    assert found["is_lower_bound"] is False
    other = cli("loss", "--t-on", 60, "--t-sub", 12, "--t-diff", 8, "--r", 3, "--json").json
    assert other["d"] == pytest.approx(1 - 20 / 4 / 60)


def test_d_from_brokers_and_rate_equals_eq_3_6(cli: Cli) -> None:
    found = cli("loss", "--t-on", 150, "--n", 100, "--alpha", 1.5, "--json").json
    assert found["d"] == pytest.approx(1 - 2 / 1.5 * log(100) / 150)
    assert found["t_sub_s"] == pytest.approx(2 / 1.5 * log(99))


def test_ways_to_raise_d_have_numbers(cli: Cli) -> None:
    found = cli("loss", "--t-on", 60, "--t-sub", 12, "--t-diff", 8, "--json").json
    ways = {way["name"]: way["d"] for way in found["would_raise"]}
    lost_s = 20 / 2.14
    assert ways == {
        "longer": pytest.approx(1 - lost_s / 120),
        "faster": pytest.approx(1 - lost_s / 2 / 60),
        "available": pytest.approx(1 - 8 / 2.14 / 60),
        "available_before": pytest.approx(1 - lost_s / 120),
    }
    assert min(ways.values()) > found["d"]


def test_answer_is_printed_as_text(cli: Cli) -> None:
    outcome = cli("loss", "--t-on", 3600, "--t-sub", 12.2, "--t-diff", 9.95)
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "d = 0.9971: 2.9 of 1,000 notifications are lost"
    assert "what would raise it" in outcome.out
    assert max(map(len, lines)) <= 80


def test_short_subscription_gets_a_lower_bound(cli: Cli) -> None:
    asked = ("loss", "--t-on", 10, "--t-sub", 12, "--t-diff", 8)
    outcome = cli(*asked)
    assert outcome.out.startswith("d ≥ 0.065: at most 935 of 1,000")
    assert "T_ON is shorter than T_sub + T_diff: this is a lower bound" in outcome.out
    found = cli(*asked, "--json").json
    assert found["is_lower_bound"] is True
    assert [way["name"] for way in found["would_raise"]] == ["longer", "faster"]
    assert cli("loss", "--t-on", 1, "--t-sub", 12, "--t-diff", 8, "--json").json["d"] == 0


def test_without_delays_nothing_is_lost(cli: Cli) -> None:
    outcome = cli("loss", "--t-on", 10, "--t-sub", 0, "--t-diff", 0)
    assert outcome.out.startswith("d = 1.000: 0 of 1,000")
    assert outcome.out.endswith("nothing can raise it\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--t-on", "60"), "give --peer URL, or --t-sub and --t-diff, or --n and --alpha"),
        (("--t-on", "60", "--t-sub", "3"), "the delays are missing"),
        (("--t-on", "60", "--n", "100"), "give both --n and --alpha"),
        (("--t-on", "60", "--n", "9", "--alpha", "1", "--t-sub", "3"), "too many options"),
        (("--t-on", "60", "--n", "1", "--alpha", "1"), "give at least 3"),
        (("--t-on", "60", "--n", "1.5", "--alpha", "1"), "no number of brokers"),
        (("--t-on", "60", "--n", "9", "--alpha", "0"), "an update rate of 0"),
        (("--t-on", "0", "--t-sub", "3", "--t-diff", "3"), "give a finite T_ON above 0"),
        (("--t-on", "1h", "--t-sub", "3", "--t-diff", "3"), "--t-on '1h' is no number"),
        (("--t-on", "nan", "--t-sub", "3", "--t-diff", "3"), "--t-on 'nan' is no number"),
        (("--t-on", "1e300", "--t-sub", "3", "--t-diff", "3"), "--t-on '1e300' is too long"),
        (("--t-on", "60", "--t-sub=-3", "--t-diff", "3"), "a time of -3 s"),
        (("--t-on", "60", "--t-sub", "3", "--t-diff", "3", "--r", "0"), "r of 0"),
    ],
)
def test_impossible_arguments_are_reported_with_a_remedy(
    arguments: tuple[str, ...], message: str, cli: Cli
) -> None:
    outcome = cli("loss", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


# --- from a running peer --------------------------------------------------------------------------


def test_delays_are_read_from_the_metrics_of_a_peer(cli: Cli, serve: Serve) -> None:
    peer = serve(page())
    found = cli("loss", "--t-on", 60, "--peer", peer, "--json").json
    assert found["mean_sub_s"] == pytest.approx(0.04)
    assert found["mean_diff_s"] == pytest.approx(0.01)
    assert (found["t_sub_s"], found["t_diff_s"]) == (0.05, 0.02)
    assert found["measured"] == {"subscriptions": 2, "deliveries": 3}
    assert found["d"] == pytest.approx(1 - 0.05 / 60)
    assert found["rapidity"] == pytest.approx(0.07 / 0.05 - 1)
    out = cli("loss", "--t-on", 60, "--peer", peer).out
    assert "T_sub at most 0.05 s, on average 0.04 s (2 subscriptions)" in out
    assert "T_diff at most 0.02 s, on average 0.01 s (3 deliveries)" in out
    assert f"measured at {peer} since it was started" in out


def test_delay_beyond_the_last_bucket_has_no_bound(cli: Cli, serve: Serve) -> None:
    peer = serve(page(diff=(0.004, 30.0)))
    found = cli("loss", "--t-on", 60, "--peer", peer, "--json").json
    assert found["t_diff_s"] is None
    assert found["is_lower_bound"] is True
    assert found["d"] == pytest.approx(1 - (0.04 + 15.002) / 60)
    assert "T_diff unbounded, on average 15 s" in cli("loss", "--t-on", 60, "--peer", peer).out


def test_metrics_without_data_are_reported(cli: Cli, serve: Serve) -> None:
    outcome = cli("loss", "--t-on", 60, "--peer", serve(page(sub=())))
    assert outcome.status == 2
    assert "no data yet: no subscription has become stable" in outcome.err
    peer = serve(page(diff=()))
    outcome = cli("loss", "--t-on", 60, "--peer", peer)
    assert "no data yet: no notification was delivered" in outcome.err
    assert "add --t-diff SECONDS" in outcome.err
    found = cli("loss", "--t-on", 60, "--peer", peer, "--t-diff", 2.14, "--json").json
    assert found["d"] == pytest.approx(1 - (0.04 + 1) / 60)


def test_unreachable_peer_is_reported(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    outcome = cli("loss", "--t-on", 60, "--peer", f"http://127.0.0.1:{port}/")
    assert outcome.status == 2
    assert f"no answer from the peer at http://127.0.0.1:{port}/" in outcome.err
    assert "qns peer run" in outcome.err


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("", 404, "status 404 (check that it is a QNS peer)"),
        ("<html>hello</html>", 200, "have no qns_subscription_stable_seconds"),
        (f"{T_SUB}_count many\n{T_SUB}_sum 1\n", 200, "have no"),
    ],
)
def test_server_that_is_no_peer_is_reported(
    text: str, status: int, message: str, cli: Cli, serve: Serve
) -> None:
    outcome = cli("loss", "--t-on", 60, "--peer", serve(text, status))
    assert outcome.status == 2
    assert message in outcome.err


def test_wrong_address_is_reported(cli: Cli) -> None:
    assert "not the address of a peer" in cli("loss", "--t-on", 60, "--peer", "nobody").err


def test_delays_of_a_real_peer_are_read(cli: Cli, tmp_path: Path) -> None:
    peer = PeerProcess(tmp_path, "CoC")
    try:
        where = ("--peer", peer.start())
        assert "no data yet" in cli("loss", "--t-on", 3600, *where).err
        assert cli("subscribe", "Enterprise/Holder", "--owner", "me", *where).status == 0
        event = json.dumps(holder("e1", source="CoC")).encode() + b"\n"
        assert cli("publish", "-", "--owner", "me", *where, stdin=event).status == 0
        found = cli("loss", "--t-on", 3600, *where, "--json").json
    finally:
        peer.kill()
    assert found["measured"] == {"subscriptions": 1, "deliveries": 1}
    assert 0.9 < found["d"] <= 1


def test_command_does_not_import_the_libraries_of_the_lab() -> None:
    """The command works without the extra `lab`."""
    message = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, qns.cli.commands.loss; print({'rtree', 'networkx'} & set(sys.modules))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert message.stdout == "set()\n"
