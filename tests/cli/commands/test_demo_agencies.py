"""Test of the example with three agencies, as its page describes it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from qns.cli.demo.peers import free_ports
from qns.client import Client
from tests.cli.conftest import ROOT

FOLDER = "examples/agencies"
PORTS = ("8701", "8702", "8703", "9701", "9702", "9703")


class Agencies:
    """Copies the example and gives its peers free ports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(
            ROOT / FOLDER, root / FOLDER, ignore=shutil.ignore_patterns("*.db*", "*.log", "keys")
        )
        self.ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        for name in ("certificates.sh", "inps.toml", "inail.toml", "coc.toml"):
            file = root / FOLDER / name
            file.write_text(self.moved(file.read_text(encoding="utf-8")), encoding="utf-8")
        page = (root / FOLDER / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        self.commands = [line for block in blocks for line in block.splitlines()]
        self.inps = f"http://127.0.0.1:{self.ports['8701']}/"

    def moved(self, text: str) -> str:
        for old, new in self.ports.items():
            text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
        return text

    def words(self, command: str) -> list[str]:
        first, *rest = shlex.split(self.moved(command))
        assert first == "qns"
        return [sys.executable, "-m", "qns.cli", *rest]

    def do(self, command: str) -> str:
        done = subprocess.run(
            self.words(command),
            cwd=self.root,
            env={**os.environ, "QNS_PEER": self.inps},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()


@pytest.fixture
def agencies(tmp_path: Path) -> Iterator[Agencies]:
    agencies = Agencies(tmp_path)
    script, *commands = agencies.commands
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    subprocess.run([tmp_path / script], check=True, env={**os.environ, "PATH": path})
    with ExitStack() as stack:
        peers = []
        for command in commands[:3]:
            log = stack.enter_context((tmp_path / "peers.log").open("ab"))
            peer = stack.enter_context(
                subprocess.Popen(
                    agencies.words(command), cwd=tmp_path, stdout=subprocess.PIPE, stderr=log
                )
            )
            stack.callback(peer.terminate)
            peers.append(peer)
        for peer in peers:
            assert peer.stdout is not None
            assert b" listens on " in peer.stdout.readline()
        yield agencies


def test_commands_of_the_page_deliver_two_events_from_coc_to_a_user_of_inps(
    agencies: Agencies,
) -> None:
    subscribe, look, publish, pull = agencies.commands[4:]
    assert "low-accuracy" in agencies.do(subscribe)
    with Client(agencies.inps, "U12") as client:
        while client.subscriptions()[0].pending:
            pass
    assert "low-accuracy" in agencies.do(look)
    assert "2 events" in agencies.do(publish)
    with Client(agencies.inps, "U12") as client:
        while len(client.pull("low-accuracy", wait_s=10)) < 2:
            pass
    pulled = agencies.do(pull)
    assert "MCLMSM73H17H501F" in pulled
    assert "SCNMNC74S70G230T" in pulled
    assert "SCNMNC74S70G230T" not in agencies.do(pull)
