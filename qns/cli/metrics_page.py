"""Metrics page: the delays T_sub and T_diff of a running peer, from its /metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.client import HTTPException
from math import inf, isfinite
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

from qns.client.address import Address
from qns.errors import DocumentError, QnsError

T_SUB: Final = "qns_subscription_stable_seconds"
T_DIFF: Final = "qns_diffusion_seconds"

_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 16 * 1024 * 1024
_LINE: Final = re.compile(r'(\w+)(?:\{le="([^"]*)"\})? (\S+)')


@dataclass(frozen=True, slots=True)
class Measured:
    """A histogram: the count, the mean and the upper bound."""

    number: int
    mean_s: float
    longest_s: float
    """The upper end of the last bucket with a value, or infinity."""


@dataclass(frozen=True, slots=True)
class PeerMetrics:
    """The metrics of one peer since its start."""

    base: str
    page: str

    @classmethod
    def read(cls, peer: str) -> PeerMetrics:
        """Reads the metrics of the peer at a base address."""
        address = Address.of(peer)
        return cls(address.base, _page(address))

    def t_sub(self) -> Measured:
        return self._histogram(T_SUB, "no subscription has become stable", "--t-sub SECONDS")

    def t_diff(self) -> Measured:
        return self._histogram(T_DIFF, "no notification was delivered", "--t-diff SECONDS")

    def _histogram(self, name: str, empty: str, option: str) -> Measured:
        counts, values = _samples(self.page, name)
        number, total = values.get(f"{name}_count"), values.get(f"{name}_sum")
        if number is None or total is None or not counts or not isfinite(number + total):
            raise DocumentError(
                f"the metrics at {self.base} have no {name}",
                remedy="check that it is a QNS peer of this version",
            )
        if number <= 0:
            raise QnsError(
                f"no data yet: {empty} at {self.base} since it was started",
                remedy=f"try again later, or add {option}",
            )
        mean_s = max(0.0, total / number)
        longest_s = min((bound for bound, count in counts.items() if count >= number), default=inf)
        return Measured(int(number), mean_s, max(mean_s, longest_s))


def _page(address: Address) -> str:
    opener = build_opener(ProxyHandler({}))  # peers are on this machine: no proxy is used
    try:
        with opener.open(f"{address.base}metrics", timeout=_TIMEOUT_S) as answer:
            page: bytes = answer.read(_MOST_BYTES)
    except HTTPError as problem:
        problem.close()
        raise DocumentError(
            f"no metrics at {address.base}: status {problem.code}",
            remedy="check that it is a QNS peer",
        ) from None
    except URLError as problem:
        reason = problem.reason
        cause = reason if isinstance(reason, BaseException) else problem
        raise address.unreachable(cause, may_be_done=False) from None
    except (OSError, HTTPException) as problem:
        raise address.unreachable(problem, may_be_done=False) from None
    return page.decode("utf-8", errors="replace")


def _samples(page: str, name: str) -> tuple[dict[float, float], dict[str, float]]:
    """Returns the cumulative buckets of a histogram by upper end, and its sum and count."""
    counts: dict[float, float] = {}
    values: dict[str, float] = {}
    for line in page.splitlines():
        found = _LINE.fullmatch(line.strip()) if line.startswith(name) else None
        if found is None:
            continue
        sample, bound, text = found.groups()
        try:
            value = float(text)
            if bound is None:
                values[sample] = value
            else:
                counts[float(bound)] = value
        except ValueError:  # a value that is no number counts as missing
            continue
    return counts, values
