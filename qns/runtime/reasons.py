"""Reasons: why a peer is degraded or failing, each with the command that mends it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

OK: Final = "ok"
DEGRADED: Final = "degraded"
FAILING: Final = "failing"


class ReasonKind(Enum):
    """The kinds of reasons; the value is the label of the metric."""

    STOPPING = "stopping"
    STORE_FAILS = "store_fails"
    DISK_FULL = "disk_full"
    DISK_LOW = "disk_low"
    COMMIT_FAILED = "commit_failed"
    OVERLOADED = "overloaded"
    DRAINING = "draining"
    DOCUMENT_REFUSED = "document_refused"
    NO_CHECKSUMS = "no_checksums"
    RESTORED = "restored"
    LOST_STORE = "lost_store"
    PRODUCER_RESTORED = "producer_restored"
    TWIN = "twin"
    FENCED_OUT = "fenced_out"
    NOT_A_MEMBER = "not_a_member"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    LOOPING = "looping"
    FALSE_CLAIMS = "false_claims"
    OLD_DOCUMENT = "old_document"
    OFFER_REFUSED = "offer_refused"
    NO_ENDPOINT = "no_endpoint"
    DEAD_LETTERS = "dead_letters"
    DROPPED_DELIVERIES = "dropped_deliveries"
    DROPPED_EVENTS = "dropped_events"
    BUFFER_FULL = "buffer_full"
    PENDING = "pending"


COMMANDS: Final[Mapping[ReasonKind, str]] = {
    ReasonKind.STOPPING: "qns peer run",
    ReasonKind.STORE_FAILS: "qns peer check",
    ReasonKind.DISK_FULL: "qns peer check",
    ReasonKind.DISK_LOW: "qns peer check",
    ReasonKind.COMMIT_FAILED: "qns peer check",
    ReasonKind.OVERLOADED: "qns peer status",
    ReasonKind.DRAINING: "qns peer resume",
    ReasonKind.DOCUMENT_REFUSED: "qns peer document install",
    ReasonKind.NO_CHECKSUMS: "qns peer check",
    ReasonKind.RESTORED: "qns peer tables",
    ReasonKind.LOST_STORE: "qns peer restore",
    ReasonKind.PRODUCER_RESTORED: "qns peer tables",
    ReasonKind.TWIN: "qns peer check",
    ReasonKind.FENCED_OUT: "qns peer check",
    ReasonKind.NOT_A_MEMBER: "qns peer document install",
    ReasonKind.UNREACHABLE: "qns peer connections",
    ReasonKind.REFUSED: "qns peer connections",
    ReasonKind.LOOPING: "qns peer tables",
    ReasonKind.FALSE_CLAIMS: "qns peer connections",
    ReasonKind.OLD_DOCUMENT: "qns peer document install",
    ReasonKind.OFFER_REFUSED: "qns federation",
    ReasonKind.NO_ENDPOINT: "qns federation",
    ReasonKind.DEAD_LETTERS: "qns peer dead-letters list",
    ReasonKind.DROPPED_DELIVERIES: "qns pull",
    ReasonKind.DROPPED_EVENTS: "qns peer tables",
    ReasonKind.BUFFER_FULL: "qns peer tables",
    ReasonKind.PENDING: "qns peer tables",
}
"""The command that mends the cause of a reason, or shows what is wrong."""

_FAILING: Final = frozenset(
    (
        ReasonKind.STOPPING,
        ReasonKind.STORE_FAILS,
        ReasonKind.DISK_FULL,
        ReasonKind.FENCED_OUT,
    )
)


class Reason(NamedTuple):
    kind: ReasonKind
    words: str

    @property
    def status(self) -> str:
        return FAILING if self.kind in _FAILING else DEGRADED

    def __str__(self) -> str:
        """Returns the words with the command, unless they name a more exact one themselves."""
        return self.words if "qns " in self.words else f"{self.words} (use {COMMANDS[self.kind]})"


def overall_status(reasons: list[Reason]) -> str:
    """Returns the worst status that a reason gives."""
    found = {reason.status for reason in reasons}
    return FAILING if FAILING in found else DEGRADED if found else OK
