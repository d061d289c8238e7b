"""Gateway: a peer with its store. Nothing leaves the peer before it is committed.

Opening a gateway begins a new epoch and sends a hello to every producer. If a commit fails, the
peer in memory is ahead of the disk: the gateway is discarded and opened again from the disk.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from qns.d2q.event_json import write_event_json
from qns.errors import QnsError, StoreFailed
from qns.iil.requests import InstallDocument
from qns.peer.inputs import Effects, Input
from qns.peer.lineage import begin_epoch, rotate_nonce
from qns.peer.opening import UNCHANGED, DocumentPlan, first_document, inspect, mark_of
from qns.peer.peer import Peer
from qns.peer.ports import Lineage, Store
from qns.peer.recovery import Settings, recover
from qns.peer.sealing import seal_effects
from qns.peer.status import PeerStatus
from qns.peer.tables import (
    DOCUMENT,
    HISTORY,
    IDENTITY,
    DocumentRow,
    HistoryRow,
    IdentityRow,
)
from qns.peer.turn import Transaction, Turn


class Begun(NamedTuple):
    """A turn that has been handled in memory; its effects wait for the commit."""

    transaction: Transaction
    effects: Effects


@dataclass(slots=True, eq=False)
class Gateway:
    peer: Peer
    store: Store
    lineage: Lineage
    restored: bool
    """True if the store was restored from an older copy."""
    first: Effects
    """The effects of the start."""
    recording: bool = False
    document_plan: DocumentPlan = UNCHANGED
    """What has become of the configured document."""
    is_broken: bool = False
    _uncommitted: deque[int] = field(default_factory=deque)
    """The count of turns (`IdentityRow.turns`) after each turn that is not committed yet."""
    _committed_turns: int = 0
    _noted_turns: int = 0
    """The count of committed turns that is known outside the store."""
    _recorded: int = 0

    @classmethod
    def open(
        cls,
        settings: Settings,
        store: Store,
        lineage: Lineage,
        *,
        document: bytes,
        nonce: str,
        now: float,
    ) -> Gateway:
        """Begins a new epoch; `document` is put in force if it is newer than the stored one."""
        anchor = settings.anchor
        opening = inspect(store, settings.organisation, document, now=now, anchor=anchor)
        identity, stored = opening.identity, opening.stored
        change = begin_epoch(opening.mark, lineage.read(), nonce, settings.epoch_scatter)
        lineage.write(change.marks_to_write)
        turn = Turn(now)
        if identity is None or stored is None:
            federation = first_document(document, settings.organisation, now=now, anchor=anchor)
            incarnation = federation[settings.organisation].incarnation
            epoch, nonce, turns = change.mark
            identity = IdentityRow(settings.organisation, incarnation, epoch, nonce, 0, turns)
            stored = document
            turn.put(DOCUMENT, DocumentRow(federation.version, document))
        identity = identity._replace(epoch=change.mark.epoch, nonce=change.mark.nonce)
        turn.put(IDENTITY, identity)
        peer = recover(settings, store, identity, stored, now)
        peer.start(turn, restored=change.restored, is_new=opening.identity is None)
        effects = peer.finish(turn, [])
        gateway = cls(peer, store, lineage, change.restored, effects, settings.recording)
        gateway._record(turn)
        store.commit(turn.transaction)
        peer.view.committed()
        gateway.seal([effects])
        lineage.write((change.mark,))
        plan = opening.plan
        if plan.installs:
            gateway.first = _joined(effects, gateway.run([InstallDocument(document)], now))
            (answer,) = gateway.first.answers
            plan = DocumentPlan(refusal=answer if isinstance(answer, QnsError) else None)
        gateway.document_plan = plan
        return gateway

    @property
    def status(self) -> PeerStatus:
        return self.peer.status

    def run(self, inputs: Sequence[Input], now: float) -> Effects:
        """Handles one turn: commits what the inputs change, then returns the effects."""
        begun = self.begin(inputs, now)
        if begun.transaction:
            self.store.commit(begun.transaction)
        self.committed()
        self.seal([begun.effects])
        return begun.effects

    def seal(self, effects: Sequence[Effects]) -> None:
        """Seals what the turns of one commit let out, before it leaves."""
        if self.peer.sealer is not None:
            seal_effects(self.peer.sealer, self.peer.federation, effects)

    def begin(self, inputs: Sequence[Input], now: float, *, ahead: bool = False) -> Begun:
        """Handles a turn in memory.

        The caller commits its transaction, calls `committed`, and only then releases its effects.
        Until then the peer is ahead of the disk. After any failure in between, this gateway refuses
        further turns and must be opened again. With `ahead`, earlier turns may still be
        uncommitted; the caller commits them before this one or together with it.
        """
        if self.is_broken or (self._uncommitted and not ahead):
            raise StoreFailed("an earlier turn was not committed", remedy="open the gateway again")
        self.is_broken = True
        turn, effects = self.peer.turn(inputs, now)
        self._record(turn)
        if turn.transaction:
            self.peer.identity.count_turn(turn)
        self.is_broken = False
        self._uncommitted.append(self.peer.identity.row.turns)
        return Begun(turn.transaction, effects)

    def committed(self, turns: int = 1) -> None:
        """Marks the oldest `turns` uncommitted turns as committed."""
        for _ in range(turns):
            self._committed_turns = self._uncommitted.popleft()
        self.peer.view.committed(turns)

    @property
    def has_progress(self) -> bool:
        """True if turns were committed since `note_progress` was last called."""
        return self._committed_turns > self._noted_turns

    def note_progress(self) -> None:
        """Notes outside the store how many turns are committed, so that their loss is detected.

        Another thread may call it while turns run.
        """
        turns = self._committed_turns
        self.lineage.advance(mark_of(self.peer.identity.row)._replace(turns=turns))
        self._noted_turns = turns

    def _record(self, turn: Turn) -> None:
        """Adds the records of the turn to its transaction, so that both are committed together."""
        if not self.recording:
            return
        schema, me = self.peer.federation.schema, self.peer.me
        for record in turn.records:
            fields = {"t": turn.now, "org": me, **record}
            if record["do"] == "pub":
                fields["event"] = write_event_json(record["event"], schema)
            self._recorded += 1
            text = json.dumps(fields, ensure_ascii=False)
            turn.put(HISTORY, HistoryRow(self.peer.identity.epoch, self._recorded, text))

    def renew_mark(self, nonce: str) -> None:
        """Changes the mark after a backup was copied, so that the copy is recognised as old."""
        identity = self.peer.identity
        change = rotate_nonce(mark_of(identity.row), nonce)
        self.lineage.write(change.marks_to_write)
        turn = Turn(0.0)
        renewed = identity.row._replace(nonce=nonce)
        turn.put(IDENTITY, renewed)
        self.store.commit(turn.transaction)
        identity.row = renewed
        self.lineage.write((change.mark,))


def _joined(first: Effects, second: Effects) -> Effects:
    return Effects(
        second.answers,
        [*first.sends, *second.sends],
        [*first.records, *second.records],
        first.outcomes.joined(second.outcomes),
        second.wake_at,
    )
