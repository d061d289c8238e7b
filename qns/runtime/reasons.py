"""Reasons: why a peer is degraded or failing, each with a remedy and a command."""

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
    DOCUMENT_EXPIRES = "document_expires"
    DOCUMENT_EXPIRED = "document_expired"
    DOCUMENT_CLOSED = "document_closed"
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
    MOVED = "moved"
    DEAD_LETTERS = "dead_letters"
    DROPPED_DELIVERIES = "dropped_deliveries"
    DROPPED_EVENTS = "dropped_events"
    BUFFER_FULL = "buffer_full"
    PENDING = "pending"
    KEY_UNUSABLE = "key_unusable"
    CERTIFICATE_UNNAMED = "certificate_unnamed"
    CERTIFICATE_EXPIRED = "certificate_expired"
    CERTIFICATE_EXPIRES = "certificate_expires"
    NO_SEAL = "no_seal"
    WRONG_SEALS = "wrong_seals"
    QUOTA_EXCEEDED = "quota_exceeded"
    TIMESTAMPS_LATE = "timestamps_late"


class Remedy(NamedTuple):
    words: str
    """What an operator does, or how the cause ends without them."""
    command: str
    """The command that mends the cause or, if no command can, helps first."""


REMEDIES: Final[Mapping[ReasonKind, Remedy]] = {
    ReasonKind.STOPPING: Remedy("wait until it has stopped, and start it again", "qns peer run"),
    ReasonKind.STORE_FAILS: Remedy(
        "free some space if there is none, mend the disk if it fails, or restore a backup if the "
        "store is damaged; the peer opens the store again on its own",
        "qns peer check",
    ),
    ReasonKind.DISK_FULL: Remedy(
        "free some space, or let users read and acknowledge if the peer still serves them; it "
        "goes on by itself",
        "qns peer status",
    ),
    ReasonKind.DISK_LOW: Remedy("free some space", "qns peer status"),
    ReasonKind.COMMIT_FAILED: Remedy(
        "callers got an error and try again; test the disk if it happens again", "qns peer check"
    ),
    ReasonKind.OVERLOADED: Remedy(
        "callers try again on their own; if it lasts, publish more slowly or use a faster disk",
        "qns peer status",
    ),
    ReasonKind.DRAINING: Remedy("end it when the work is done", "qns peer resume"),
    ReasonKind.DOCUMENT_REFUSED: Remedy(
        "correct the file and send SIGHUP, or install a valid document", "qns peer document install"
    ),
    ReasonKind.DOCUMENT_EXPIRES: Remedy(
        "put a fresh document in force at one peer of the federation before that time",
        "qns federation publish",
    ),
    ReasonKind.DOCUMENT_EXPIRED: Remedy(
        "get a fresh document from those who sign it, and put it in force at one peer of the "
        "federation",
        "qns federation publish",
    ),
    ReasonKind.DOCUMENT_CLOSED: Remedy(
        "get a fresh document from those who sign it, and put it in force at one peer of the "
        "federation; what is owed is kept, and callers try again on their own",
        "qns federation publish",
    ),
    ReasonKind.NO_CHECKSUMS: Remedy(
        "free three times its size and restart the peer", "qns peer run"
    ),
    ReasonKind.RESTORED: Remedy(
        "publish again what was published after that copy, and let users subscribe again who "
        "subscribed after it; this is shown until the next start",
        "qns publish",
    ),
    ReasonKind.LOST_STORE: Remedy(
        "stop the peer and restore a backup with qns peer restore, or let users subscribe again; "
        "this is shown until the next start",
        "qns peer restore",
    ),
    ReasonKind.PRODUCER_RESTORED: Remedy(
        "ask the operator of that peer: it has forgotten events that are here, and perhaps others",
        "qns peer tables",
    ),
    ReasonKind.TWIN: Remedy(
        "stop one of the two and start the other again; this is shown until the next start",
        "qns peer run",
    ),
    ReasonKind.FENCED_OUT: Remedy("stop one of the two, and start the other again", "qns peer run"),
    ReasonKind.NOT_A_MEMBER: Remedy(
        "install a document that names it, or stop the peer for good", "qns peer document install"
    ),
    ReasonKind.UNREACHABLE: Remedy(
        "they are called again on their own; if it lasts, find the cause", "qns peer connections"
    ),
    ReasonKind.REFUSED: Remedy(
        "mend what the reason names, or ask the operator of that peer", "qns peer connections"
    ),
    ReasonKind.LOOPING: Remedy(
        "restart this peer; if it goes on, send a report to the operator of the other one and to "
        "the makers of QNS",
        "qns peer report",
    ),
    ReasonKind.FALSE_CLAIMS: Remedy(
        "ask the operator of that member; this ends on its own when the claims end",
        "qns peer connections",
    ),
    ReasonKind.OLD_DOCUMENT: Remedy(
        "this peer fetches it on its own; install it if that fails", "qns peer document install"
    ),
    ReasonKind.OFFER_REFUSED: Remedy(
        "make a version that follows the one in force there", "qns federation"
    ),
    ReasonKind.NO_ENDPOINT: Remedy("make the next version with an endpoint", "qns federation"),
    ReasonKind.MOVED: Remedy(
        "put the document in force into the configured file, and the new address into listen if "
        "it is set, and restart the peer; or make a version with the served endpoint",
        "qns peer run",
    ),
    ReasonKind.DEAD_LETTERS: Remedy(
        "see qns peer dead-letters list; then redeliver or drop them", "qns peer dead-letters list"
    ),
    ReasonKind.DROPPED_DELIVERIES: Remedy(
        "read the rest with qns pull, or raise tuning.longest_queue and restart the peer",
        "qns pull",
    ),
    ReasonKind.DROPPED_EVENTS: Remedy(
        "ask that organisation to start its peer, or raise tuning.most_owed or "
        "tuning.most_owed_bytes and restart this one",
        "qns peer connections",
    ),
    ReasonKind.BUFFER_FULL: Remedy(
        "let users read or unsubscribe, or raise the limit in [tuning] and restart the peer",
        "qns peer tables",
    ),
    ReasonKind.PENDING: Remedy(
        "the producer must answer: find out why it does not", "qns peer connections"
    ),
    ReasonKind.KEY_UNUSABLE: Remedy(
        "put a key and its certificate into the configured files; until then the former ones stay "
        "in use, and the peer cannot start again",
        "qns certificates show",
    ),
    ReasonKind.CERTIFICATE_UNNAMED: Remedy(
        "install a document that names it, or put the former key and certificate back",
        "qns peer document install",
    ),
    ReasonKind.CERTIFICATE_EXPIRED: Remedy(
        "make a new one, and let the next version of the document name it", "qns certificates make"
    ),
    ReasonKind.CERTIFICATE_EXPIRES: Remedy(
        "make a new one, and let the next version of the document name both",
        "qns certificates make",
    ),
    ReasonKind.NO_SEAL: Remedy(
        "add a section [seal] with the key and the certificate that the document names, and "
        "restart the peer",
        "qns certificates make",
    ),
    ReasonKind.WRONG_SEALS: Remedy(
        "nothing is lost: the producers send these events again; ask the operator of that member "
        "whether its certificate has changed, or whether it forges events",
        "qns peer connections",
    ),
    ReasonKind.QUOTA_EXCEEDED: Remedy(
        "ask the operator of that member what it sends; if it needs that, raise the quota in "
        "[tuning] and restart this peer",
        "qns peer connections",
    ),
    ReasonKind.TIMESTAMPS_LATE: Remedy(
        "nothing is lost: it gets its timestamp when the authority answers; see to the address "
        "and the certificate in the section [evidence], and restart the peer if they change",
        "qns peer check",
    ),
}

