"""Metrics: figures for Prometheus. The peer is asked when somebody looks; in between it counts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from qns.peer import Peer
from qns.runtime.driver import Driver
from qns.runtime.health import unreachable
from qns.runtime.traffic import Traffic
from qns.turn import Record

_COMMIT_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_DIFFUSION_S: Final = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.5, 1, 2, 5, 15, 60, 300, 3600, 86400)


class Metrics:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._registry = CollectorRegistry()
        self._commit = _Histogram("qns_commit_seconds", "How long a commit took.", _COMMIT_S)
        self._stable = _Histogram(
            "qns_subscription_stable_seconds",
            "T_sub: from a subscription to its being stable at every producer.",
            _DIFFUSION_S,
        )
        self._diffusion = _Histogram(
            "qns_diffusion_seconds",
            "T_diff: from an event's publication, on its producer's clock, to a delivery here; "
            "those of more than a day are left out.",
            _DIFFUSION_S,
        )
        for histogram in (self._commit, self._stable, self._diffusion):
            self._registry.register(histogram)
        self._subscribed: dict[str, float] = {}
        """Subscriptions that are not stable everywhere yet -> since when they wait."""

    def show(self, driver: Driver) -> None:
        """From now on the page tells of this driver's peer too."""
        self._registry.register(_OfPeer(driver, self._traffic))

    def page(self) -> tuple[bytes, str]:
        """What Prometheus reads, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def committed(self, seconds: float) -> None:
        self._commit.observe(seconds)

    def watch(self, peer: Peer, records: list[Record], now: float) -> None:
        """The records of a turn that was committed."""
        for record in records:
            match record["do"]:
                case "ntfy":
                    self._delivered(peer, record, now)
                case "sub":
                    self._subscribed[record["sub"]] = now
                    self._settle(peer, record["sub"], now)
                case "stable":
                    self._settle(peer, record["sub"], now)
                case "usub":
                    self._subscribed.pop(record["sub"], None)

    def _delivered(self, peer: Peer, record: Record, now: float) -> None:
        """An event that is older than a day was not on its way so long: its date is another's."""
        known = peer.log.get((record["source"], record["event"]))
        if known is not None and known.event.published_us is not None:
            age_s = now - known.event.published_us / 1_000_000
            if age_s <= _DIFFUSION_S[-1]:
                self._diffusion.observe(max(0.0, age_s))

    def _settle(self, peer: Peer, subscription: str, now: float) -> None:
        if subscription in self._subscribed and not peer.iil.stability.pending(subscription):
            self._stable.observe(now - self._subscribed.pop(subscription))


class _Histogram(Collector):
    """For one thread, and so without the locks of prometheus_client's: it counts deliveries."""

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


class _OfPeer(Collector):
    def __init__(self, driver: Driver, traffic: Traffic) -> None:
        self._driver = driver
        self._traffic = traffic

    def describe(self) -> list[Metric]:
        return []  # so that it is not asked before there is a peer

    def collect(self) -> Iterator[Metric]:
        peer = self._driver.peer
        yield from self._process(peer)
        yield from _of_consumers(peer)
        yield from _of_queues(peer)
        yield from _of_merging(peer)
        yield from self._soap()

    def _process(self, peer: Peer) -> Iterator[Metric]:
        driver = self._driver
        yield _gauge("qns_epoch", "Counts the starts of this peer.", peer.identity.epoch)
        yield _gauge(
            "qns_federation_document", "The version in force here.", peer.federation.version
        )
        yield _gauge(
            "qns_peers_unreachable", "Other peers that do not answer.", len(unreachable(peer))
        )
        yield _gauge("qns_inputs_waiting", "Requests that wait for a turn.", driver.waiting)
        yield _gauge("qns_pulls_waiting", "Pulls that wait for a first delivery.", driver.pulls)
        yield CounterMetricFamily(
            "qns_commit_failures", "Turns that were not committed.", driver.commit_failures
        )

    def _soap(self) -> Iterator[Metric]:
        messages = CounterMetricFamily(
            "qns_soap_messages",
            "SOAP calls, received from others or sent to them, by what came of them.",
            labels=("port", "operation", "direction", "outcome"),
        )
        for kind, number in list(self._traffic.messages.items()):
            messages.add_metric(kind, number)
        yield messages
        size = CounterMetricFamily(
            "qns_soap_bytes", "Bytes of SOAP that came in and went out.", labels=("direction",)
        )
        size.add_metric(("in",), self._traffic.bytes_in)
        size.add_metric(("out",), self._traffic.bytes_out)
        yield size


def _of_consumers(peer: Peer) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        "qns_consumer_lag_events",
        "Events owed to a consumer and not acknowledged.",
        labels=("consumer",),
    )
    for name, stream in peer.producer.streams.items():
        lag.add_metric((name,), stream.number - stream.acknowledged)
    yield lag


def _of_queues(peer: Peer) -> Iterator[Metric]:
    dispatcher = peer.iil.dispatcher
    custody = peer.edl.forwarder.custody
    deliveries = sum(dispatcher.depth(subscription.id) for subscription in peer.iil.table)
    early = sum(len(stream.early) for stream in peer.consumer.streams.values())
    yield _gauge("qns_events_kept", "Events that somebody still needs.", len(peer.log))
    yield _gauge("qns_deliveries_waiting", "Deliveries that users have not read.", deliveries)
    yield _gauge("qns_custody_parcels", "Promises to bring events further.", len(custody))
    yield _gauge("qns_early_entries", "Entries held back for an earlier one.", early)
    yield _gauge(
        "qns_dead_letters", "Notifications that a receiver refused.", len(custody.dead_letters)
    )


def _of_merging(peer: Peer) -> Iterator[Metric]:
    subscriptions = len(peer.iil.table)
    yield _gauge("qns_subscriptions", "Subscriptions of users here.", subscriptions)
    elements = GaugeMetricFamily(
        "qns_view_elements",
        "Elements of the merge subscription that a producer has to know.",
        labels=("producer",),
    )
    ratio = GaugeMetricFamily(
        "qns_merge_ratio",
        "Elements that a producer has to know for each subscription: less is better.",
        labels=("producer",),
    )
    for name, view in peer.consumer.merger.views.items():
        elements.add_metric((name,), len(view.texts))
        if subscriptions:
            ratio.add_metric((name,), len(view.texts) / subscriptions)
    yield elements
    yield ratio


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value)
