"""Service manager: tells systemd when the peer is ready, reloads, stops, and that it is alive.

systemd names a socket in `NOTIFY_SOCKET` and reads datagrams from it (sd_notify). Without the
variable nothing is sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic_ns
from typing import Self


@dataclass(frozen=True, slots=True)
class ServiceManager:
    address: str = ""
    """The socket of the service manager; empty if there is none."""
    watchdog_s: float = 0.0
    """How often at least the service manager expects a sign of life; 0 if it expects none."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        address = environment.get("NOTIFY_SOCKET", "")
        is_for_us = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watchdog_us = environment.get("WATCHDOG_USEC", "")
        watchdog_s = int(watchdog_us) / 1e6 if is_for_us and watchdog_us.isdecimal() else 0.0
        return cls(address, watchdog_s)

    def ready(self, status: str) -> None:
        """Reports that the peer serves requests, after the start or after a reload."""
        self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        self._send("RELOADING=1", f"MONOTONIC_USEC={monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1", "STATUS=stopping")

    async def watch(self) -> None:
        """Reports until it is cancelled that the event loop is alive."""
        while self.watchdog_s:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_s / 3)

    def _send(self, *lines: str) -> None:
        if not self.address:
            return
        # A name that begins with @ is in the abstract namespace of Linux.
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), address)
