"""The transcripts of docs/operations.md: commands of an operator, run against real peers.

The commands run one after the other in one folder, which has `inps.toml`, `inail.toml`, `coc.toml`
and `federation.xml`; the three peers run. `systemctl stop qns-peer@inps` and `start` stop and start
a peer. What differs from run to run (numbers, and the folder) is masked before the comparison.
`python -m tests.cli.operator.page` writes the present output into the page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from qns.federation.document_xml import write_federation
from qns.runtime.admin.client import call
from qns.runtime.configuration import read_admin_path, read_configuration
from tests.cli.transcripts import ROOT, output_of, rewritten, steps
from tests.runtime.peers import QUICK, PeerProcess, agencies_on_loopback, eventually

PAGE = "docs/operations.md"
FOLDER = "/var/lib/qns"
"""The folder that the page shows."""

_MORE = "publications_remembered = 1\n"
"""With one publication remembered, a Quality Factory can use an id twice: a dead letter."""
_SYSTEMCTL = re.compile(r"(?:sudo )?systemctl (start|stop|restart) qns-peer@(\w+)")
_NUMBER = re.compile(r"\b[0-9a-f]{16}\b|\d[\d,.]*(?:e-?\d+)?")
"""A number, or the identity of a key."""


class Operator:
    """Runs the commands of the page in a folder with three running peers."""

    def __init__(self, folder: Path, peers: dict[str, PeerProcess]) -> None:
        self._folder = folder
        self._peers = peers

    def output_of(self, command: str) -> str:
        if found := _SYSTEMCTL.fullmatch(command):
            self._control(found[1], self._peers[found[2]])
            return ""
        for port, each in enumerate(self._peers.values(), start=8701):
            command = command.replace(f"http://127.0.0.1:{port}/", each.endpoint)
        output = output_of(command)
        if command.startswith(("qns subscribe", "echo")):
            self.wait_until_calm()
        for path in {str(self._folder), str(self._folder.resolve())}:
            output = output.replace(path, FOLDER)
        return output

    def documented(self, command: str) -> str:
        """Returns the output with the ports of the shipped federation."""
        output = self.output_of(command)
        for port, each in enumerate(self._peers.values(), start=8701):
            output = output.replace(each.endpoint, f"http://127.0.0.1:{port}/")
        return output

    def _control(self, action: str, peer: PeerProcess) -> None:
        if action in ("stop", "restart"):
            peer.stop()
            self.wait_until_missed(peer)
        if action in ("start", "restart"):
            peer.start()
            self.wait_until_connected()

    def wait_until_missed(self, stopped: PeerProcess) -> None:
        """Waits until every peer that runs has called the stopped one in vain."""
        name = read_configuration(stopped.configuration).organisation
        running = [peer for peer in self._peers.values() if peer.process is not None]

        def is_missed() -> bool:
            found = [call(read_admin_path(peer.configuration), "tables", {}) for peer in running]
            links = [link for each in found for link in each["links"]["rows"]]
            return all("refused" in link["problem"] for link in links if link["other"] == name)

        eventually(is_missed, f"{name} is missed")

    def wait_until_calm(self) -> None:
        """Waits until views are in force and streams acknowledged, among the peers that run."""
        running = [peer for peer in self._peers.values() if peer.process is not None]
        names = {read_configuration(peer.configuration).organisation for peer in running}

        def is_calm() -> bool:
            found = [call(read_admin_path(peer.configuration), "tables", {}) for peer in running]
            return all(
                all(
                    v["state"] == "in force"
                    for v in each["views"]["rows"]
                    if v["producer"] in names
                )
                and not any(
                    s["lag_events"] for s in each["streams_to"]["rows"] if s["consumer"] in names
                )
                and all(
                    link["state"] == "idle"
                    for link in each["links"]["rows"]
                    if link["other"] in names
                )
                for each in found
            )

        eventually(is_calm, "nothing is under way")

    def wait_until_connected(self) -> None:
        """Waits until every peer that runs has an answer from every other one."""
        for name, peer in self._peers.items():
            if peer.process is not None:
                eventually(
                    lambda peer=peer: "no answer from" not in str(peer.health()["reasons"]),
                    f"{name} is connected",
                )
                self._wait_until_reported(peer)

    def _wait_until_reported(self, peer: PeerProcess) -> None:
        """Waits until no other peer reports any more that it could not reach this one at first."""

        def is_reported() -> bool:
            found = call(read_admin_path(peer.configuration), "connections", {})["findings"]
            return not any("reports that it cannot reach" in each["words"] for each in found)

        eventually(is_reported, "the others report that they reach the peer")


@contextmanager
def operator(folder: Path) -> Iterator[Operator]:
    """Starts the peers; the working directory is the folder."""
    federation = agencies_on_loopback()
    (folder / "federation.xml").write_bytes(write_federation(federation))
    peers = {}
    for name, each in federation.organisations.items():
        path = folder / f"{name.lower()}.toml"
        path.write_text(
            f'organisation = "{name}"\nfederation = "federation.xml"\n'
            f'lineage = "{name}.db.lineage"\n{QUICK}{_MORE}',
            "utf-8",
        )
        peers[name.lower()] = PeerProcess(path, each.endpoint)
    before = Path.cwd()
    try:
        for peer in peers.values():
            peer.start()
        os.chdir(folder)
        acting = Operator(folder, peers)
        acting.wait_until_connected()
        yield acting
    finally:
        os.chdir(before)
        for peer in peers.values():
            if peer.process is not None:
                peer.kill()


def shape(output: str) -> str:
    """Masks the numbers of an output, with the spaces that align them.

    A link that gossips at this moment counts as idle.
    """
    output = re.sub(r"asking \(\w+\)", "idle", output)
    return re.sub(r" +", " ", _NUMBER.sub("0", output))


if __name__ == "__main__":
    os.chdir(ROOT)
    assert steps(PAGE)
    with TemporaryDirectory(dir="/tmp") as folder, operator(Path(folder)) as acting:
        text = rewritten(PAGE, acting.documented)
    (ROOT / PAGE).write_text(text, encoding="utf-8")
