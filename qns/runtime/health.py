"""Health: whether the peer does its work and, if not fully, the reasons in words."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import Any, Final

from qns import __version__
from qns.federation.acceptance import Freshness, freshness
from qns.federation.document import Federation
from qns.federation.roots_xml import write_expires
from qns.peer.outcomes import IncidentKind
from qns.peer.status import PeerStatus
from qns.runtime.addresses import Listen, serves
from qns.runtime.certificate_health import of_certificate
from qns.runtime.drain import Drain
from qns.runtime.driver import Driver
from qns.runtime.incidents import LOST_STORE, TWIN
from qns.runtime.own_certificate import OwnCertificate
from qns.runtime.own_key import OwnKey
from qns.runtime.own_seal import OwnSeal
from qns.runtime.quotas import Quotas
from qns.runtime.reasons import Reason, ReasonKind, overall_status
from qns.runtime.seal_health import of_call_key, of_other_seals, of_own_seal
from qns.runtime.timestamper import Timestamper, of_timestamps
from qns.soap.ws_signing import CallSigner
from qns.store.sqlite import LOW_WATER_BYTES

NEARLY_FULL_BYTES: Final = 4 * LOW_WATER_BYTES
"""A disk with fewer free bytes is nearly full."""
_REMEMBERED_S: Final = 300.0
"""How long a failed commit is reported after the peer has recovered."""
_MOST_NAMED: Final = 10
"""How many subscriptions with dropped deliveries the reasons name."""
_REFUSALS: Final = 3
"""As many refusals in a row of the calls to one peer are a reason."""
_REPEATS: Final = 5
"""As many repetitions of a call that is answered, but in vain, are a reason."""
_SET_BACK_SHOWN_S: Final = 3600.0
"""How long it is a reason that the store of a producer went back in time."""
_LONGEST_SPAN_S: Final = 100 * 366 * 86_400.0
_PENDING_S: Final = 120.0
"""A subscription that is pending longer is a reason."""


@dataclass(slots=True, eq=False)
class Health:
    driver: Driver
    store: Path
    started: float
    """When the process started, in seconds since 1970."""
    drain: Drain | None = None
    listen: Listen | None = None
    """Where the peer listens because the document said so at its start; None behind a proxy."""
    own: OwnCertificate | None = None
    """The certificate for other peers; None if this peer uses only loopback."""
    seal: OwnSeal | None = None
    call_key: OwnKey[CallSigner] | None = None
    quotas: Quotas | None = None
    timestamper: Timestamper | None = None
    _setback: IncidentKind | None = None
    """The last setback of the store since the process started."""

    def state(self) -> dict[str, Any]:
        status, reasons = self.driver.status, self.reasons()
        return {
            "status": overall_status(reasons),
            "reasons": [str(reason) for reason in reasons],
            "details": [reason.as_fields() for reason in reasons],
            "organisation": status.organisation,
            "version": __version__,
            "epoch": status.epoch,
            "federation": status.federation.name,
            "document": status.federation.version,
            "subscriptions": status.subscriptions,
            "commit_failures": self.driver.commit_failures,
            "uptime_s": round(time() - self.started, 3),
            "time": time(),
        }

    def for_members(self) -> dict[str, Any]:
        """Returns what other members may know."""
        status = self.driver.status
        return {
            "organisation": status.organisation,
            "federation": status.federation.name,
            "document": status.federation.version,
            "time": time(),
        }

    def reasons(self) -> list[Reason]:
        """Returns why the peer is not ok; those for which it is failing come first."""
        status = self.driver.status
        found = [
            *self._of_store(),
            *self._of_driver(),
            *_of_age(status, self.driver.now()),
            *_of_federation(status),
            *self._of_endpoint(status),
            *of_certificate(self.own, status.federation, status.organisation, time()),
            *of_own_seal(self.seal, status.federation, status.organisation, time()),
            *of_call_key(self.call_key, status.federation, status.organisation, time()),
            *of_other_seals(status, self.driver.now()),
            *of_timestamps(self.timestamper, self.driver.now()),
            *_of_calls(status),
            *_of_claims(status, self.driver.now()),
            *_of_producers(status, self.driver.now()),
            *_of_queues(status),
            *self._of_subscriptions(status),
            *_of_quotas(self.quotas),
        ]
        return sorted(found, key=lambda reason: reason.status, reverse=True)

    def _of_store(self) -> Iterator[Reason]:
        driver = self.driver
        if driver.trouble is not None:
            for_s = driver.now() - driver.trouble.since
            words = f"nothing can be stored since {for_s:.0f} s: {driver.trouble.reason}"
            yield Reason(ReasonKind.STORE_FAILS, words)
        last = driver.last_failure
        if driver.trouble is None and last and driver.now() - last.since < _REMEMBERED_S:
            ago = driver.now() - last.since
            words = f"a turn could not be stored {ago:.0f} s ago: {last.reason}"
            yield Reason(ReasonKind.COMMIT_FAILED, words)
        free = free_bytes(self.store)
        if free is not None and free < LOW_WATER_BYTES:
            words = f"only {free:,} bytes are free on the disk"
            yield Reason(ReasonKind.DISK_FULL, words)
        elif free is not None and free < NEARLY_FULL_BYTES:
            yield Reason(
                ReasonKind.DISK_LOW,
                f"{free:,} bytes are free on the disk; with less than {LOW_WATER_BYTES:,} nothing "
                "new is stored",
            )
        if not getattr(driver.gateway.store, "has_checksums", True):
            yield Reason(ReasonKind.NO_CHECKSUMS, "the store has no checksums")
        self._setback = driver.status.setback or self._setback
        if driver.status.is_fenced:
            yield Reason(
                ReasonKind.FENCED_OUT,
                "another peer runs as this organisation, with a copy of this store: this one "
                "accepts and sends nothing",
            )
        elif self._setback is IncidentKind.OWN_TWIN:
            yield Reason(ReasonKind.TWIN, TWIN)
        if self._setback is IncidentKind.OWN_LOSS:
            yield Reason(ReasonKind.LOST_STORE, LOST_STORE)
        elif self._setback is IncidentKind.OWN_COPY:
            yield Reason(
                ReasonKind.RESTORED,
                "the store was restored from an older copy, or went back in time",
            )

    def _of_driver(self) -> Iterator[Reason]:
        driver = self.driver
        if driver.is_stopping:
            yield Reason(ReasonKind.STOPPING, "the peer is stopping")
        if driver.waiting >= driver.most_waiting:
            words = f"{driver.waiting:,} requests are waiting: further ones are rejected"
            yield Reason(ReasonKind.OVERLOADED, words)
        if self.drain is not None and self.drain.is_on:
            words = "the peer is draining and accepts no new publications and subscriptions"
            yield Reason(ReasonKind.DRAINING, words)
        if driver.refused_document:
            words = f"the configured document is not in force: {driver.refused_document}"
            yield Reason(ReasonKind.DOCUMENT_REFUSED, words)

    def _of_endpoint(self, status: PeerStatus) -> Iterator[Reason]:
        words = moved_words(
            status.federation, status.organisation, self.listen, has_tls=self.own is not None
        )
        if words:
            yield Reason(ReasonKind.MOVED, words)

    def _of_subscriptions(self, status: PeerStatus) -> Iterator[Reason]:
        now = self.driver.now()
        for pending in status.pending():
            for_s = now - max(pending.since, self.started)
            if for_s >= _PENDING_S:
                more = f" and {pending.subscriptions - 1:,} more" * (pending.subscriptions > 1)
                yield Reason(
                    ReasonKind.PENDING,
                    f"the subscription {pending.oldest}{more} is pending at {pending.producer} "
                    f"since {for_s:.0f} s: events from there are held back",
                )


def moved_words(
    federation: Federation, me: str, listen: Listen | None, *, has_tls: bool = False
) -> str:
    """Says that the document has another endpoint than the one served; empty if it does not."""
    endpoint = federation[me].endpoint if me in federation else ""
    if listen is None or not endpoint or serves(listen, endpoint, has_tls=has_tls):
        return ""
    return (
        f"the federation document has the endpoint {endpoint} for {me}, and this peer still "
        f"listens on {listen.tls_url if has_tls else listen.url}"
    )


def free_bytes(store: Path) -> int | None:
    try:
        disk = os.statvfs(store.parent)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def store_bytes(store: Path) -> int:
    """Returns the size of the store's file and its write-ahead log."""
    total = 0
    for file in (store, store.with_name(f"{store.name}-wal")):
        with suppress(OSError):
            total += file.stat().st_size
    return total


