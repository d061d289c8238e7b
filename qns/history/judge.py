"""Judge: reads a history record by record and tells which guarantees it breaks (semantics §9).

It shares no code with what it judges. The state that it keeps (`world.py`) is what the records say,
and each rule looks at it just before a record is added: `notifications.py` Legality, Validity,
Minimality and FIFO; `streams.py` No gap and crossing once; `obligations.py` Liveness and
Completeness; `economy.py` Economy; `custody.py` Custody.
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
from qns.history.economy import judge_economy
from qns.history.meaning import meaning_of, plain_event
from qns.history.notifications import Notifications
from qns.history.obligations import Obligations
from qns.history.publication import Publication, availability_s
from qns.history.records import Record, checked
from qns.history.streams import Streams
from qns.history.verdict import MOST_PER_RULE, Counts, Findings, Verdict
from qns.history.world import Stable, World


def judge(records: Iterable[Record], *, most_per_rule: int = MOST_PER_RULE) -> Verdict:
    """The verdict on a whole history; QnsError if it is none."""
    records = iter(records)
    first = next(records, None)
    if first is None or first.get("do") != "schema":
        raise DocumentError(
            "the first record is not the schema", remedy='begin with {"t": 0, "do": "schema", …}'
        ).at("record 1")
    try:
        judging = _Judging(_schema(checked(first)["xml"]))
    except QnsError as problem:
        raise problem.at("record 1") from None
    for record in chain((first,), records):
        judging.read(record)
    return judging.verdict(most_per_rule)


@lru_cache(maxsize=64)
def _schema(xml: str) -> Schema:
    try:
        return read_schema(xml)
    except QnsError as problem:
        raise _inside("the schema", problem) from None


def _inside(what: str, problem: QnsError) -> DocumentError:
    """An error whose line and column are those of a text inside a record."""
    place = f", {problem.place}" if problem.place else ""
    return DocumentError(f"{what}{place}: {problem.problem}", remedy=problem.remedy)


class _Judging:
    def __init__(self, schema: Schema) -> None:
        self.world = World(schema, [])
        self.findings = Findings()
        self.notifications = Notifications(self.world, self.findings)
        self.streams = Streams(self.world, self.findings)
        self.obligations = Obligations(self.world, self.findings)
        self.custody = Custody(self.world, self.findings)
        self._readers: dict[str, Callable[[int, Record], None]] = {
            "schema": self._again,
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
            "cross": self._cross,
            "take": self._consume,
            "skip": self._consume,
            "rewind": self._act,
            "drop": self._drop,
            "early": self.custody.hold_back,
            "promise": self._promise,
            "host": self.world.host,
            "start": self._start,
            "restore": self.world.restore,
            "calm": self._calm,
            "lull": self._lull,
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
            lost=sum(each.is_lost for o in world.organisations.values() for each in o.own),
            skipped=sum(r["last"] - r["first"] + 1 for r in kept if r["do"] == "skip"),
            dropped=kinds["drop"],
            excused=len(self.findings.excused),
        )
        return self.findings.verdict(world.records, void, counts, bool(world.calms), most_per_rule)

    # -- one method for each kind of record -------------------------------------------------------

    def _again(self, number: int, _: Record) -> None:
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
        producer, joined, epoch = record["producer"], record["joined"], record["epoch"]
        if not self.world.organisation(producer).is_forgotten(joined, epoch):
            stable = Stable(number, record["t"], epoch, frozenset(record["classes"]))
            self.world.stables[record["org"], record["sub"], producer, joined].append(stable)

    def _start(self, number: int, record: Record) -> None:
        if record["restored"]:
            self.world.start_anew(number, record["org"], record["epoch"])

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
                is_owed=self.world.organisation(org).joined == record["joined"],
            )
        )

    def _ntfy(self, number: int, record: Record) -> None:
        self.notifications.judge(number, record)
        self._act(number, record)

    def _cross(self, number: int, record: Record) -> None:
        self.streams.judge_crossing(number, record)
        judge_economy(self.world, self.findings, number, record)

    def _consume(self, number: int, record: Record) -> None:
        if record["do"] == "take":
            self.custody.take(record)
        self.streams.judge_consumed(number, record)
        self._act(number, record)

    def _promise(self, number: int, record: Record) -> None:
        self.custody.promise(number, record)
        self._act(number, record)

    def _calm(self, number: int, _: Record) -> None:
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

    def _check_member(self, record: Record) -> None:
        if not self.world.organisation(record["org"]).is_known:
            raise DocumentError(
                f"{record['do']} of {record['org']}, which has not joined",
                remedy="record its join before",
            )
