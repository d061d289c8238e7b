"""Reading: what users read is what was published for them, once and in order (semantics §9)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from qns.iil.requests import AcknowledgeDeliveries, Subscribe
from qns.simulation.findings import Findings
from qns.simulation.ledger import Ledger
from qns.simulation.ledger_entries import Call, Key, Read

RULE = "Reading"


@dataclass(slots=True, eq=False)
class Reading:
    ledger: Ledger
    findings: Findings

    def judge(self) -> None:
        for key, reads in list(self.ledger.reads.items()):
            subscription = self.ledger.subscriptions.get(key)
            if subscription is None:
                self._broken(key, "which nobody asked for, was read")
                continue
            self.findings.ask(RULE, len(reads))
            for read in reads:
                self._judge_content(key, subscription, read)
                self._judge_acknowledged(key, read)
            if isinstance(subscription.request, Subscribe) and not subscription.request.group:
                self._judge_once(key, reads)
                self._judge_order(key, reads)

    def _judge_content(self, key: Key, subscription: Call, read: Read) -> None:
        """An event that was read was given to its producer before, and matches."""
        publication = self.ledger.publications.get((read.source, read.event))
        if publication is None or publication.asked_at > read.at:
            self._broken(key, f"read event {read.event} of {read.source}, which nobody published")
        elif True not in self.ledger.matches(subscription, publication):
            self._broken(key, f"read event {read.event} of {read.source}, which does not match it")

    def _judge_acknowledged(self, key: Key, read: Read) -> None:
        """A delivery that was acknowledged is not given out again, unless the peer went back."""
        for call in self.ledger.changes[AcknowledgeDeliveries, key]:
            request = call.request
            assert isinstance(request, AcknowledgeDeliveries)
            if (
                call.answered_at < read.asked_at
                and read.number <= request.upto
                and not self.ledger.restored_after(key[0], call.asked_at, read.at)
            ):
                self._broken(
                    key,
                    f"read number {read.number} at {read.at:.3f} s, though {request.upto} had been "
                    f"acknowledged at {call.answered_at:.3f} s",
                )
                return

    def _judge_once(self, key: Key, reads: list[Read]) -> None:
        """An event has one number, unless the peer went back or its producer ran twice."""
        first: dict[Key, Read] = {}
        for read in reads:
            if read.source in self.ledger.twins:
                continue
            before = first.setdefault((read.source, read.event), read)
            if before.number != read.number and not self.ledger.restored_after(
                key[0], before.asked_at, read.at
            ):
                self._broken(
                    key,
                    f"read event {read.event} of {read.source} as number {before.number} and again "
                    f"as number {read.number}",
                )

    def _judge_order(self, key: Key, reads: list[Read]) -> None:
        """Events of one producer are read in publication order, if nothing disturbed it."""
        ledger, newest = self.ledger, dict[str, tuple[float, Read]]()
        if ledger.tuning.most_owed < inf or ledger.restores[key[0]] or key[0] in ledger.twins:
            return
        for read in sorted(reads, key=lambda each: each.number):
            publication = ledger.publications.get((read.source, read.event))
            if publication is None or ledger.restores[read.source] or read.source in ledger.twins:
                continue
            data_class = str(publication.fields["class"])
            if ledger.moved_after(read.source, 0.0) or not ledger.documents.let_read(
                0.0, key[0], read.source, data_class
            ):
                continue  # what comes with a right comes after later events
            asked, before = newest.get(read.source, (-inf, read))
            if publication.answered_at < asked:
                self._broken(
                    key,
                    f"read event {before.event} of {read.source} before {read.event}, which was "
                    "acknowledged before the other was published",
                )
            if publication.asked_at > asked:
                newest[read.source] = publication.asked_at, read

    def _broken(self, key: Key, text: str) -> None:
        org, sub = key
        self.findings.break_rule(RULE, f"subscription {sub} of {org} {text}.")
