"""Causes: a peer declares a loss, an end or a change only if the world or a user caused it.

The judge of `qns/history` accepts a declared skip, drop, overflow, lapse, expiry or restore as an
excuse. These rules ask for each of them what the ledger has as its cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.iil.requests import AcknowledgeDeliveries, Pause, Resume, Unsubscribe
from qns.peer.tuning import Tuning
from qns.peer.turn import Record
from qns.simulation.findings import Findings
from qns.simulation.ledger import Ledger
from qns.simulation.trusted import concerns

CAUSE = "Cause"
"""The rule for what users asked for, and for members and documents."""
SKIP = "Cause of a skip"
DROP = "Cause of a drop"
OVERFLOW = "Cause of an overflow"
LAPSE = "Cause of a lapse"
EXPIRY = "Cause of an expiry"
REWIND = "Cause of a rewind"
LINEAGE = "Lineage"
RULES: Final = (CAUSE, SKIP, DROP, OVERFLOW, LAPSE, EXPIRY, REWIND, LINEAGE)
_SLOWEST_COMMITS_S: Final = 10.0
"""A commit takes up to 5 s and may wait for another one. So a record may be that much later than
the turn in which a lease began."""
_ROUNDING_S: Final = 1e-6


@dataclass(slots=True, eq=False)
class Causes:
    ledger: Ledger
    history: Sequence[Record]
    findings: Findings
    unjudged: frozenset[str] = frozenset()
    """Members that lie or have a twin: what follows from their claims has no other cause."""
    _crossed: defaultdict[tuple[str, str, int], dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Producer, consumer, its incarnation -> when each number was given to an event."""
    _consumed: defaultdict[tuple[str, str, int], dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """The same stream -> when the consumer consumed each number."""
    _rewound: defaultdict[tuple[str, str, int], list[tuple[float, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """The same stream -> when it was set back, and to which number."""
    _withheld: defaultdict[tuple[str, str, int], set[int]] = field(
        default_factory=lambda: defaultdict(set)
    )
    """The same stream -> the numbers whose events the consumer may not read any more."""
    _restored_epochs: set[tuple[str, int]] = field(default_factory=set)
    """Organisation, epoch that its peer began as restored."""
    _notified: dict[tuple[str, str, str, str], float] = field(default_factory=dict)
    """Organisation, subscription, source, event -> the time of the last notification."""

    def judge(self) -> None:
        for record in self.history:
            do = record["do"]
            if do == "cross":
                numbers = self._crossed[record["org"], record["to"], record["joined"]]
                numbers.setdefault(record["number"], []).append(record["t"])
            elif do == "take":
                numbers = self._consumed[record["source"], record["org"], record["own"]]
                numbers.setdefault(record["number"], []).append(record["t"])
            elif do == "ntfy":
                delivery = record["org"], record["sub"], record["source"], record["event"]
                self._notified[delivery] = record["t"]
            elif do == "start":
                self._judge_start(record)
            elif do in _CAUSED and not concerns(record, self.unjudged):
                is_expiry = do == "usub" and record["why"] == "expired"
                rule = EXPIRY if is_expiry else _RULES.get(do, CAUSE)
                self.findings.judge(rule, _CAUSED[do](self, record), _words(record))
                if do == "rewind":
                    stream = record["source"], record["org"], record["own"]
                    self._rewound[stream].append((record["t"], record["first"]))

    def _judge_start(self, record: Record) -> None:
        """A peer takes its store for an older copy only if it was restored."""
        if record["restored"]:
            self._restored_epochs.add((record["org"], record["epoch"]))
            if self.unjudged:  # the rule about claims judges it
                return
            self.findings.judge(
                LINEAGE,
                self._was_restored(record["org"], record["t"]),
                f"{record['org']} started as restored at {record['t']:g} s, but was not.",
            )

    # --- users ------------------------------------------------------------------------------------

    def _pub(self, record: Record) -> bool:
        found = self.ledger.publications.get((record["org"], record["event"]["id"]))
        return found is not None and found.asked_at <= record["t"]

    def _sub(self, record: Record) -> bool:
        found = self.ledger.subscriptions.get((record["org"], record["sub"]))
        return found is not None and found.asked_at <= record["t"]

    def _usub(self, record: Record) -> bool:
        key, why, t = (record["org"], record["sub"]), record["why"], record["t"]
        if why == "expired":
            return self.ledger.may_have_expired(key, t)
        if why == "left":
            return self.ledger.has_left(record["org"], t)
        return self._was_asked(Unsubscribe, record)

    def _pause(self, record: Record) -> bool:
        return self._was_asked(Pause, record)

    def _resume(self, record: Record) -> bool:
        return self._was_asked(Resume, record)

    def _ack(self, record: Record) -> bool:
        calls = self.ledger.changes[AcknowledgeDeliveries, (record["org"], record["sub"])]
        return any(
            isinstance(each.request, AcknowledgeDeliveries)
            and each.request.upto == record["upto"]
            and each.asked_at <= record["t"]
            for each in calls
        )

    def _was_asked(self, kind: type, record: Record) -> bool:
        calls = self.ledger.changes[kind, (record["org"], record["sub"])]
        return any(each.asked_at <= record["t"] for each in calls)

    # --- losses -----------------------------------------------------------------------------------

    def _skip(self, record: Record) -> bool:
        producer, consumer, t = record["source"], record["org"], record["t"]
        if self.ledger.may_be_dropped(producer, t):
            return True
        stream = producer, consumer, record["own"]
        numbers = range(record["first"], record["last"] + 1)
        withheld = self._withheld[stream]
        return all(each in withheld or self._is_forgotten(stream, each, t) for each in numbers)

    def _withhold(self, record: Record) -> bool:
        """An event is withheld if a document by then does not let the consumer read it."""
        ledger, t = self.ledger, record["t"]
        found = ledger.publications.get((record["org"], record["event"]))
        self._withheld[record["org"], record["to"], record["joined"]].add(record["number"])
        return found is not None and any(
            not mapper.may_read(record["to"], record["org"], str(found.fields["class"]))
            for mapper in ledger.documents.until(t)
        )

    def _drop(self, record: Record) -> bool:
        producer, t = record["org"], record["t"]
        stream = producer, record["to"], record["joined"]
        return (
            self.ledger.may_be_dropped(producer, t)
            or self.ledger.has_left(producer, t)  # consumers reject what it still owes them
            or self._is_forgotten(stream, record["number"], t)
        )

    def _is_forgotten(self, stream: tuple[str, str, int], number: int, t: float) -> bool:
        """True if the producer went back to a time before it gave the number to an event, or the
        consumer to a time before it consumed the number, or if the stream was set back and the
        producer was put back once more, to a time when the number was acknowledged. That may have
        been before the consumer learned of the first setback, from a message on its way."""
        producer, consumer, _ = stream
        ledger, crossed = self.ledger, self._crossed[stream].get(number, ())
        set_back_at = [at for at, first in self._rewound[stream] if first <= number]
        return (
            any(ledger.undid(producer, at, t) for at in crossed)
            or any(ledger.undid(consumer, at, t) for at in self._consumed[stream].get(number, ()))
            or any(ledger.restored_after(producer, at, t) for at in set_back_at)
            or any(ledger.once_undid(producer, at, end) for at in crossed for end in set_back_at)
        )

    def _overflow(self, record: Record) -> bool:
        key, ledger = (record["org"], record["sub"]), self.ledger
        subscription = ledger.subscriptions.get(key)
        longest_queue = ledger.tuning.longest_queue
        if longest_queue == inf or subscription is None:
            return False
        matching = sum(
            each.asked_at <= record["t"] and True in ledger.matches(subscription, each)
            for each in ledger.all_publications()
        )
        return matching > longest_queue or bool(ledger.restores[record["org"]])

    def _lapse(self, record: Record) -> bool:
        """A lease lapsed if it lasted as long as it should, or if the member has ended."""
        org, sub, t = record["org"], record["sub"], record["t"]
        notified = self._notified.get((org, sub, record["source"], record["event"]), inf)
        if self.ledger.undid(org, notified, t) or self.ledger.may_have_ended((org, sub), t):
            return True
        slack_s = _SLOWEST_COMMITS_S if org in self.ledger.slow else _ROUNDING_S
        lasted_s = self.ledger.latest_clock(org, t) - self.ledger.earliest_clock(org, notified)
        return notified < inf and lasted_s >= self.ledger.tuning.lease_s - slack_s

    def _discard(self, _: Record) -> bool:
        """No operator drops a dead letter here: there were more than the bound of the plan."""
        return self.ledger.tuning.most_dead_letters < Tuning().most_dead_letters

    def _rewind(self, record: Record) -> bool:
        """A stream is set back if its producer was put back after it had used one of the numbers.

        A producer cannot always know which numbers it has forgotten, and sets the stream back to
        the oldest one that the consumer may have from an epoch that it has not confirmed. If others
        tell it of the rollback, it may have used all of these numbers since.
        """
        producer, t = record["source"], record["t"]
        if (producer, record["epoch"]) in self._restored_epochs:  # the rule Lineage has judged it
            return True
        numbers = self._crossed[producer, record["org"], record["own"]]
        return any(
            self.ledger.restored_after(producer, at, t)
            for number, times in numbers.items()
            if number >= record["first"]
            for at in times
        )

    # --- the world --------------------------------------------------------------------------------

    def _was_restored(self, org: str, t: float) -> bool:
        """True if the peer was put back since the last calm: at a calm, everybody knows of it."""
        calm = max((each for each in self.ledger.calms if each < t), default=0.0)
        return self.ledger.restored_after(org, calm, t)

    def _restore(self, record: Record) -> bool:
        return (record["t"], record["since"]) in self.ledger.restores[record["org"]]

    def _move(self, record: Record) -> bool:
        return (record["t"], record["do"]) in self.ledger.moves[record["org"]]

    def _rights(self, record: Record) -> bool:
        classes = frozenset(record["classes"])
        return any(
            mapper.readable(record["to"], record["org"]) == classes
            for mapper in self.ledger.documents.until(record["t"])
        )

    def _host(self, record: Record) -> bool:
        classes = frozenset(record["classes"])
        hostings = self.ledger.hostings[record["org"]]
        return any(at <= record["t"] and hosts == classes for at, hosts in hostings)


_CAUSED: Final[dict[str, Callable[[Causes, Record], bool]]] = {
    "pub": Causes._pub,
    "sub": Causes._sub,
    "usub": Causes._usub,
    "pause": Causes._pause,
    "resume": Causes._resume,
    "ack": Causes._ack,
    "skip": Causes._skip,
    "drop": Causes._drop,
    "withhold": Causes._withhold,
    "overflow": Causes._overflow,
    "lapse": Causes._lapse,
    "discard": Causes._discard,
    "rewind": Causes._rewind,
    "restore": Causes._restore,
    "join": Causes._move,
    "leave": Causes._move,
    "host": Causes._host,
    "rights": Causes._rights,
}
_RULES: Final = {
    "skip": SKIP,
    "drop": DROP,
    "withhold": DROP,
    "overflow": OVERFLOW,
    "lapse": LAPSE,
    "rewind": REWIND,
}
"""Kind of record -> the rule about its cause; `CAUSE` for all others."""


def _words(record: Record) -> str:
    fields = " ".join(
        f"{name}={value['id'] if name == 'event' and isinstance(value, dict) else value}"
        for name, value in record.items()
        if name not in ("t", "do", "org")
    )
    return (
        f"{record['org']} recorded a {record['do']} at {record['t']:.3f} s ({fields}), but neither "
        "a user nor the world had caused it by then."
    )
