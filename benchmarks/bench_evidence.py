"""Measures evidence: what keeping it costs a consumer, in time and on the disk.

One producer seals notifications for two consumers, each with a store on a real disk. One keeps
evidence, the other, the **baseline**, does not. Both handle each call of the producer one after the
other: they check the seal, accept, match, deliver to one user, commit and answer. Events have about
1 KB.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, time
from typing import Any, Final

from benchmarks.report import figure, micro, table, times
from benchmarks.timing import OnProgress
from qns.cbr.index import MatchingIndex
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Envelope, Notify
from qns.edl.requests import Send
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.new_certificate import new_certificate
from qns.federation.seal_keys import FileSigner
from qns.iil.requests import Publish, Subscribe
from qns.peer.gateway import Gateway
from qns.peer.inputs import Answered, Effects, Input, Received
from qns.peer.ports import Store
from qns.peer.recovery import Settings
from qns.peer.tuning import Tuning
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore
from qns.store.sqlite import SqliteStore

NUMBERS: Final = (1, 10, 100)
"""Notifications in a commit."""
_PRODUCER, _WITHOUT, _WITH = "P", "Without", "With"
_EVENT_CHARACTERS: Final = 780
_KEEP_S: Final = 1e9


class Consumer:
    def __init__(self, settings: Settings, path: Path, document: bytes, now: float) -> None:
        self.path = path
        self.store = SqliteStore(path, low_water_bytes=0)
        self.gateway = _opened(settings, self.store, document, now)
        self.wall_s: list[float] = []
        """How long each call with notifications took."""
        self.cpu_s: list[float] = []

    def run(self, inputs: list[Input], now: float, *, is_measured: bool) -> Effects:
        wall, cpu = perf_counter(), process_time()
        effects = self.gateway.run(inputs, now)
        if is_measured:
            self.wall_s.append(perf_counter() - wall)
            self.cpu_s.append(process_time() - cpu)
        return effects

    @property
    def store_bytes(self) -> int:
        pages, page = (int(self.store.facts()[name]) for name in ("page_count", "page_size"))
        free = int(self.store.facts()["freelist_count"])
        return (pages - free) * page


class Federated:
    """The three peers; what one sends is handled by the other at once."""

    def __init__(self, folder: Path) -> None:
        self.now = time()
        names = (_PRODUCER, _WITHOUT, _WITH)
        made = new_certificate(_PRODUCER, self.now, is_tls=False)
        federation = Federation.of("bench", WEATHER, dict.fromkeys(names, ("Report",)))
        federation = federation.with_certificates(_PRODUCER, seals=(made.certificate,))
        document = write_federation(federation)
        signer = FileSigner.read(made.certificate, made.key)
        tuning = Tuning(gossip_every_s=1e9)
        self.producer = _opened(
            Settings(_PRODUCER, tuning, MatchingIndex, signer=signer),
            MemoryStore(),
            document,
            self.now,
        )
        self.consumers = {
            name: Consumer(
                Settings(name, tuning, MatchingIndex, keep_evidence_s=keep_s),
                folder / f"{name}.db",
                document,
                self.now,
            )
            for name, keep_s in ((_WITHOUT, None), (_WITH, _KEEP_S))
        }
        for name, consumer in self.consumers.items():
            self.settle(name, consumer.gateway.first)
            self.settle(name, self.run(name, [Subscribe("user", "Report", id="1")]))
        self.settle(_PRODUCER, self.producer.first)

    def run(self, name: str, inputs: list[Input], *, is_measured: bool = False) -> Effects:
        self.now += 0.001
        if name == _PRODUCER:
            return self.producer.run(inputs, self.now)
        return self.consumers[name].run(inputs, self.now, is_measured=is_measured)

    def settle(self, name: str, effects: Effects) -> None:
        """Lets the others answer what a peer sends, until nothing is sent any more."""
        waiting = [(name, send) for send in effects.sends]
        while waiting:
            sender, send = waiting.pop(0)
            answer, more = self.answered(send)
            waiting += [(send.to, each) for each in more]
            if isinstance(answer, Envelope):
                answered = self.run(sender, [Answered.of(send.number, answer)])
                waiting += [(sender, each) for each in answered.sends]

    def answered(self, send: Send) -> tuple[object, list[Send]]:
        is_measured = isinstance(send.envelope.body, Notify)
        effects = self.run(send.to, [Received(send.envelope)], is_measured=is_measured)
        (answer,) = effects.answers
        return answer, effects.sends

    def publish(self, requests: Sequence[Publish]) -> None:
        self.settle(_PRODUCER, self.run(_PRODUCER, list(requests)))

    def close(self) -> None:
        for consumer in self.consumers.values():
            consumer.store.close()


def _opened(settings: Settings, store: Store, document: bytes, now: float) -> Gateway:
    return Gateway.open(settings, store, MemoryLineage(), document=document, nonce="bench", now=now)


def publications(count: int) -> list[Publish]:
    reader = EventReader(WEATHER)
    data = {"Region": "x" * _EVENT_CHARACTERS}
    return [
        Publish(
            reader.from_fields(
                {"id": f"e{n}", "class": "Report", "source": _PRODUCER, "data": data}
            )
        )
        for n in range(count)
    ]


def run(quick: bool, on_progress: OnProgress) -> list[dict[str, Any]]:
    rows = []
    for number in NUMBERS:
        on_progress(f"evidence with {number} in a commit")
        count = (100 if quick else 1_000) * min(number, 10)
        with TemporaryDirectory(prefix="qns-bench-", dir=".") as folder:
            rows.append(_measured(Path(folder), number, count))
    return rows


def _measured(folder: Path, number: int, count: int) -> dict[str, Any]:
    federated = Federated(folder)
    before = {name: each.store_bytes for name, each in federated.consumers.items()}
    requests = publications(count)
    for at in range(0, count, number):
        federated.publish(requests[at : at + number])
    row: dict[str, Any] = {"notifications": number, "events": count}
    for name, consumer in federated.consumers.items():
        calls = len(consumer.wall_s)
        assert calls == count // number, (name, calls)
        row[f"{name.lower()}_s"] = median(consumer.wall_s) / number
        row[f"{name.lower()}_cpu_s"] = median(consumer.cpu_s) / number
        row[f"{name.lower()}_bytes"] = (consumer.store_bytes - before[name]) / count
    federated.close()
    return row


def text(rows: list[dict[str, Any]]) -> str:
    cells = [
        [
            f"{row['notifications']} in a commit",
            figure(1 / row["without_s"]),
            figure(1 / row["with_s"]),
            times(row["without_s"] / row["with_s"]),
            micro(row["without_cpu_s"]),
            micro(row["with_cpu_s"]),
            figure(row["with_bytes"] - row["without_bytes"]),
        ]
        for row in rows
    ]
    headers = [
        *("notifications", "without: per second", "with: per second", "ratio"),
        *("without: CPU", "with: CPU", "bytes of evidence"),
    ]
    return (
        "# Evidence\n\nA consumer that keeps evidence beside one that does not, the baseline; "
        "medians of the calls of one producer, each with a commit on the disk. Events of about "
        "1 KB; the last column is what the store grows more for each event.\n\n"
        f"{table(headers, cells)}"
    )
