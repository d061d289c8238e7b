"""Organisation: its membership, which a restore does not change, and the state of its peer."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from qns.errors import DuplicateId, shorten
from qns.history.branch import Branch, Step
from qns.history.meaning import Meaning
from qns.history.publication import Publication, Publications
from qns.history.records import Record


@dataclass(slots=True)
class Organisation:
    """An organisation as the records read so far describe it."""

    name: str
    publications: Publications
    """The publications of all organisations."""
    published: list[Publication] = field(default_factory=list)
    """The publications of this organisation."""
    incarnation: int | None = None
    """Its incarnation while it is a member, else None."""
    is_known: bool = False
    """True if it is or was a member."""
    last_incarnation: int = 0
    """Its present or last incarnation; 0 if it was never a member."""
    came: int = 0
    """The last record with which it joined, or 0."""
    moved: int = 0
    """The last record with which it joined or left, or 0."""
    hosted: frozenset[str] | None = None
    """The classes that it hosts, if its peer has recorded them."""
    rights: dict[str, list[tuple[int, frozenset[str] | None]]] = field(default_factory=dict)
    """Other organisation -> the classes that it may read of this one, each with the record from
    which on; None for all."""
    returned: int = 0
    """The last record with which it joined again, or 0."""
    rehosted: int = 0
    """The last record with which its hosted classes, or what others may read of them, changed, or
    0."""
    started: int = 0
    """The last record with which its peer started, or 0."""
    restored: int = 0
    """The record of the last restore, or 0."""
    restored_epoch: int = 0
    """The epoch that its peer began after the last restore."""
    restored_incarnation: int = 0
    """The incarnation in which that epoch began."""
    branch: Branch = field(init=False)
    _restores: list[tuple[int, float, float]] = field(default_factory=list)
    """Each restore: its record, when it was, and the time of the state that it brought back."""
    _steps: list[Step] = field(default_factory=list)
    _newest: int = -1
    """The index of the newest step of the present branch, or -1."""

    def __post_init__(self) -> None:
        self.branch = Branch(self.publications)

    def join(self, number: int, incarnation: int) -> None:
        if self.is_known:
            self.returned = number
        self.incarnation = self.last_incarnation = incarnation
        self.came = self.moved = number
        self.is_known = True

    def leave(self, number: int) -> None:
        self.incarnation, self.moved = None, number

    def host(self, number: int, classes: frozenset[str]) -> None:
        """Withdraws its events of other classes: late subscribers do not get them any more."""
        self.hosted, self.rehosted = classes, number
        for publication in self.published:
            if publication.event.data_class not in classes:
                publication.withdrawn = min(publication.withdrawn, number)

    def change_rights(self, number: int, reader: str, classes: frozenset[str]) -> None:
        """Lets another organisation read these classes from now on, and no others."""
        if self.readable(reader) != classes:
            self.rights.setdefault(reader, []).append((number, classes))
            self.rehosted = number

    def readable(self, reader: str) -> frozenset[str] | None:
        """Returns the classes that another organisation may read now; None for all."""
        rights = self.rights.get(reader)
        return rights[-1][1] if rights else None

    def has_denied(self, reader: str, data_class: str, since: int) -> bool:
        """True if another organisation might not read the class for some time since a record."""
        rights = self.rights.get(reader, [])
        ends = [*(number for number, _ in rights[1:]), inf]
        return any(
            classes is not None and data_class not in classes
            for (_, classes), end in zip(rights, ends, strict=False)
            if end > since
        )

    def start_restored(self, epoch: int) -> None:
        """Notes the epoch that its peer began as restored."""
        self.restored_epoch, self.restored_incarnation = epoch, self.last_incarnation

    def has_forgotten(self, incarnation: int, epoch: int) -> bool:
        """True if its peer, restored since, may not remember what it sent in this epoch."""
        return epoch < self.restored_epoch and incarnation <= self.restored_incarnation

    def act(self, number: int, record: Record, meaning: Meaning | None = None) -> None:
        """Adds a record that its peer has committed to the branch."""
        if record["do"] == "sub" and record["sub"] in self.branch.subscriptions:
            first = self.branch.subscriptions[record["sub"]].number
            raise DuplicateId(
                f"{self.name} has a subscription {shorten(record['sub'])} since record {first}",
                remedy="an id is never used again",
            )
        step = Step(number, record, self.incarnation, self._newest, meaning)
        self._newest = len(self._steps)
        self._steps.append(step)
        self.branch.apply(step)

    def restore(self, number: int, record: Record) -> None:
        """Puts the peer back to its state after its last record up to the time `since`, also if
        that record is on a branch that an earlier restore has left."""
        since, kept = record["since"], len(self._steps) - 1
        while kept >= 0 and self._steps[kept].record["t"] > since:
            kept -= 1
        self._newest = kept
        self.restored, self.hosted = number, None
        for rights in self.rights.values():
            rights.append((number, None))
        self.branch = Branch(self.publications)
        for index in self._path():
            self.branch.apply(self._steps[index])
        self.act(number, record)
        self._restores.append((number, record["t"], since))
        for publication in self.published:
            publication.is_lost |= publication.t > since

    def remembered(self, publication: Publication, number: int) -> bool:
        """True if the peer had this publication of its own at that record: no restore had undone
        it, or a later one had brought it back."""
        states = [(publication.t, True)]
        for restored, at, since in self._restores:
            if publication.number < restored < number:
                before = [was for when, was in states if when <= since]
                states.append((at, bool(before) and before[-1]))
        return states[-1][1]

    def void(self) -> set[int]:
        """Returns the records that restores have undone."""
        if not self.restored:
            return set()
        undone = {step.number for step in self._steps if step.record["do"] != "restore"}
        return undone - {self._steps[index].number for index in self._path()}

    def _path(self) -> list[int]:
        """Returns the indexes of the steps that led to the present state, oldest first."""
        path, index = [], self._newest
        while index >= 0:
            path.append(index)
            index = self._steps[index].before
        return path[::-1]
