"""Metrics: figures for Prometheus. Histograms count outcomes; gauges read the peer's status."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from qns.peer.outcomes import IncidentKind, Outcomes
from qns.peer.status import PeerStatus
from qns.runtime.driver import Driver
from qns.runtime.health import Health, free_bytes, store_bytes
from qns.runtime.quotas import Quotas
from qns.runtime.reasons import DEGRADED, FAILING, OK, ReasonKind, overall_status
from qns.runtime.traffic import Traffic

_UNKNOWN: Final = float("nan")
"""The age of a delivery that an earlier release made."""
_COMMIT_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_DIFFUSION_S: Final = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.5, 1, 2, 5, 15, 60, 300, 3600, 86400)


class Metrics:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._registry = CollectorRegistry()
        self._commit = _Histogram("qns_commit_seconds", "Duration of a commit.", _COMMIT_S)
        self._stable = _Histogram(
            "qns_subscription_stable_seconds",
            "T_sub: time from a subscription until it is stable at every producer.",
            _DIFFUSION_S,
        )
        self._diffusion = _Histogram(
            "qns_diffusion_seconds",
            "T_diff: time from an event's publication, on its producer's clock, to a delivery "
            "here; times of more than a day are not counted.",
            _DIFFUSION_S,
        )
        for histogram in (self._commit, self._stable, self._diffusion):
            self._registry.register(histogram)
        self._losses: Counter[str] = Counter()
        self._registry.register(_Losses(self._losses))
        self._subscribed: dict[str, float] = {}
        """Subscription that is not stable at every producer yet -> the time of its subscribe."""

    def show(self, driver: Driver, health: Health) -> None:
        """Adds the figures of this driver's peer, of its store and of the process to the page."""
        self._registry.register(_OfPeer(driver, health, self._traffic))
        ProcessCollector(registry=self._registry)

    def page(self) -> tuple[bytes, str]:
        """Returns the page that Prometheus reads, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def committed(self, seconds: float) -> None:
        self._commit.observe(seconds)

    def observe(self, outcomes: Outcomes, now: float) -> None:
        """Counts the outcomes of a committed turn."""
        for published_us in outcomes.published_us:
            if published_us is not None:
                self._observe_age(now - published_us / 1_000_000)
        for incident in outcomes.incidents:
            if incident.kind is IncidentKind.DROP:
                self._losses["owed"] += 1
            elif incident.kind is IncidentKind.SKIP:
                self._losses["skipped"] += _numbers_of(incident.fields)
            elif incident.kind is IncidentKind.DISCARD:
                self._losses["rejected"] += 1
            elif incident.kind is IncidentKind.WITHHOLD:
                self._losses["withheld"] += 1
        self._losses["queue"] += len(outcomes.overflows)
        for id in outcomes.subscribed:
            self._subscribed[id] = now
        for id in outcomes.stable:
            if id in self._subscribed:
                self._stable.observe(now - self._subscribed.pop(id))
        for id in outcomes.ended:
            self._subscribed.pop(id, None)

    def _observe_age(self, age_s: float) -> None:
        """Counts how long a delivery took; an age of more than a day is not a diffusion time."""
        if age_s <= _DIFFUSION_S[-1]:
            self._diffusion.observe(max(0.0, age_s))


class _Histogram(Collector):
    """A histogram for one thread: without the locks of prometheus_client, because it is hot."""

    def __init__(self, name: str, documentation: str, bounds: tuple[float, ...]) -> None:
        self._name, self._documentation, self._bounds = name, documentation, bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def describe(self) -> list[Metric]:
        return list(self.collect())

    def collect(self) -> Iterator[Metric]:
        bounds = (*map(floatToGoString, self._bounds), "+Inf")
        counts = accumulate(self._counts)
        yield HistogramMetricFamily(
            self._name,
            self._documentation,
            buckets=list(zip(bounds, counts, strict=True)),
            sum_value=self._sum,
        )


def _numbers_of(skip: Mapping[str, object]) -> int:
    first, last = skip["first"], skip["last"]
    assert isinstance(first, int)
    assert isinstance(last, int)
    return last - first + 1


class _Losses(Collector):
    """Counts what was declared as lost since the start of the process."""

    def __init__(self, losses: Mapping[str, int]) -> None:
        self._losses = losses

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "qns_declared_losses",
            "Deliveries dropped from users' queues (queue), events dropped that were owed to an "
            "organisation (owed), numbers that a producer skipped (skipped), dropped dead letters "
            "(rejected), events that an organisation may not read any more (withheld).",
            labels=("kind",),
        )
        for kind in ("queue", "owed", "skipped", "rejected", "withheld"):
            family.add_metric((kind,), self._losses[kind])
        yield family


class _OfPeer(Collector):
    def __init__(self, driver: Driver, health: Health, traffic: Traffic) -> None:
        self._driver = driver
        self._health = health
        self._traffic = traffic

    def describe(self) -> list[Metric]:
        return []  # so that `collect` is not called before there is a peer

    def collect(self) -> Iterator[Metric]:
        status = self._driver.status
        yield from self._process(status)
        yield from self._of_health()
        yield from _of_disk(self._health.store)
        yield from _of_consumers(status)
        yield _wrong_seals(status)
        yield from _of_queues(status, self._driver.now())
        yield from _of_merging(status)
        yield _refusals(self._health.quotas)
        yield from self._soap()

    def _of_health(self) -> Iterator[Metric]:
        reasons = self._health.reasons()
        current = overall_status(reasons)
        health = GaugeMetricFamily(
            "qns_health", "1 for the status of the peer at present.", labels=("status",)
        )
        for each in (OK, DEGRADED, FAILING):
            health.add_metric((each,), int(each == current))
        yield health
        why = GaugeMetricFamily(
            "qns_health_reasons", "Reasons for which the peer is not ok.", labels=("kind",)
        )
        counts = Counter(reason.kind for reason in reasons)
        for kind in ReasonKind:
            why.add_metric((kind.value,), counts[kind])
        yield why

    def _process(self, status: PeerStatus) -> Iterator[Metric]:
        driver = self._driver
        yield _gauge("qns_epoch", "Epoch of this peer: grows with every start.", status.epoch)
        yield _gauge(
            "qns_federation_document", "The version in force here.", status.federation.version
        )
        yield _gauge(
            "qns_peers_unreachable", "Other peers that do not answer.", len(status.unreachable)
        )
        yield _gauge("qns_inputs_waiting", "Requests that wait for a turn.", driver.waiting)
        yield _gauge(
            "qns_pulls_waiting", "Pulls that wait for a first delivery.", len(driver.waiters)
        )
        yield CounterMetricFamily(
            "qns_commit_failures", "Turns that were not committed.", driver.commit_failures
        )

    def _soap(self) -> Iterator[Metric]:
        messages = CounterMetricFamily(
            "qns_soap_messages",
            "SOAP calls that were received and sent, by outcome.",
            labels=("port", "operation", "direction", "outcome"),
        )
        for kind, number in list(self._traffic.messages.items()):
            messages.add_metric(kind, number)
        yield messages
        size = CounterMetricFamily(
            "qns_soap_bytes", "Bytes of SOAP that were received and sent.", labels=("direction",)
        )
        size.add_metric(("in",), self._traffic.bytes_in)
        size.add_metric(("out",), self._traffic.bytes_out)
        yield size


def _of_consumers(status: PeerStatus) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        "qns_consumer_lag_events",
        "Events owed to a consumer and not acknowledged.",
        labels=("consumer",),
    )
    size = GaugeMetricFamily(
        "qns_consumer_lag_bytes",
        "Bytes of the events owed to a consumer and not acknowledged.",
        labels=("consumer",),
    )
    for stream in status.outbound():
        lag.add_metric((stream.consumer,), stream.lag_events)
        size.add_metric((stream.consumer,), stream.lag_bytes)
    yield lag
    yield size


def _wrong_seals(status: PeerStatus) -> Metric:
    refused = CounterMetricFamily(
        "qns_wrong_seals",
        "Messages that were refused because of their seals, by the member that sent them.",
        labels=("member",),
    )
    for member, each in status.wrong_seals.items():
        refused.add_metric((member,), each.number)
    return refused


def _refusals(quotas: Quotas | None) -> Metric:
    refused = CounterMetricFamily(
        "qns_quota_refusals",
        "Requests that were refused for now because their sender has used up a quota.",
        labels=("member", "quota"),
    )
    for each in quotas.excesses() if quotas is not None else ():
        refused.add_metric((each.member, each.quota), each.refused)
    return refused


def _of_disk(store: Path) -> Iterator[Metric]:
    free = free_bytes(store)
    if free is not None:
        yield _gauge("qns_disk_free_bytes", "Free bytes on the disk of the store.", free)
    yield _gauge("qns_store_bytes", "Bytes of the files of the store.", store_bytes(store))


def _of_queues(status: PeerStatus, now: float) -> Iterator[Metric]:
    waiting, early = status.deliveries_waiting, status.early_entries
    yield _gauge("qns_events_kept", "Events that are still needed.", status.events_kept)
    yield _gauge("qns_deliveries_waiting", "Deliveries that users have not read.", waiting)
    oldest = status.oldest_unread
    age_s = 0.0 if oldest is None else max(0.0, now - oldest) if oldest else _UNKNOWN
    yield _gauge(
        "qns_oldest_unread_seconds",
        "Age of the oldest delivery that no user has acknowledged; 0 if there is none.",
        age_s,
    )
    yield _gauge(
        "qns_subscriptions_pending",
        "Subscriptions that are not stable yet, counted at each producer.",
        sum(each.subscriptions for each in status.pending()),
    )
    yield _gauge("qns_custody_parcels", "Promises to forward an event.", status.custody)
    yield _gauge("qns_early_entries", "Entries held back for an earlier one.", early)
    yield _gauge("qns_dead_letters", "Notifications that a receiver rejected.", status.dead_letters)


def _of_merging(status: PeerStatus) -> Iterator[Metric]:
    subscriptions = status.subscriptions
    yield _gauge("qns_subscriptions", "Subscriptions of users here.", subscriptions)
    elements = GaugeMetricFamily(
        "qns_view_elements",
        "Elements of the view at a producer.",
        labels=("producer",),
    )
    ratio = GaugeMetricFamily(
        "qns_merge_ratio",
        "Elements of the view at a producer for each subscription; less is better.",
        labels=("producer",),
    )
    for view in status.views():
        elements.add_metric((view.producer,), view.elements)
        if subscriptions:
            ratio.add_metric((view.producer,), view.elements / subscriptions)
    yield elements
    yield ratio


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value)
