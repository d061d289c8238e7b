"""The example clients in five languages work with a peer, and those with a WSDL with its WSDL."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from qns.client import Client
from tests.soap.foreign.conftest import ROOT, TlsPeer

pytestmark = pytest.mark.slow

CLIENTS = ROOT / "examples" / "clients"
USER = """\
subscribed
published, for the first time
pulled 1 from INPS: Niccolò Rossi
0 left after the acknowledgement
InvalidFault: unknown class 'Enterprise/Holdr' (did you mean Enterprise/Holder or Enterprise?)
unsubscribed
"""
ORGANISATION = """\
hello from INPS, which joined with version 1
changed
taken
RefusedFault: Nobody is not a member of the federation
"""


@dataclass(frozen=True)
class Stack:
    """The commands that start the two programs of one language."""

    user: list[str]
    organisation: list[str]

    def run(self, command: list[str], *arguments: str) -> str:
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            timeout=120,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )
        assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
        assert done.stderr == b""
        return done.stdout.decode()


def python(_: Path) -> Stack:
    folder = CLIENTS / "python"
    programs = (folder / "user.py", folder / "organisation.py")
    user, organisation = ([sys.executable, "-X", "utf8", str(each)] for each in programs)
    return Stack(user, organisation)


def java(scratch: Path) -> Stack:
    if shutil.which("java") is None or shutil.which("javac") is None:
        pytest.skip("no java or javac: install a JDK, version 17 or newer")
    version = subprocess.run(["javac", "-version"], capture_output=True, check=True)
    number = re.search(r"[0-9]+", version.stdout.decode() + version.stderr.decode())
    if number is None or int(number[0]) < 17:
        pytest.skip("javac is too old: install a JDK, version 17 or newer")
    sources = sorted(str(each) for each in (CLIENTS / "java").glob("*.java"))
    command = ["javac", "-encoding", "UTF-8", "-Werror", "-d", str(scratch), *sources]
    made = subprocess.run(command, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()
    start = ["java", "-cp", str(scratch)]
    return Stack([*start, "User"], [*start, "Organisation"])


def php(_: Path) -> Stack:
    folder = CLIENTS / "php"
    if shutil.which("php") is None:
        pytest.skip("no php: install PHP with its soap and xml extensions")
    modules = subprocess.run(["php", "-m"], capture_output=True, check=True).stdout.lower().split()
    missing = {b"soap", b"simplexml"} - set(modules)
    if missing:
        pytest.skip(f"php lacks {missing}: install its soap and xml extensions")
    return Stack(["php", str(folder / "user.php")], ["php", str(folder / "organisation.php")])


def javascript(_: Path) -> Stack:
    folder = CLIENTS / "javascript"
    if shutil.which("node") is None:
        pytest.skip("no node: install Node.js 20.19 or newer")
    version = subprocess.run(["node", "--version"], capture_output=True, check=True).stdout.decode()
    if tuple(map(int, version.strip("v\n").split("."))) < (20, 19):
        pytest.skip(f"node is {version.strip()}: install Node.js 20.19 or newer")
    if not (folder / "node_modules" / "soap").is_dir():
        pytest.skip("no soap package: run npm install in examples/clients/javascript")
    return Stack(["node", str(folder / "user.js")], ["node", str(folder / "organisation.js")])


def cpp(scratch: Path) -> Stack:
    missing = [tool for tool in ("wsdl2h", "soapcpp2", "g++", "make") if not shutil.which(tool)]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: install gSOAP, g++ and make")
    header = subprocess.run(
        ["g++", "-E", "-x", "c++", "-"], input=b"#include <openssl/ssl.h>", capture_output=True
    )
    if header.returncode:
        pytest.skip("no headers of OpenSSL: install libssl-dev")
    made = subprocess.run(
        ["make", "-C", str(CLIENTS / "cpp"), f"TO={scratch}"], capture_output=True, check=False
    )
    assert made.returncode == 0, made.stderr.decode()
    return Stack([str(scratch / "user")], [str(scratch / "organisation")])


STACKS: dict[str, Callable[[Path], Stack]] = {
    "python": python,
    "java": java,
    "php": php,
    "javascript": javascript,
    "cpp": cpp,
}


@pytest.fixture(scope="session", params=STACKS)
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return STACKS[request.param](tmp_path_factory.mktemp(request.param))


def test_user_program_subscribes_publishes_pulls_and_acknowledges(stack: Stack, peer: str) -> None:
    assert stack.run(stack.user, peer) == USER
    assert stack.run(stack.user, peer) == USER  # the first run left nothing behind


def test_organisation_program_sends_its_view_and_notifies(stack: Stack, peer: str) -> None:
    with Client(peer, "bruno") as bruno:
        bruno.subscribe("Enterprise/Holder", id="all")
        assert stack.run(stack.organisation, peer) == ORGANISATION
        (delivered,) = bruno.pull("all", wait_s=10)
        assert (delivered.number, delivered.source) == (1, "CoC")
        assert delivered.fields["data"] == {"Name": "Niccolò Rossi"}
        assert delivered.fields["quality"] == {"Name.accuracy": 0.3}

        event = {"id": "e1", "class": "Enterprise/Holder", "source": "INPS"}
        assert bruno.publish(event).sent_to == ("CoC",)  # the program's view matches the event

        assert stack.run(stack.organisation, peer) == ORGANISATION  # it notifies with number 2
        assert [each.source for each in bruno.pull("all", after=1)] == ["INPS", "CoC"]


def test_user_program_works_over_tls(stack: Stack, local_tls_peer: TlsPeer) -> None:
    peer = local_tls_peer
    assert stack.run(stack.user, peer.local, str(peer.folder)) == USER


def test_organisation_program_works_over_mutual_tls(stack: Stack, tls_peer: TlsPeer) -> None:
    with Client(tls_peer.local, "bruno") as bruno:
        bruno.subscribe("Enterprise/Holder", id="all")
        folder = str(tls_peer.folder)
        # The last request is in the name of an organisation that the connection does not have.
        said = stack.run(stack.organisation, tls_peer.members, folder).splitlines()
        assert said[:3] == ORGANISATION.splitlines()[:3]
        assert said[3].startswith("RefusedFault: the connection is that of CoC")
        (delivered,) = bruno.pull("all", wait_s=10)
        assert (delivered.number, delivered.source) == (1, "CoC")
