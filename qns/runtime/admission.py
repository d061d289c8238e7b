"""Admission: limits the requests that are handled at once, so that each port keeps some places.

A connection whose request is being handled cannot give way to a new one. Without a limit, requests
of one port that wait for a slow disk could take every connection. A tenth of the connections is
therefore left to the other port, and a fortieth to health, metrics and the WSDL.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from qns.soap.shapes import Port


@dataclass(slots=True, eq=False)
class Admission:
    most_connections: int
    _under_way: Counter[Port] = field(default_factory=Counter)

    def admit(self, port: Port) -> bool:
        """Counts a request that is handled now; returns False if there is no place for it."""
        most = self.most_connections - self.most_connections // 40
        most_of_port = most - self.most_connections // 10
        if self._under_way[port] >= most_of_port or self._under_way.total() >= most:
            return False
        self._under_way[port] += 1
        return True

    def release(self, port: Port) -> None:
        """Counts a request that was answered, or whose client has gone."""
        self._under_way[port] -= 1
