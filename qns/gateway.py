"""Gateway: a peer on its store. Nothing leaves before it is committed.

Opening it begins a new epoch and says hello to everybody. If a commit fails, the peer in memory is
ahead of the disk: it is thrown away and opened again from what the disk has.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qns.d2q.event_json import write_event_json
from qns.errors import StoreFailed
from qns.federation.document_xml import read_federation
from qns.iil.requests import InstallDocument
from qns.inputs import Effects, Input
from qns.lineage import begin_life, rotated
from qns.peer import Peer
from qns.ports import Lineage, Mark, Store
from qns.recovery import Settings, document_of, identity_of, recover
from qns.tables import (
    DOCUMENT,
    HISTORY,
    IDENTITY,
    DocumentRow,
    HistoryRow,
    IdentityRow,
    Transaction,
)
from qns.turn import Turn


class Begun(NamedTuple):
    """A turn that has happened in memory; its effects wait for the commit."""

    transaction: Transaction
    effects: Effects


@dataclass(slots=True, eq=False)
class Gateway:
    peer: Peer
    store: Store
    lineage: Lineage
    restored: bool
    """The store was found to be an older copy of itself: an incident to report."""
    first: Effects
    """What the start has to say: hello."""
    recording: bool = False
    is_broken: bool = False
    _uncommitted: int = 0
    """Turns that have happened in memory only."""
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
        """Begins a new life of the store; `document` counts if it is newer than the stored one."""
        identity = identity_of(store, settings.organisation)
        mark = None if identity is None else Mark(identity.epoch, identity.nonce)
        life = begin_life(mark, lineage.read(), nonce)
        lineage.write(life.marks_to_write)
        turn = Turn(now)
        stored = document_of(store)
        if identity is None:
            federation = read_federation(document)
            joined = federation[settings.organisation].joined
            identity = IdentityRow(settings.organisation, joined, *life.mark, 0)
            stored = document
            turn.put(DOCUMENT, DocumentRow(federation.version, document))
        if stored is None:
            raise StoreFailed(
                "the store has no federation document", remedy="restore it from a backup"
            )
        identity = identity._replace(epoch=life.mark.epoch, nonce=life.mark.nonce)
        turn.put(IDENTITY, identity)
        peer = recover(settings, store, identity, stored)
        peer.start(turn, restored=life.restored)
        effects = peer.finish(turn, [])
        gateway = cls(peer, store, lineage, life.restored, effects, settings.recording)
        gateway._record(turn)
        store.commit(turn.transaction)
        lineage.write((life.mark,))
        if document != stored and read_federation(document).version > peer.federation.version:
            gateway.first = _both(effects, gateway.run([InstallDocument(document)], now))
        return gateway

    def run(self, inputs: Sequence[Input], now: float) -> Effects:
        """One turn: commits what the inputs change, then tells what they bring about."""
        begun = self.begin(inputs, now)
        if begun.transaction:
            self.store.commit(begun.transaction)
        self.committed()
        return begun.effects

    def begin(self, inputs: Sequence[Input], now: float, *, ahead: bool = False) -> Begun:
        """A turn in memory. Commit its transaction, say `committed`, then let its effects out.

        Until then the peer is ahead of the disk. Whatever goes wrong on the way, this gateway
        refuses to go on and must be opened again. Who says `ahead` will commit the turns before
        first, or this one with them; if they cannot be, this one never happened either.
        """
        if self.is_broken or (self._uncommitted and not ahead):
            raise StoreFailed("an earlier turn was not committed", remedy="open the gateway again")
        self.is_broken = True
        turn, effects = self.peer.turn(inputs, now)
        self._record(turn)
        self.is_broken = False
        self._uncommitted += 1
        return Begun(turn.transaction, effects)

    def committed(self, turns: int = 1) -> None:
        """The oldest ones that were not."""
        self._uncommitted -= turns

    def _record(self, turn: Turn) -> None:
        """What happened is committed with what it changed: no crash can part them."""
        if not self.recording:
            return
        schema, me = self.peer.federation.schema, self.peer.me
        for record in turn.records:
            told = {"t": turn.now, "org": me, **record}
            if record["do"] == "pub":
                told["event"] = write_event_json(record["event"], schema)
            self._recorded += 1
            row = HistoryRow(
                self.peer.identity.epoch, self._recorded, json.dumps(told, ensure_ascii=False)
            )
            turn.put(HISTORY, row)

    def renew_mark(self, nonce: str) -> None:
        """After a backup was copied: the copy carries the old mark and can be told apart."""
        identity = self.peer.identity
        life = rotated(Mark(identity.epoch, identity.nonce), nonce)
        self.lineage.write(life.marks_to_write)
        turn = Turn(0.0)
        renewed = identity._replace(nonce=life.mark.nonce)
        turn.put(IDENTITY, renewed)
        self.store.commit(turn.transaction)
        self.peer.identity = renewed
        self.lineage.write((life.mark,))


def _both(first: Effects, second: Effects) -> Effects:
    return Effects(
        second.answers,
        [*first.sends, *second.sends],
        [*first.records, *second.records],
        second.wake_at,
    )
