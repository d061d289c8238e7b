"""Organisation: its membership, which no restore changes, and the branch of its peer."""

from __future__ import annotations

from dataclasses import dataclass, field

from qns.errors import DuplicateId, shorten
from qns.history.branch import Branch, Step
from qns.history.meaning import Meaning
from qns.history.publication import Publication, Publications
from qns.history.records import Record


@dataclass(slots=True)
class Organisation:
    name: str
    publications: Publications
    """Those of everybody."""
    own: list[Publication] = field(default_factory=list)
    joined: int | None = None
    """Its incarnation, while it is a member."""
    is_known: bool = False
    """Whether it was ever a member."""
    incarnation: int = 0
    """The same, and the last one after it left."""
    came: int = 0
    """The last record with which it joined, or 0."""
    moved: int = 0
    """The last record with which it joined or left, or 0."""
    hosted: frozenset[str] | None = None
    """The classes that it hosts, if its peer has told."""
    restored: int = 0
    """The last restore, or 0."""
    restored_epoch: int = 0
    """The epoch that its peer began after the last restore, …"""
    restored_in: int = 0
    """… and in which incarnation."""
    branch: Branch = field(init=False)
    _steps: list[Step] = field(default_factory=list)
    _newest: int = -1

    def __post_init__(self) -> None:
        self.branch = Branch(self.publications)

    def join(self, number: int, joined: int) -> None:
        self.joined = self.incarnation = joined
        self.came = self.moved = number
        self.is_known = True

    def leave(self, number: int) -> None:
        self.joined, self.moved = None, number

    def host(self, number: int, classes: frozenset[str]) -> None:
        """Its events of other classes are not available to late subscribers any more."""
        self.hosted = classes
        for publication in self.own:
            if publication.event.data_class not in classes:
                publication.withdrawn = min(publication.withdrawn, number)

    def start_anew(self, epoch: int) -> None:
        self.restored_epoch, self.restored_in = epoch, self.incarnation

    def is_forgotten(self, joined: int, epoch: int) -> bool:
        """Whether its peer, restored since, knows nothing of what it said in this epoch."""
        return epoch < self.restored_epoch and joined <= self.restored_in

    def act(self, number: int, record: Record, meaning: Meaning | None = None) -> None:
        """What its peer has committed."""
        if record["do"] == "sub" and record["sub"] in self.branch.subscriptions:
            first = self.branch.subscriptions[record["sub"]].number
            raise DuplicateId(
                f"{self.name} has a subscription {shorten(record['sub'])} since record {first}",
                remedy="an id is never used again",
            )
        step = Step(number, record, self.joined, self._newest, meaning)
        self._newest = len(self._steps)
        self._steps.append(step)
        self.branch.apply(step)

    def restore(self, number: int, record: Record) -> None:
        """Back to the state after the last record up to `since`, on whichever branch that was."""
        since, kept = record["since"], len(self._steps) - 1
        while kept >= 0 and self._steps[kept].record["t"] > since:
            kept -= 1
        self._newest = kept
        self.restored, self.hosted = number, None
        self.branch = Branch(self.publications)
        for index in self._way():
            self.branch.apply(self._steps[index])
        self.act(number, record)
        for publication in self.own:
            publication.is_lost |= publication.t > since

    def void(self) -> set[int]:
        """The records that restores have undone."""
        if not self.restored:
            return set()
        undone = {step.number for step in self._steps if step.record["do"] != "restore"}
        return undone - {self._steps[index].number for index in self._way()}

    def _way(self) -> list[int]:
        """The steps that led to the present state, oldest first."""
        way, index = [], self._newest
        while index >= 0:
            way.append(index)
            index = self._steps[index].before
        return way[::-1]
