"""Real peers as processes that can be killed, and a relay that loses answers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from qns.federation.document_xml import write_federation
from qns.federation.shipped import FEDERATIONS


class PeerProcess:
    """`qns peer run`, with what it keeps in a folder; comes back at the same address.

    Its federation has no other members, so that nobody else is looked for.
    """

    def __init__(self, folder: Path, organisation: str = "INPS", settings: str = "") -> None:
        self.folder = folder
        self.organisation = organisation
        self.settings = settings
        self.url = "http://127.0.0.1:0/"
        federation = FEDERATIONS["agencies"]
        for other in list(federation.organisations):
            if other != organisation:
                federation = federation.without(other)
        (folder / "federation.xml").write_bytes(write_federation(federation))
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        listen = urlsplit(self.url).netloc
        configuration = self.folder / "peer.toml"
        configuration.write_text(
            f'organisation = "{self.organisation}"\n'
            f'federation = "federation.xml"\nlisten = "{listen}"\n'
            f'lineage = "{self.organisation}.db.lineage"\n{self.settings}',
            encoding="utf-8",
        )
        with (self.folder / "peer.log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "qns.cli", "peer", "run", str(configuration)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        assert ready.startswith(f"{self.organisation} listens on "), self.log()
        self.url = ready.split()[-1]
        return self.url

    def end(self, number: int) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)
            self._process.wait(timeout=60)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def kill(self) -> None:
        """As if the power had gone."""
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        self.end(signal.SIGTERM)

    def log(self) -> str:
        return (self.folder / "peer.log").read_text(encoding="utf-8")


class LossyWire:
    """A relay in front of a peer that can drop answers after the peer has got the request."""

    def __init__(self, url: str) -> None:
        self.answers_to_lose = 0
        self.lost = 0
        self._target = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        relays = []
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                break
            relays.append(Thread(target=self._relay, args=(client,), daemon=True))
            relays[-1].start()
        for relay in relays:
            relay.join(timeout=10)

    def _relay(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as peer:
            sending = Thread(target=self._send, args=(client, peer), daemon=True)
            sending.start()
            while answer := peer.recv(65_536):
                if self.answers_to_lose:
                    self.answers_to_lose -= 1
                    self.lost += 1
                    break
                client.sendall(answer)
            for end in (client, peer):
                end.shutdown(socket.SHUT_RDWR) if _is_connected(end) else None
            sending.join()

    def _send(self, client: socket.socket, peer: socket.socket) -> None:
        try:
            while request := client.recv(65_536):
                peer.sendall(request)
            peer.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _is_connected(end: socket.socket) -> bool:
    try:
        end.getpeername()
    except OSError:
        return False
    return True


def holder(id: object, accuracy: float = 0.3, **more: object) -> dict[str, object]:
    """Returns an event about a holder's name."""
    return {
        "id": str(id),
        "class": "Enterprise/Holder",
        "source": "INPS",
        "data": {"Name": "M. Mecalla", "FiscalCode": "MCLMSM73H17H501F"},
        "quality": {"Name.accuracy": accuracy},
        **more,
    }


@contextmanager
def running_peer(
    folder: Path, organisation: str = "INPS", settings: str = ""
) -> Iterator[PeerProcess]:
    """Starts a peer, and kills it at the end of the block."""
    process = PeerProcess(folder, organisation, settings)
    try:
        process.start()
        yield process
    finally:
        process.kill()
