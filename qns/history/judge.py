"""Judge: reads a history record by record and finds the guarantees that it breaks (semantics §9).

It shares no code with the peer. It keeps a state (`world.py`) that follows from the records alone.
Each rule is checked against that state just before a record changes it: `notifications.py` has
Legality, Validity, Minimality and FIFO; `queues.py` No gap in the users' queues; `streams.py` No
gap between organisations and the Minimality of crossings;
`obligations.py` Liveness and Completeness; `economy.py` Economy; `custody.py` Custody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain

from qns.d2q.schema import Schema
from qns.d2q.schema_xml import read_schema
from qns.errors import DocumentError, QnsError
from qns.history.custody import Custody
from qns.history.economy import judge_economy, judge_relay
from qns.history.lost_publications import LostPublications
from qns.history.meaning import meaning_of, plain_event
from qns.history.notifications import Notifications
from qns.history.obligations import Obligations
from qns.history.publication import Publication, availability_s
from qns.history.queues import Queues
from qns.history.records import Record, checked
from qns.history.streams import Streams
from qns.history.verdict import MOST_PER_RULE, Counts, Findings, Verdict
from qns.history.world import Stable, World


def judge(records: Iterable[Record], *, most_per_rule: int = MOST_PER_RULE) -> Verdict:
    """Returns the verdict on a whole history; raises QnsError if the history is invalid."""
    records = iter(records)
    first = next(records, None)
    if first is None or first.get("do") != "schema":
        raise DocumentError(
            "the first record is not the schema", remedy='begin with {"t": 0, "do": "schema", …}'
        ).at("record 1")
    try:
        judging = _Judging(_read_schema(checked(first)["xml"]))
    except QnsError as problem:
        raise problem.at("record 1") from None
    for record in chain((first,), records):
        judging.read(record)
    return judging.verdict(most_per_rule)


@lru_cache(maxsize=64)
def _read_schema(xml: str) -> Schema:
    try:
        return read_schema(xml)
    except QnsError as problem:
        raise _inside("the schema", problem) from None


def _inside(what: str, problem: QnsError) -> DocumentError:
    """Returns an error whose line and column refer to a text inside a record."""
    place = f", {problem.place}" if problem.place else ""
    return DocumentError(f"{what}{place}: {problem.problem}", remedy=problem.remedy)


class _Judging:
    """One reading of a history: its state, the rules and their findings."""

    def __init__(self, schema: Schema) -> None:
        self.world = World(schema, [])
        self.findings = Findings()
        self.lost = LostPublications(self.world)
        self.notifications = Notifications(self.world, self.findings, self.lost)
        self.queues = Queues(self.world, self.findings)
        self.streams = Streams(self.world, self.findings)
        self.obligations = Obligations(self.world, self.findings)
        self.custody = Custody(self.world, self.findings)
        self.relays: list[int] = []  # the relays that are not judged yet
        self._readers: dict[str, Callable[[int, Record], None]] = {
            "schema": self._schema,
            "join": self._join,
            "leave": self._leave,
            "sub": self._sub,
            "usub": self._act,
            "pause": self._act,
            "resume": self._act,
            "stable": self._stable,
            "pub": self._pub,
            "ntfy": self._ntfy,
            "lapse": self._act,
            "overflow": self._act,
            "ack": self._ack,
            "cross": self._cross,
            "take": self._consume,
            "skip": self._consume,
            "rewind": self._act,
            "drop": self._drop,
            "withhold": self._drop,
            "discard": self._act,
            "early": self.custody.hold_back,
            "promise": self._promise,
            "relay": self._relay,
            "host": self.world.host,
            "rights": self.world.change_rights,
            "start": self._start,
            "restore": self.world.restore,
            "calm": self._calm,
            "lull": self._lull,
            "ways": self._ways,
        }

    def read(self, record: Record) -> None:
        self.world.records.append(record)
        number = len(self.world.records)
        try:
            self._readers[checked(record)["do"]](number, record)
        except QnsError as problem:
            raise problem.at(f"record {number}") from None

    def verdict(self, most_per_rule: int) -> Verdict:
        world = self.world
        forgotten = self.notifications.conclude()
        void = set().union(*(each.void() for each in world.organisations.values()))
        kept = world.records
        if void:
            kept = [each for n, each in enumerate(world.records, start=1) if n not in void]
        kinds = Counter(record["do"] for record in kept)
        counts = Counts(
            records=len(world.records),
            events=kinds["pub"],
            subscriptions=kinds["sub"],
            notifications=kinds["ntfy"],
            void=len(void),
            lost=forgotten
            + sum(each.is_lost for o in world.organisations.values() for each in o.published),
            skipped=sum(r["last"] - r["first"] + 1 for r in kept if r["do"] == "skip"),
            dropped=kinds["drop"],
            withheld=kinds["withhold"],
            discarded=kinds["discard"],
            overflowed=kinds["overflow"],
            relayed=kinds["relay"],
            excused=len(self.findings.excused),
        )
        return self.findings.verdict(world.records, void, counts, bool(world.calms), most_per_rule)

    # -- one method for each kind of record -------------------------------------------------------

    def _schema(self, number: int, _: Record) -> None:
        if number > 1:
            raise DocumentError("a second schema", remedy="a history has one, in its first record")

    def _join(self, number: int, record: Record) -> None:
        self.world.organisation(record["org"]).join(number, record["joined"])

    def _leave(self, number: int, record: Record) -> None:
        self.world.organisation(record["org"]).leave(number)

    def _sub(self, number: int, record: Record) -> None:
        self._check_member(record)
        try:
            meaning = meaning_of(self.world.schema, record["text"])
        except QnsError as problem:
            raise _inside(f"the text of subscription {record['sub']}", problem) from None
        self.world.organisation(record["org"]).act(number, record, meaning)

    def _act(self, number: int, record: Record) -> None:
        self.world.organisation(record["org"]).act(number, record)

    def _stable(self, number: int, record: Record) -> None:
        producer, incarnation, epoch = record["producer"], record["joined"], record["epoch"]
        if not self.world.organisation(producer).has_forgotten(incarnation, epoch):
            classes = frozenset(record["classes"])
            readable = self.world.organisation(producer).readable(record["org"])
            if readable is not None:  # the consumer may not have learned that it may read less
                classes &= readable
            stable = Stable(number, record["t"], classes)
            self.world.stables[record["org"], record["sub"], producer, incarnation].append(stable)

    def _start(self, number: int, record: Record) -> None:
        self.lost.start(record)
        self.world.organisation(record["org"]).started = number
        if record["restored"]:
            self.world.organisation(record["org"]).start_restored(record["epoch"])

    def _drop(self, number: int, record: Record) -> None:
        self.streams.drop(record)
        self._act(number, record)

    def _pub(self, number: int, record: Record) -> None:
        self._check_member(record)
        fields, org = record["event"], record["org"]
        event, id = plain_event(self.world.schema, fields), fields.get("id")
        if type(id) is not str or event.source != org:
            raise DocumentError(
                f"{org} publishes an event of {event.source} with the id {id!r:.60}",
                remedy="an event has a string as its id, and its publisher as its source",
            )
        self.world.publish(
            Publication(
                number,
                record["t"],
                org,
                id,
                record["joined"],
                event,
                availability_s(fields),
                is_owed=self.world.organisation(org).incarnation == record["joined"],
            )
        )

    def _ntfy(self, number: int, record: Record) -> None:
        self.notifications.judge(number, record)
        self._act(number, record)

    def _ack(self, number: int, record: Record) -> None:
        self.queues.judge(number, record)
        self._act(number, record)

    def _cross(self, number: int, record: Record) -> None:
        self.streams.judge_crossing(number, record)
        judge_economy(self.world, self.findings, number, record)

    def _consume(self, number: int, record: Record) -> None:
        if record["do"] == "take":
            self.custody.take(record)
            self.lost.take(record)
        self.streams.judge_consumed(number, record)
        self._act(number, record)

    def _promise(self, number: int, record: Record) -> None:
        self.custody.promise(number, record)
        self._act(number, record)

    def _relay(self, number: int, _: Record) -> None:
        self.relays.append(number)

    def _calm(self, number: int, _: Record) -> None:
        for relay in self.relays:
            judge_relay(self.world, self.findings, relay)
        self.relays.clear()
        self.obligations.judge(number)
        self.custody.settle()
        self.world.calms.append(number)

    def _lull(self, number: int, record: Record) -> None:
        for name in record["absent"]:
            if not self.world.organisation(name).is_known:
                raise DocumentError(
                    f"a lull without {name}, which has not joined", remedy="record its join before"
                )
        self.custody.judge(number, frozenset(record["absent"]))

    def _ways(self, number: int, record: Record) -> None:
        pairs = {tuple(each.split(">")) for each in record["ways"]}
        for pair in pairs:
            for name in pair:
                if len(pair) != 2 or not self.world.organisation(name).is_known:
                    raise DocumentError(
                        f"the way {'>'.join(pair)[:60]!r} is not one between two members",
                        remedy='write producer and consumer, as in "INPS>INAIL"',
                    )
        self.obligations.judge_ways(number, pairs)

    def _check_member(self, record: Record) -> None:
        if not self.world.organisation(record["org"]).is_known:
            raise DocumentError(
                f"{record['do']} of {record['org']}, which has not joined",
                remedy="record its join before",
            )