def _of_age(status: PeerStatus, now: float) -> Iterator[Reason]:
    """Yields that the document has expired or soon will."""
    federation, tuning = status.federation, status.tuning
    if federation.expires is None:
        return
    document = f"version {federation.version} of the federation document"
    at, expires = federation.expires.timestamp(), write_expires(federation.expires)
    closes = write_expires(datetime.fromtimestamp(at, UTC) + _seconds(tuning.document_grace_s))
    match freshness(federation, now, tuning.document_grace_s):
        case Freshness.CLOSED:
            yield Reason(
                ReasonKind.DOCUMENT_CLOSED,
                f"{document} expired at {expires} and the grace ended at {closes}: new "
                "publications, subscriptions and messages of peers are answered Busy",
            )
        case Freshness.STALE:
            words = f"{document} expired at {expires}; the peer closes at {closes}"
            yield Reason(ReasonKind.DOCUMENT_EXPIRED, words)
        case Freshness.FRESH if now >= at - tuning.document_warning_s:
            yield Reason(ReasonKind.DOCUMENT_EXPIRES, f"{document} expires at {expires}")


def _seconds(seconds: float) -> timedelta:
    """Returns a time span; one that a date cannot hold becomes a long one."""
    return timedelta(seconds=min(seconds, _LONGEST_SPAN_S))


