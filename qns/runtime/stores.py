"""Stores: opens the store of a running peer, and recovers the peer from it."""

from __future__ import annotations

import gc
import secrets
from contextlib import suppress
from dataclasses import dataclass
from time import thread_time

from qns.cbr.index import MatchingIndex
from qns.errors import StoreFailed
from qns.peer.gateway import Gateway
from qns.peer.lineage import EPOCH_SCATTER
from qns.peer.recovery import Settings
from qns.runtime.configuration import Configuration
from qns.runtime.own_seal import OwnSeal
from qns.store.connection import refuse_emptied
from qns.store.sqlite import SqliteStore


@dataclass(slots=True, eq=False)
class Stores:
    """Opens the store of a peer, and opens it again after a failure."""

    configuration: Configuration
    seal: OwnSeal | None = None
    _store: SqliteStore | None = None

    def open(self, now: float) -> Gateway:
        configuration = self.configuration
        if self._store is not None:
            gc.unfreeze()  # the objects of the previous peer can be freed now
        self.close()
        refuse_emptied(configuration.store, configuration.lineage)
        self._store = SqliteStore(configuration.store)
        gc.disable()  # it would traverse everything again and again while the peer is recovered
        try:
            return self._recovered(now)
        finally:
            gc.enable()

    def _recovered(self, now: float) -> Gateway:
        configuration, evidence = self.configuration, self.configuration.evidence
        assert self._store is not None
        return Gateway.open(
            Settings(
                configuration.organisation,
                configuration.tuning,
                MatchingIndex,
                recording=configuration.history,
                exact_merging=configuration.merging == "exact",
                anchor=configuration.anchor,
                epoch_scatter=EPOCH_SCATTER,
                signer=self.seal,
                stopwatch=thread_time,
                keep_evidence_s=evidence.keep_s if evidence else None,
            ),
            self._store,
            configuration.lineage,
            document=configuration.document,
            nonce=secrets.token_hex(8),
            now=now,
        )

    def current(self) -> SqliteStore | None:
        """Returns the store in use."""
        return self._store

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with suppress(StoreFailed):  # the store may have failed before
                store.close()