_FAILING: Final = frozenset(
    (
        ReasonKind.STOPPING,
        ReasonKind.STORE_FAILS,
        ReasonKind.DISK_FULL,
        ReasonKind.FENCED_OUT,
        ReasonKind.DOCUMENT_CLOSED,
        ReasonKind.KEY_UNUSABLE,
        ReasonKind.CERTIFICATE_UNNAMED,
        ReasonKind.CERTIFICATE_EXPIRED,
        ReasonKind.NO_SEAL,
    )
)


class Reason(NamedTuple):
    kind: ReasonKind
    words: str
    exact_remedy: str = ""
    """A more exact remedy than that of the kind, with its command."""

    @property
    def status(self) -> str:
        return FAILING if self.kind in _FAILING else DEGRADED

    @property
    def remedy(self) -> str:
        """What the operator does, with a command."""
        words, command = REMEDIES[self.kind]
        words = self.exact_remedy or words
        return words if command in words else f"{words} ({command})"

    def __str__(self) -> str:
        return f"{self.words}{'; ' if ': ' in self.words else ': '}{self.remedy}"

    def as_fields(self) -> dict[str, str]:
        return {
            "kind": self.kind.value,
            "status": self.status,
            "words": self.words,
            "remedy": self.remedy,
            "command": REMEDIES[self.kind].command,
        }


def overall_status(reasons: list[Reason]) -> str:
    """Returns the worst status that a reason gives."""
    found = {reason.status for reason in reasons}
    return FAILING if FAILING in found else DEGRADED if found else OK
