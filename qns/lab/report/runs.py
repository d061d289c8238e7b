"""Runs: the windows of one kind of network by variant and seed, and the estimates over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from qns.lab.experiments.self_organisation import CBR, Window, messages_per_operation
from qns.report.statistics import Estimate, estimate

Value = Callable[[Window], float]


class Runs:
    """Every variant has the same seeds and the same sizes, because it has the same workload."""

    def __init__(self, windows: Iterable[Window]) -> None:
        self._by: dict[str, dict[int, list[Window]]] = {}
        for window in sorted(windows, key=lambda each: each.subscriptions):
            self._by.setdefault(window.variant, {}).setdefault(window.seed, []).append(window)

    def __bool__(self) -> bool:
        return bool(self._by)

    @property
    def variants(self) -> list[str]:
        return list(self._by)

    def seeds(self) -> list[int]:
        return sorted(self._by[CBR])

    @property
    def sizes(self) -> list[int]:
        seeds = next(iter(self._by.values()), {})
        return [window.subscriptions for window in next(iter(seeds.values()), [])]

    @property
    def last(self) -> int:
        return self.sizes[-1]

    def windows(self, variant: str, seed: int) -> list[Window]:
        return self._by[variant][seed]

    def over_seeds(self, of: Callable[[int], float]) -> Estimate:
        return estimate([of(seed) for seed in self.seeds()])

    # --- along the subscriptions ------------------------------------------------------------------

    def at(self, variant: str, seed: int, size: int) -> Window:
        return next(each for each in self._by[variant][seed] if each.subscriptions == size)

    def points(self, variant: str, value: Value) -> tuple[tuple[float, Estimate], ...]:
        return tuple((float(size), self.there(variant, size, value)) for size in self.sizes)

    def there(self, variant: str, size: int, value: Value) -> Estimate:
        return self.over_seeds(lambda seed: value(self.at(variant, seed, size)))

    def mean(self, variant: str, value: Value) -> Estimate:
        """The mean over all windows of a seed, then over seeds."""
        return self.over_seeds(lambda seed: self.mean_of(variant, seed, value))

    def mean_of(self, variant: str, seed: int, value: Value) -> float:
        return fmean(map(value, self._by[variant][seed]))

    # --- against CBR ------------------------------------------------------------------------------

    def more_than_cbr(self, variant: str, value: Value, size: int | None = None) -> Estimate:
        """The difference from CBR on the same seed, over all windows or at one size."""
        return self.over_seeds(
            lambda seed: self._of(variant, seed, value, size) - self._of(CBR, seed, value, size)
        )

    def fewer_percent(self, variant: str, value: Value, size: int | None = None) -> Estimate:
        """The percentage less than CBR on the same seed, over all windows or at one size."""

        def of(seed: int) -> float:
            cbr, there = (self._of(each, seed, value, size) for each in (CBR, variant))
            return 100 * (1 - there / cbr) if cbr else 0.0

        return self.over_seeds(of)

    def _of(self, variant: str, seed: int, value: Value, size: int | None) -> float:
        if size is None:
            return self.mean_of(variant, seed, value)
        return value(self.at(variant, seed, size))

    # --- messages per operation -------------------------------------------------------------------

    def per_operation(self, variant: str, ratio: int) -> Estimate:
        return self.over_seeds(lambda seed: self.per_operation_of(variant, seed, ratio))

    def per_operation_of(self, variant: str, seed: int, ratio: int) -> float:
        return messages_per_operation(self._by[variant][seed], ratio)

    def fewer_messages_percent(self, variant: str, ratio: int, than: str = CBR) -> Estimate:
        def of(seed: int) -> float:
            there = self.per_operation_of(variant, seed, ratio)
            return 100 * (1 - there / self.per_operation_of(than, seed, ratio))

        return self.over_seeds(of)

    def break_even(self, variant: str, seeds: Sequence[int] | None = None) -> float | None:
        """The R from which a variant has fewer messages than CBR, on the mean of seeds.

        None if there is no such R. The messages per operation of both are
        (messages per subscription + R · hops) / (1 + R), so there is at most one crossing.
        """
        chosen = self.seeds() if seeds is None else seeds
        cost = fmean(
            _per_subscription(self._by[variant][s]) - _per_subscription(self._by[CBR][s])
            for s in chosen
        )
        saved_hops = fmean(
            self.mean_of(CBR, s, _hops) - self.mean_of(variant, s, _hops) for s in chosen
        )
        if saved_hops <= 0:
            return 0.0 if cost < 0 else None
        return max(0.0, cost / saved_hops)

    def break_evens(self, variant: str) -> list[float | None]:
        """The break-even of each seed alone."""
        return [self.break_even(variant, [seed]) for seed in self.seeds()]


def _per_subscription(windows: Sequence[Window]) -> float:
    """Messages per subscription, without notifications."""
    last = windows[-1]
    return (last.subscription_messages + last.organisation_messages) / last.subscriptions


def _hops(window: Window) -> float:
    return window.hops


def forwarders(window: Window) -> float:
    return window.pure_forwarders


def between(window: Window) -> float:
    """Pure forwarders between interested brokers."""
    return window.pure_forwarders - window.way_in


def organising(window: Window) -> float:
    """Messages of self-organisation per subscription so far."""
    return window.organisation_messages / window.subscriptions


def discovery_percent(window: Window) -> float:
    all_of_it = window.organisation_messages
    return 100 * window.discovery_messages / all_of_it if all_of_it else 0.0


def even_text(break_even: float | None) -> str:
    return "never" if break_even is None else f"R = {break_even:,.0f}"


def evens_text(evens: Sequence[float | None]) -> str:
    """The range over seeds, and how many seeds have no break-even."""
    found = sorted(each for each in evens if each is not None)
    never = len(evens) - len(found)
    parts = []
    if found:
        ends = dict.fromkeys(f"{each:,.0f}" for each in (found[0], found[-1]))
        parts.append(f"{' to '.join(ends)} in single seeds")
    if never:
        parts.append(f"never in {never} of {len(evens)} seeds")
    return ", ".join(parts)
