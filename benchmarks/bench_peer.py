"""Measures the peer's core: one producer in memory, 10 consumers, 10,000 subscriptions at each.

The producer gets the consumers' merge subscriptions, then publishes. Every `Notify` is answered as
its receiver would answer it, and nothing fails. The baseline is the **limit**: the same events
matched against the same External Merge Table, and nothing else. One consumer is measured too: it
reads, orders, matches and delivers what it gets. The steps of the producer are also measured
separately, on the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks import workload
from benchmarks.report import figure, micro, table, times
from benchmarks.timing import OnProgress, cpu_seconds, interleaved, medians
from qns.cbr.covering import CoveringOrder
from qns.cbr.event import Event
from qns.cbr.index import MatchingIndex
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.printing import write_readable
from qns.d2q.subscription_xml import write_subscription
from qns.edl.external_matcher import ExternalMatcher
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    ChangeSub,
    Done,
    Envelope,
    Gossip,
    Hello,
    Notification,
    Notified,
    Notify,
    Outcome,
    Standing,
    SubChanged,
)
from qns.edl.requests import Send
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import Publish, Subscribe
from qns.peer.gateway import Gateway
from qns.peer.inputs import Answered, Effects, Input, Received
from qns.peer.recovery import Settings
from qns.peer.status import PeerStatus
from qns.peer.tuning import Tuning
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore

CONSUMERS = [f"Org{number}" for number in range(10)]
PRODUCER = "Producer"
BATCHES = (1, 10, 100)


class Producer:
    """A gateway whose requests are answered at once."""

    def __init__(self, views: dict[str, list[str]]) -> None:
        hosts = dict.fromkeys([PRODUCER, *CONSUMERS], workload.CLASSES)
        federation = Federation.of("bench", workload.SCHEMA, hosts, capability=len(CONSUMERS))
        self.document = write_federation(federation)
        self.gateway = open_gateway(PRODUCER, self.document)
        self.now = 0.0
        self.carried: list[Notification] = []
        self.settle(self.gateway.first)
        for name, texts in views.items():
            change = ChangeSub(1, 1, 1, None, 1, tuple(texts), (), str(Digest(texts)))
            while not self.accepts(name, change):  # a large view is read in several turns
                pass

    def accepts(self, name: str, change: ChangeSub) -> bool:
        """Sends the view of a consumer; returns False if the producer is still reading it."""
        effects = self.run([Received(Envelope(name, 1, (), change))])
        (answer,) = effects.answers
        self.settle(effects)
        assert isinstance(answer, Envelope)
        assert isinstance(answer.body, SubChanged) or not answer.body.permanent, answer.body
        return isinstance(answer.body, SubChanged)

    def run(self, inputs: Sequence[Input]) -> Effects:
        self.now += 0.001
        return self.gateway.run(inputs, self.now)

    def publish(self, events: Sequence[Event], batch: int) -> None:
        for at in range(0, len(events), batch):
            self.settle(self.run([Publish(event) for event in events[at : at + batch]]))

    def settle(self, effects: Effects) -> None:
        while effects.sends:
            effects = self.run([self.answer(send) for send in effects.sends])

    def answer(self, send: Send) -> Answered:
        body = send.envelope.body
        if isinstance(body, Notify):
            items = [each for each in body.items if isinstance(each, Notification)]
            if send.to == CONSUMERS[0]:
                self.carried.extend(items)
            last = max(each.entry.number for each in items)
            reply: Any = Notified((Outcome(True),) * len(items), Standing(1, 1, 1, 1, last))
        elif isinstance(body, Hello):
            reply = Hello(1, 1, 0, (), 1, 0, str(Digest()), Standing(1, 1, 1, 1, 0), 0, "")
        elif isinstance(body, Gossip):  # a large view has been read
            reply = Done()
        else:
            raise TypeError(f"unexpected {type(body).__name__} to {send.to}")
        return Answered(send.number, Envelope(send.to, 1, (), reply))


def open_gateway(name: str, document: bytes) -> Gateway:
    tuning = Tuning(gossip_every_s=1e9)
    settings = Settings(name, tuning, MatchingIndex)
    return Gateway.open(
        settings, MemoryStore(), MemoryLineage(), document=document, nonce="bench", now=0.0
    )


def views(per_consumer: int, on_progress: OnProgress) -> dict[str, list[str]]:
    """Returns, for each consumer, the elements of its view for the producer."""
    found = {}
    for nth, name in enumerate(CONSUMERS):
        on_progress(f"peer: merging the subscriptions of {name}")
        order: CoveringOrder[str] = CoveringOrder()
        for id, subscription in workload.subscriptions(per_consumer, seed=nth).items():
            seen = subscription.projected(PRODUCER, workload.CLASSES)
            if seen is not None:
                order.subscribe(str(id), seen)
        merged = order.merge_set
        found[name] = [write_subscription(each, workload.SCHEMA).decode() for each in merged]
    return found


def _matcher(status: PeerStatus) -> ExternalMatcher:
    """Returns an External Matcher with the content of the producer's External Merge Table."""
    matcher = ExternalMatcher(MatchingIndex())
    for name in CONSUMERS:
        for text, subscription in status.external_view(name).items():
            matcher.insert(name, text, subscription)
    return matcher


def events_of(number: int, seed: int) -> list[Event]:
    reader = EventReader(workload.SCHEMA)
    return [
        reader.from_fields({**fields, "id": f"{seed}-{nth}", "source": PRODUCER})
        for nth, fields in enumerate(workload.events(number, seed=seed))
    ]


