"""Seals: one signature of the producer over everything that a commit lets out.

The leaves of a Merkle tree are the entries of the producer's notifications and skips, each with
what it belongs to: the exact bytes of the event, its place, the receiver, its number and fences,
and the peers that may carry it. The root is signed once. A seal is the fingerprint of the
producer's certificate followed by the signature; each entry has a proof that leads to the signed
root. So a forwarder can neither alter nor invent what it passes on. Acknowledgements that pass
through relays are sealed by their consumer in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from qns.edl.merkle import root_of, tree_of
from qns.edl.messages import (
    ANY_MEMBER,
    Entry,
    Item,
    Notification,
    RelayAcknowledgement,
    Skip,
    entry_of,
)
from qns.edl.seal_texts import acknowledgement_leaf, entry_text, head_text, signed_text
from qns.federation.document import Federation
from qns.federation.seal_keys import SealKey
from qns.peer.outcomes import IncidentKind
from qns.peer.ports import Store
from qns.peer.tables import FORMER_SEALS, FormerSealRow
from qns.peer.turn import Turn

FINGERPRINT_BYTES: Final = 32
MOST_ROOTS: Final = 10_000
"""How many verified roots of one federation document are remembered."""
MOST_FALSE_SIGNATURES: Final = 3
"""After as many signatures of one request that do not fit, no further signature is checked in it.
An honest sender has checked what it passes on, so that its requests have none."""
CLOCK_TOLERANCE_S: Final = 300.0
"""By how much the clocks of two peers may differ when a certificate begins or ends."""
NOT_CHECKED: Final = "too many seals of this request do not fit: send what is genuine again"
"""The flaw of a message whose signature was not checked."""


class Signer(Protocol):
    """Signs with the key of one seal certificate of this organisation."""

    @property
    def fingerprint(self) -> bytes:
        """The SHA-256 of the certificate in DER."""

    def sign(self, message: bytes) -> bytes: ...


ReadCertificate = Callable[[str], SealKey]
"""Reads a certificate in PEM."""


class Refusals(NamedTuple):
    """The messages of one member that were refused because of their seals."""

    number: int
    at: float
    """When the last one was refused."""
    reason: str


Sealable = Notification | Skip | RelayAcknowledgement


# --- sealing --------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Sealer:
    """Seals what leaves this peer with one commit."""

    me: str
    signer: Signer
    problem: str = ""
    """Why the signer failed last; empty if it did not."""

    def seal(self, federation: str, letters: Sequence[tuple[Sealable, str]]) -> list[Sealable]:
        """Returns the messages with seals; each comes with the organisation that gets it."""
        if not letters:
            return []
        leaves: list[bytes] = []
        for message, to in letters:
            leaves += _leaves(message, to)
        root, proofs = tree_of(leaves)
        signature = self.signer.sign(signed_text(federation, self.me, root))
        seal, rest = self.signer.fingerprint + signature, iter(proofs)
        return [_sealed(message, to, seal, rest) for message, to in letters]


def _leaves(message: Sealable, to: str) -> Iterator[bytes]:
    if isinstance(message, RelayAcknowledgement):
        yield acknowledgement_leaf(message)
        return
    head = head_text(message)
    for entry in _with_carriers(entry_of(message), _carriers(message, to)):
        yield head + entry_text(entry)


def _sealed(message: Sealable, to: str, seal: bytes, proofs: Iterator[bytes]) -> Sealable:
    if isinstance(message, RelayAcknowledgement):
        return replace(message, proof=next(proofs), seal=seal)
    entry = _proved(entry_of(message), _carriers(message, to), proofs)
    if isinstance(message, Skip):
        return replace(message, first=entry, seal=seal)
    return message._replace(entry=entry, seal=seal)


def _carriers(item: Item, to: str) -> tuple[str, ...]:
    """Returns the carriers of the item's own entry: nobody else if it is sent to its receiver."""
    return () if entry_of(item).receiver == to else (ANY_MEMBER,)


def _with_carriers(entry: Entry, carriers: tuple[str, ...]) -> Iterator[Entry]:
    """Yields the entries of a subtree, each before its children, with their carriers."""
    yield entry._replace(carriers=carriers)
    for child in entry.children:
        yield from _with_carriers(child, _below(entry, carriers))


def _proved(entry: Entry, carriers: tuple[str, ...], proofs: Iterator[bytes]) -> Entry:
    """Returns the subtree with carriers and proofs, in the order of `_with_carriers`."""
    proof = next(proofs)
    children = tuple(_proved(each, _below(entry, carriers), proofs) for each in entry.children)
    return entry._replace(children=children, carriers=carriers, proof=proof)


def _below(entry: Entry, carriers: tuple[str, ...]) -> tuple[str, ...]:
    return (*carriers, entry.receiver)


