"""Builds histories by hand. There is one method for each kind of record."""

from __future__ import annotations

from math import inf
from typing import Any, Self

from qns.history.judge import judge
from qns.history.records import Record, new_record
from qns.history.verdict import Verdict
from tests.history.state import CLASSES, XML


class History:
    """A history under construction. Each record is one second later than the one before.

    The incarnation of every organisation is 1 unless another one is given.
    """

    def __init__(self, *members: str) -> None:
        self.t = 0.0
        self.records: list[Record] = [new_record("schema", 0.0, xml=XML)]
        for member in members:
            self.records.append(new_record("join", 0.0, member, joined=1))

    def add(self, do: str, org: str = "", **fields: Any) -> Self:
        self.t += 1
        self.records.append(new_record(do, self.t, org, **fields))
        return self

    def verdict(self) -> Verdict:
        return judge(self.records)

    def broken(self) -> dict[str, int]:
        """Returns the broken rules with the number of their violations."""
        return {str(rule): number for rule, number in self.verdict().broken.items() if number}

    def copy(self) -> History:
        other = History()
        other.t, other.records = self.t, [*self.records]
        return other

    def explained(self) -> str:
        """Returns the text of the only violation."""
        (violation,) = self.verdict().violations
        return violation.explain()

    def join(self, org: str, joined: int = 1) -> Self:
        return self.add("join", org, joined=joined)

    def leave(self, org: str, joined: int = 1) -> Self:
        return self.add("leave", org, joined=joined)

    def sub(self, org: str, sub: str, text: str = "Thing", group: str = "") -> Self:
        return self.add("sub", org, sub=sub, text=text, group=group)

    def usub(self, org: str, sub: str, why: str = "unsubscribed") -> Self:
        return self.add("usub", org, sub=sub, why=why)

    def pause(self, org: str, sub: str) -> Self:
        return self.add("pause", org, sub=sub)

    def resume(self, org: str, sub: str) -> Self:
        return self.add("resume", org, sub=sub)

    def stable(
        self,
        org: str,
        sub: str,
        producer: str,
        joined: int = 1,
        classes: list[str] = CLASSES,
        *,
        epoch: int = 0,
    ) -> Self:
        view = {"producer": producer, "joined": joined, "epoch": epoch, "classes": classes}
        return self.add("stable", org, sub=sub, **view)

    def pub(
        self,
        org: str,
        id: str,
        available: float = 0,
        *,
        joined: int = 1,
        epoch: int = 0,
        **content: Any,
    ) -> Self:
        event = {"id": id, "class": "Thing", "source": org, "data": {}, "quality": {}, **content}
        if available:
            event["available"] = "INF" if available == inf else available
        return self.add("pub", org, event=event, joined=joined, epoch=epoch, sequence=1)

    def ntfy(
        self, org: str, sub: str, source: str, event: str, group: str = "", **number: int
    ) -> Self:
        return self.add("ntfy", org, sub=sub, group=group, source=source, event=event, **number)

    def overflow(
        self, org: str, sub: str, source: str, event: str, number: int, group: str = ""
    ) -> Self:
        fields = {"source": source, "event": event, "number": number}
        return self.add("overflow", org, sub=sub, group=group, **fields)

    def ack(self, org: str, sub: str, upto: int, count: int) -> Self:
        return self.add("ack", org, sub=sub, upto=upto, count=count)

    def lapse(self, org: str, sub: str, source: str, event: str, group: str) -> Self:
        return self.add("lapse", org, sub=sub, group=group, source=source, event=event)

    def cross(
        self, org: str, to: str, number: int, event: str, *, epoch: int = 0, joined: int = 1
    ) -> Self:
        return self.add("cross", org, to=to, joined=joined, epoch=epoch, number=number, event=event)

    def take(
        self,
        org: str,
        source: str,
        number: int,
        event: str,
        *,
        epoch: int = 0,
        joined: int = 1,
        own: int = 1,
    ) -> Self:
        stream = {"source": source, "joined": joined, "own": own, "epoch": epoch}
        return self.add("take", org, **stream, number=number, event=event)

    def skip(
        self,
        org: str,
        source: str,
        first: int,
        last: int,
        *,
        epoch: int = 0,
        joined: int = 1,
        own: int = 1,
    ) -> Self:
        stream = {"source": source, "joined": joined, "own": own, "epoch": epoch}
        return self.add("skip", org, **stream, first=first, last=last, why="limit")

    def rewind(self, org: str, source: str, first: int, *, epoch: int = 1, own: int = 1) -> Self:
        stream = {"source": source, "joined": 1, "own": own, "epoch": epoch}
        return self.add("rewind", org, **stream, first=first)

    def drop(self, org: str, to: str, number: int, event: str) -> Self:
        return self.add("drop", org, to=to, joined=1, number=number, event=event)

    def ways(self, *ways: str) -> Self:
        return self.add("ways", ways=list(ways))

    def relay(self, org: str, to: str, source: str, event: str, *, joined: int = 1) -> Self:
        return self.add("relay", org, to=to, joined=joined, source=source, event=event)

    def discard(self, org: str, to: str, source: str, event: str) -> Self:
        return self.add("discard", org, to=to, joined=1, source=source, event=event)

    def promise(self, org: str, to: str, source: str, event: str, *, joined: int = 1) -> Self:
        return self.add("promise", org, to=to, joined=joined, source=source, event=event)

    def early(self, org: str, source: str, number: int, event: str) -> Self:
        return self.add("early", org, source=source, number=number, event=event)

    def rights(self, org: str, to: str, *classes: str) -> Self:
        return self.add("rights", org, to=to, joined=1, classes=[*classes])

    def withhold(self, org: str, to: str, number: int, event: str) -> Self:
        return self.add("withhold", org, to=to, joined=1, number=number, event=event)

    def host(self, org: str, *classes: str) -> Self:
        return self.add("host", org, classes=[*classes])

    def start(self, org: str, epoch: int, *, restored: bool = False) -> Self:
        return self.add("start", org, epoch=epoch, restored=restored)

    def restore(self, org: str, since: float) -> Self:
        return self.add("restore", org, since=since)

    def calm(self) -> Self:
        return self.add("calm")

    def lull(self, *absent: str) -> Self:
        return self.add("lull", absent=[*absent])