def run(quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    per_consumer, number, repeats = (500, 200, 2) if quick else (10_000, 2_000, 5)
    sent = views(per_consumer, on_progress)
    on_progress("peer: sending the views to the producer")
    producer = Producer(sent)
    matcher = _matcher(producer.gateway.status)
    seeds = iter(range(10**9))
    on_progress("peer: publishing")

    def limit() -> None:
        for event in events_of_next:
            matcher.interested(event)

    seconds: dict[str, float] = {}
    events_of_next = events_of(number, next(seeds))
    interested = sum(len(matcher.interested(event)) for event in events_of_next)
    rounds: dict[str, list[float]] = {}
    for _ in range(repeats):
        for batch in BATCHES:
            fresh = events_of(number, next(seeds))
            took = cpu_seconds(lambda fresh=fresh, batch=batch: producer.publish(fresh, batch))
            rounds.setdefault(f"publish, {batch} per turn", []).append(took)
        rounds.setdefault("limit: match only", []).append(cpu_seconds(limit))
    seconds = medians(rounds)
    on_progress("peer: the steps")
    steps = _steps(events_of_next, matcher.interested, repeats)
    on_progress("peer: one consumer")
    return {
        "subscriptions_per_consumer": per_consumer,
        "elements": {name: len(texts) for name, texts in sent.items()},
        "events": number,
        "interested_per_event": interested / number,
        "seconds": seconds,
        "steps": steps,
        "consumer": _consumer(producer, per_consumer, on_progress),
    }


def _steps(events: list[Event], match: Callable[[Event], object], repeats: int) -> dict[str, float]:
    """Returns the seconds of each step for all events."""

    def each(work: Callable[[Event], object]) -> Callable[[], object]:
        return lambda: [work(event) for event in events]

    works = {
        "external matcher": each(match),
        "write the event as XML": each(lambda event: write_event(event, workload.SCHEMA)),
    }
    return medians(interleaved(works, repeats))


def _consumer(producer: Producer, subscriptions: int, on_progress: OnProgress) -> dict[str, Any]:
    """Measures one consumer with all its users, which gets the producer's notifications, ten in a
    call."""
    name = CONSUMERS[0]
    gateway = open_gateway(name, producer.document)
    users = workload.subscriptions(subscriptions, seed=0)
    requests = [
        Subscribe("user", write_readable(each, workload.SCHEMA), id=str(id))
        for id, each in users.items()
    ]
    on_progress(f"peer: {len(requests):,} users of {name} subscribe")
    _settle(gateway, gateway.first)
    subscribing = cpu_seconds(lambda: _settle(gateway, gateway.run(requests, 0.0)))
    items = producer.carried
    calls = [tuple(items[at : at + 10]) for at in range(0, len(items), 10)]

    def receive() -> None:
        for nth, call in enumerate(calls):
            envelope = Envelope(PRODUCER, 1, (), Notify(call))
            gateway.run([Received(envelope)], nth * 0.001)

    receiving = cpu_seconds(receive)
    last_numbers = {each.producer: each.last for each in gateway.status.inbound()}
    assert last_numbers[PRODUCER] == len(items)
    return {
        "subscribe_seconds": subscribing,
        "notifications": len(items),
        "notify_seconds": receiving,
        "deliveries": _deliveries(gateway, users),
    }


def _settle(gateway: Gateway, effects: Effects) -> None:
    """Answers a consumer as producers without events for it do."""
    while effects.sends:
        inputs = []
        for send in effects.sends:
            body = send.envelope.body
            if isinstance(body, Hello):
                reply: Any = Hello(1, 1, 0, (), 1, 0, str(Digest()), Standing(1, 1, 1, 1, 0), 0, "")
            elif isinstance(body, ChangeSub):
                reply = SubChanged(body.version, 1, 0, 1, ())
            else:
                raise TypeError(f"unexpected {type(body).__name__} to {send.to}")
            inputs.append(Answered(send.number, Envelope(send.to, 1, (), reply)))
        effects = gateway.run(inputs, 0.0)


def _deliveries(gateway: Gateway, users: Iterable[Any]) -> int:
    return sum(gateway.status.delivered(str(id)) for id in users)


def text(results: dict[str, Any]) -> str:
    number, seconds = results["events"], results["seconds"]
    limit = seconds["limit: match only"]
    rows = [
        [what, figure(number / took), micro(took / number), times(limit / took)]
        for what, took in seconds.items()
    ]
    steps = [[what, micro(took / number)] for what, took in results["steps"].items()]
    whole = seconds["publish, 100 per turn"] / number
    others = whole - sum(results["steps"].values()) / number
    steps.append(["numbers, rows, tree, parcels, answers, commit in memory", micro(others)])
    consumer = results["consumer"]
    received = consumer["notifications"]
    elements = sum(results["elements"].values())
    return "\n\n".join(
        (
            "# The peer's core",
            f"One producer, {len(results['elements'])} consumers with "
            f"{results['subscriptions_per_consumer']:,} subscriptions each, which merge to "
            f"{elements:,} elements; an event goes to {results['interested_per_event']:.1f} of "
            "them. Memory store, one thread, CPU time, medians; answers included.",
            table(["producer", "events/s", "an event", "of the limit"], rows),
            table(["step, 100 events per turn", "an event"], steps),
            f"One consumer: a subscription costs "
            f"{micro(consumer['subscribe_seconds'] / results['subscriptions_per_consumer'])} "
            f"(parsing included), a notification {micro(consumer['notify_seconds'] / received)} "
            f"({figure(received / consumer['notify_seconds'])}/s) with "
            f"{consumer['deliveries'] / received:.1f} deliveries each.",
        )
    )