# --- checking -------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Seals:
    """Checks the seals of other organisations with the certificates of the document in force."""

    me: str
    federation: Federation
    read_certificate: ReadCertificate
    former: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Organisation that has left -> its last certificates: it may still owe events."""
    former_documents: dict[str, int] = field(default_factory=dict)
    """The same organisation -> the last version of the document that named them."""
    refusals: dict[str, Refusals] = field(default_factory=dict)
    """Member -> what was refused of what it has sent."""
    _keys: dict[str, Mapping[bytes, SealKey]] = field(default_factory=dict)
    _roots: dict[tuple[str, bytes, bytes], SealKey] = field(default_factory=dict)
    """(organisation, seal, root) that was verified -> its key, the oldest first."""
    _false: set[tuple[str, bytes, bytes]] = field(default_factory=set)
    """(organisation, seal, root) of the signatures in the present request that do not fit."""
    _warned: set[tuple[str, str]] = field(default_factory=set)
    """(organisation, flaw) of which the present request has caused a warning."""

    def begin_request(self) -> None:
        """Begins a request, or an answer: its false signatures and warnings are counted anew."""
        self._false.clear()
        self._warned.clear()

    def recover_from(self, store: Store) -> None:
        for row in store.rows(FORMER_SEALS):
            self.former[row.organisation] = (
                *self.former.get(row.organisation, ()),
                row.certificate,
            )
            self.former_documents[row.organisation] = row.document

    def apply_document(self, turn: Turn, new: Federation) -> None:
        """Uses the certificates of this document from now on, and keeps those of leavers."""
        for name, organisation in self.federation.organisations.items():
            if name not in new and organisation.seals:
                self.former[name] = organisation.seals
                last = self.former_documents[name] = self.federation.version
                for number, certificate in enumerate(organisation.seals):
                    turn.put(FORMER_SEALS, FormerSealRow(name, number, certificate, last))
        for name in [each for each in self.former if each in new]:
            del self.former_documents[name]
            for number, _ in enumerate(self.former.pop(name)):
                turn.delete(FORMER_SEALS, name, number)
        self.federation = new
        self._keys.clear()
        self._roots.clear()

    def certificates(self, organisation: str) -> tuple[str, ...]:
        """Returns the seal certificates of a member, or the last ones of one that left."""
        member = self.federation.organisations.get(organisation)
        return self.former.get(organisation, ()) if member is None else member.seals

    def requires(self, organisation: str) -> bool:
        """True if messages of this organisation must be sealed."""
        return bool(self.certificates(organisation))

    def flaw(self, now: float, sender: str, item: Item) -> str | None:
        """Returns what is wrong with the seal of an item from this sender; None if nothing is.

        The whole subtree is checked, because this peer promises to forward it.
        """
        source = item.source
        if not self.requires(source):
            return None
        entry = entry_of(item)
        if entry.receiver != self.me and ANY_MEMBER not in entry.carriers:
            return f"{source} has not sent this through {self.me}"
        if sender != source and sender not in entry.carriers and ANY_MEMBER not in entry.carriers:
            return f"{source} has not sent this through {sender}"
        head, waiting = head_text(item), [entry]
        while waiting:
            each = waiting.pop()
            flaw = self._flaw(now, source, head + entry_text(each), each.proof, item.seal)
            if flaw is not None:
                return flaw
            waiting += each.children
        return None

    def refuse(self, turn: Turn, sender: str, sealed_by: str, flaw: str) -> None:
        """Notes that a message of this member was refused because of a seal that was checked."""
        if sender not in self.federation or flaw is NOT_CHECKED:
            return
        number = self.refusals[sender].number + 1 if sender in self.refusals else 1
        self.refusals[sender] = Refusals(number, turn.now, flaw)
        if (sealed_by, flaw) not in self._warned:
            self._warned.add((sealed_by, flaw))
            turn.warn(IncidentKind.SEAL, sender=sender, sealed_by=sealed_by, reason=flaw)

    def acknowledgement_flaw(self, now: float, carried: RelayAcknowledgement) -> str | None:
        """Returns what is wrong with the seal of an acknowledgement that came through relays."""
        if not self.requires(carried.consumer):
            return None
        self.begin_request()
        leaf = acknowledgement_leaf(carried)
        return self._flaw(now, carried.consumer, leaf, carried.proof, carried.seal)

    def _flaw(
        self, now: float, organisation: str, leaf: bytes, proof: bytes, seal: bytes
    ) -> str | None:
        root = root_of(leaf, proof) if seal else None
        if root is None:
            return f"a message of {organisation} is not sealed"
        verified = (organisation, seal, root)
        key = self._roots.get(verified)
        if key is None:
            fingerprint, signature = seal[:FINGERPRINT_BYTES], seal[FINGERPRINT_BYTES:]
            key = self._keys_of(organisation).get(fingerprint)
            if key is None:
                return f"{organisation} has no such seal certificate"
            if verified in self._false:
                return f"the seal of a message of {organisation} does not fit"
            if len(self._false) >= MOST_FALSE_SIGNATURES:
                return NOT_CHECKED
            if not key.verify(signature, signed_text(self.federation.name, organisation, root)):
                self._false.add(verified)
                return f"the seal of a message of {organisation} does not fit"
            self._roots[verified] = key
            if len(self._roots) > MOST_ROOTS:
                del self._roots[next(iter(self._roots))]
        if not key.begins - CLOCK_TOLERANCE_S <= now <= key.ends + CLOCK_TOLERANCE_S:
            return f"the seal certificate of {organisation} is not valid at this time"
        return None

    def _keys_of(self, organisation: str) -> Mapping[bytes, SealKey]:
        keys = self._keys.get(organisation)
        if keys is None:
            read = (self.read_certificate(each) for each in self.certificates(organisation))
            keys = self._keys[organisation] = {key.fingerprint: key for key in read}
        return keys
