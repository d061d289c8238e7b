"""Quotas: what the requests of one member may cost, so that it cannot take the peer from others.

Each member has an account with three token buckets: its requests, their bytes, and the CPU time
that they take. A bucket refills steadily, up to what flows into it in a second. A request is
refused while a bucket is empty. CPU time is charged afterwards, so that one request may overdraw
the account.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from time import monotonic
from typing import Final, NamedTuple

from qns.errors import Busy
from qns.peer.tuning import Tuning

BURST_S: Final = 1.0
"""A full bucket has what flows into it in this time."""
REQUESTS: Final = "requests_per_s"
BYTES: Final = "bytes_per_s"
CPU: Final = "cpu_share"
QUOTAS: Final[Mapping[str, str]] = {
    REQUESTS: "{:,} requests a second",
    BYTES: "{:,} bytes a second",
    CPU: "{:g} seconds of CPU time a second",
}
"""The settings, with what each allows a member."""
_SHORTEST_WAIT_S: Final = 0.001
SHOWN_S: Final = 600.0
"""How long health names a member that has exceeded a quota."""


class QuotaExceeded(Busy):
    """The request is refused because its sender has used up a quota."""


class Excess(NamedTuple):
    """How a member has exceeded a quota."""

    member: str
    quota: str
    refused: int
    """The requests that were refused since the start."""
    at: float
    """When the last one was refused, on the monotonic clock."""


class Bucket:
    """Refills at a rate; is overdrawn by at most as much as fits in it."""

    __slots__ = ("_at", "_level", "_most", "rate")

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._most = self._level = rate * BURST_S
        self._at = now

    def wait_s(self, now: float) -> float:
        """Returns in how many seconds something is in the bucket; 0 if something is."""
        self._refill(now)
        return 0.0 if self._level > 0 else max(_SHORTEST_WAIT_S, -self._level / self.rate)

    def take(self, now: float, amount: float) -> None:
        self._refill(now)
        self._level = max(-self._most, self._level - amount)

    def _refill(self, now: float) -> None:
        self._level = min(self._most, self._level + (now - self._at) * self.rate)
        self._at = now


class _Account:
    """The buckets of one member."""

    __slots__ = ("buckets", "refused", "refused_at")

    def __init__(self, tuning: Tuning, now: float) -> None:
        rates = {
            REQUESTS: tuning.requests_per_s,
            BYTES: tuning.bytes_per_s,
            CPU: tuning.cpu_share,
        }
        self.buckets = {quota: Bucket(rate, now) for quota, rate in rates.items()}
        self.refused: Counter[str] = Counter()
        self.refused_at: dict[str, float] = {}


@dataclass(slots=True, eq=False)
class Quotas:
    tuning: Tuning = field(default_factory=Tuning)
    members: Callable[[], Container[str]] = lambda: ()
    """Returns the members of the federation: only they have accounts."""
    now: Callable[[], float] = monotonic
    _accounts: dict[str, _Account] = field(default_factory=dict)

    def admit(self, member: str, size: int) -> QuotaExceeded | None:
        """Charges a request of this size; returns why it is refused, which costs nothing."""
        account = self._account(member)
        if account is None:
            return None
        now, buckets = self.now(), account.buckets
        for quota, bucket in buckets.items():
            wait_s = bucket.wait_s(now)
            if wait_s:
                account.refused[quota] += 1
                account.refused_at[quota] = now
                return _exceeded(member, quota, bucket.rate, wait_s)
        buckets[REQUESTS].take(now, 1)
        buckets[BYTES].take(now, size)
        return None

    def charge(self, member: str, seconds: float) -> None:
        """Charges CPU time that requests of a member took."""
        account = self._account(member)
        if account is not None:
            account.buckets[CPU].take(self.now(), seconds)

    def charge_all(self, costs: Mapping[str, float]) -> None:
        """Charges each member what its requests have cost."""
        for member, seconds in costs.items():
            self.charge(member, seconds)

    def excesses(self) -> Iterator[Excess]:
        """Yields every member that has exceeded a quota since the start, with the quota."""
        for member, account in sorted(self._accounts.items()):
            for quota, refused in sorted(account.refused.items()):
                yield Excess(member, quota, refused, account.refused_at[quota])

    def recent_excesses(self) -> Iterator[Excess]:
        """Yields those that an operator should look at."""
        since = self.now() - SHOWN_S
        return (each for each in self.excesses() if each.at >= since)

    def _account(self, member: str) -> _Account | None:
        account = self._accounts.get(member)
        if account is None and member in self.members():
            account = self._accounts[member] = _Account(self.tuning, self.now())
        return account


def _exceeded(member: str, quota: str, limit: float, wait_s: float) -> QuotaExceeded:
    problem = QuotaExceeded(
        f"{member} sends more than the quota {quota} of this peer allows a member: "
        f"{QUOTAS[quota].format(limit)}",
        remedy=f"try again in {ceil(wait_s):,} s",
    )
    problem.retry_after_s = wait_s
    return problem