def _of_federation(status: PeerStatus) -> Iterator[Reason]:
    me, federation = status.organisation, status.federation
    version = federation.version
    if not status.is_member:
        words = f"{me} is not a member of the federation {federation.name}"
        yield Reason(ReasonKind.NOT_A_MEMBER, words)
    newer = status.newest_document
    if newer > version:
        words = f"version {version} of the federation document is in force here, others have "
        refused = status.useless_documents
        why = "".join(
            f"; that of {other} is refused: {reason}" for other, reason in refused.items()
        )
        yield Reason(ReasonKind.OLD_DOCUMENT, f"{words}{newer}{why}")
    for other, reason in status.refused_offers.items():
        words = f"{other} refuses version {version} of the federation document from here: {reason}"
        yield Reason(ReasonKind.OFFER_REFUSED, words)
    unknown = [name for name, each in federation.organisations.items() if not each.endpoint]
    others = [name for name in unknown if name != me]
    if others:
        words = f"the federation document has no endpoint for {', '.join(others)}"
        yield Reason(ReasonKind.NO_ENDPOINT, words)


def _of_calls(status: PeerStatus) -> Iterator[Reason]:
    silent = status.unreachable
    if silent:
        words = f"no answer from {', '.join(silent)}: what is owed to them is kept"
        yield Reason(ReasonKind.UNREACHABLE, words)
    for link in status.links():
        if link.failures >= _REFUSALS and link.other not in silent:
            words = f"{link.other} has refused {link.failures:,} calls in a row: {link.problem}"
            yield Reason(ReasonKind.REFUSED, words)
        if link.change_refusal:
            words = (
                f"{link.other} refuses the view of the subscriptions here, so that events from "
                f"there may be missing: {link.change_refusal}"
            )
            yield Reason(ReasonKind.REFUSED, words)
        if link.send_alls >= _REPEATS:
            words = f"{link.other} has asked {link.send_alls:,} times in a row for the whole view"
            yield Reason(ReasonKind.LOOPING, words)
        if link.pulls >= _REPEATS:
            words = f"{link.pulls:,} attempts to close a gap in the stream of {link.other} failed"
            yield Reason(ReasonKind.LOOPING, words)


def _of_claims(status: PeerStatus, now: float) -> Iterator[Reason]:
    for member in status.disbelieved(now):
        words = (
            f"{member} claims again and again that this peer has forgotten a later epoch, and is "
            "not believed for some time"
        )
        yield Reason(ReasonKind.FALSE_CLAIMS, words)


def _of_producers(status: PeerStatus, now: float) -> Iterator[Reason]:
    for name, at in status.set_back_producers().items():
        if now - at < _SET_BACK_SHOWN_S:
            yield Reason(
                ReasonKind.PRODUCER_RESTORED,
                f"the store of {name} went back in time, or was lost",
            )


def _of_quotas(quotas: Quotas | None) -> Iterator[Reason]:
    for member, quota, refused, _ in quotas.recent_excesses() if quotas is not None else ():
        yield Reason(
            ReasonKind.QUOTA_EXCEEDED,
            f"{member} exceeds the quota {quota}: {refused:,} of its requests were refused for now",
            f"ask the operator of {member} what it sends; if it needs that, raise tuning.{quota} "
            "and restart this peer",
        )


def _of_queues(status: PeerStatus) -> Iterator[Reason]:
    letters = status.dead_letters
    if letters:
        words = f"receivers rejected {letters:,} notifications"
        yield Reason(ReasonKind.DEAD_LETTERS, words)
    overflowing = list(status.dropped())
    for id, owner, dropped in overflowing[:_MOST_NAMED]:
        named = f"{shlex.quote(id)} --owner {shlex.quote(owner)}"
        yield Reason(
            ReasonKind.DROPPED_DELIVERIES,
            f"the limit longest_queue has dropped {dropped:,} deliveries of subscription {id}",
            f"read the rest with qns pull {named} --ack, or end it with qns unsubscribe {named}",
        )
    if len(overflowing) > _MOST_NAMED:
        more = len(overflowing) - _MOST_NAMED
        words = f"the limit longest_queue has dropped deliveries of {more:,} more"
        yield Reason(ReasonKind.DROPPED_DELIVERIES, words)
    for full, meaning in status.full_buffers():
        yield Reason(ReasonKind.BUFFER_FULL, f"{full}: {meaning}")
    for stream in status.outbound():
        dropped = status.dropped_for(stream)
        if dropped:
            yield Reason(
                ReasonKind.DROPPED_EVENTS,
                f"the limit most_owed or most_owed_bytes has dropped {dropped:,} events that were "
                f"owed to {stream.consumer}",
            )
