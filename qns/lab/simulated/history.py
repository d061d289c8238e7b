"""History: a run of lab brokers as the records that `qns.history.judge` reads.

Every broker is an organisation. Once no message is under way, all earlier subscriptions are stable
at every broker, and from then on each matching event must be delivered. Coordinates must be rounded
(`space.py`).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from qns.cbr.rectangles import Rectangle
from qns.d2q.event_json import write_event_json
from qns.d2q.schema_xml import write_schema
from qns.history.records import Record, new_record
from qns.lab.simulated.space import CLASS, SCHEMA, event_of, organisation, subscription_text
from qns.lab.simulated.system import Delivery, Publication, System

_INCARNATION: Final = 1
_EPOCH: Final = 1


class RecordedRun:
    """A system with the record of its history. It must be used through this class only."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._records: list[Record] = [
            new_record("schema", 0.0, xml=write_schema(SCHEMA).decode()),
            *(
                new_record("join", 0.0, organisation(each), joined=_INCARNATION)
                for each in range(len(system.brokers))
            ),
        ]
        self._recorded = 0
        """The number of deliveries that are recorded."""
        self._fresh: dict[str, int] = {}
        """Subscription -> its broker, for those that some broker may not have received yet."""
        self._settled: dict[str, int] = {}
        self._stable: dict[int, dict[str, None]] = {}
        """Publisher -> the subscriptions that are recorded as stable there."""
        self._published: Counter[int] = Counter()
        self._publishers: dict[str, int] = {}
        """Event -> its publisher."""

    # --- actions of users -------------------------------------------------------------------------

    def subscribe(self, broker: int, id: str, rectangle: Rectangle) -> None:
        self._record(broker, "sub", sub=id, text=subscription_text(rectangle), group="")
        self._fresh[id] = broker
        self.system.brokers[broker].subscribe(id, rectangle)

    def unsubscribe(self, broker: int, id: str) -> None:
        self._record(broker, "usub", sub=id, why="unsubscribed")
        self._fresh.pop(id, None)
        self._settled.pop(id, None)
        self.system.brokers[broker].unsubscribe(id)

    def publish(self, event: Publication) -> None:
        publisher = event.publisher
        self._record_stable(publisher)
        self._published[publisher] += 1
        self._publishers[event.id] = publisher
        self._record(
            publisher,
            "pub",
            event=write_event_json(event_of(*event), SCHEMA),
            joined=_INCARNATION,
            epoch=_EPOCH,
            sequence=self._published[publisher],
        )
        self.system.brokers[publisher].publish(event)

    def settle(self) -> None:
        """Runs until no message is under way; then all earlier subscriptions are stable."""
        self.system.settle()
        self._settled |= self._fresh
        self._fresh.clear()

    def calm(self) -> None:
        """Settles and records it, so that the judge checks that nothing is undelivered."""
        self.settle()
        self._record_deliveries()
        self._records.append(new_record("calm", self.now_ms / 1000))

    # --- observations -----------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        return self.system.engine.now

    @property
    def sent(self) -> Counter[str]:
        return self.system.sent

    @property
    def hops(self) -> int:
        return self.system.sent["notification"] + self.system.sent["reroute"]

    @property
    def published(self) -> int:
        """The number of events."""
        return self._published.total()

    @property
    def deliveries(self) -> list[Delivery]:
        return self.system.deliveries

    @property
    def table_sizes(self) -> list[int]:
        return [each.table_size for each in self.system.brokers]

    def reached(self, event: str) -> set[int]:
        return set(self.system.reached.get(event, ()))

    def records(self) -> list[Record]:
        self._record_deliveries()
        return self._records

    # --- records ----------------------------------------------------------------------------------

    def _record(self, broker: int, do: str, **fields: object) -> None:
        self._record_deliveries()  # they happened before this
        self._records.append(new_record(do, self.now_ms / 1000, organisation(broker), **fields))

    def _record_stable(self, publisher: int) -> None:
        """Records what is stable at a publisher only when it publishes, because most never do."""
        known = self._stable.setdefault(publisher, {})
        for id, broker in self._settled.items():
            if id not in known and broker != publisher:
                known[id] = None
                self._record(
                    broker,
                    "stable",
                    sub=id,
                    producer=organisation(publisher),
                    joined=_INCARNATION,
                    epoch=_EPOCH,
                    classes=[CLASS],
                )

    def _record_deliveries(self) -> None:
        for each in self.system.deliveries[self._recorded :]:
            self._records.append(
                new_record(
                    "ntfy",
                    each.at_ms / 1000,
                    organisation(each.broker),
                    sub=each.subscription,
                    group="",
                    source=organisation(self._publishers[each.event]),
                    event=each.event,
                )
            )
        self._recorded = len(self.system.deliveries)
