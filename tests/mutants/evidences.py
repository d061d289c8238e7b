"""Bugs of evidence: what is not kept, and what is proved although it is not true."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_K = partial(Mutant, file="qns/edl/evidence_keeper.py", kind="evidence")
_I = partial(Mutant, file="qns/edl/intake.py", kind="evidence")
_V = partial(Mutant, file="qns/evidence/verification.py", kind="evidence")

EVIDENCE = (
    _I(
        name="no-evidence-on-the-fast-path",
        breaks="Events in ordinary order are acknowledged without their evidence.",
        old="            if evidence is not None:\n                evidence.keep(turn, item)\n",
        new="",
    ),
    _I(
        name="no-evidence-off-the-fast-path",
        breaks="Events for which the fast path is closed are acknowledged without their evidence.",
        old="            self._keep_evidence(turn, item)\n            self._take(",
        new="            self._take(",
    ),
    _I(
        name="early-entry-without-evidence",
        breaks="Entries that come before their number is next have no evidence.",
        old="            stream.hold_back(turn, row)\n"
        "            self._keep_evidence(turn, item)\n",
        new="            stream.hold_back(turn, row)\n",
    ),
    _K(
        name="document-of-evidence-not-kept",
        breaks="Evidence refers to a document that the store does not have.",
        old="        self._keep_document(turn)\n        return self.version",
        new="        return self.version",
    ),
    _K(
        name="last-document-of-a-leaver-not-kept",
        breaks="Evidence of events that arrive late has a document without their producer.",
        old="            self._keep_document(turn)\n        self.document",
        new="            pass\n        self.document",
    ),
    _K(
        name="document-of-a-leaver-deleted",
        breaks="The document of an organisation that may still owe events is deleted.",
        old="        needed = {self.version, *self.seals.former_documents.values()}",
        new="        needed = {self.version}",
    ),
    _K(
        name="old-evidence-never-deleted",
        breaks="The store grows without bound.",
        old="        if turn.now < self._look_at:",
        new="        if True:",
    ),
    _K(
        name="young-evidence-deleted",
        breaks="Evidence is deleted together with the first that is too old.",
        old="[row.number for row in rows if row.accepted_at < before]",
        new="[row.number for row in rows]",
    ),
    _K(
        name="root-deleted-with-its-first-event",
        breaks="Later events that share a root lose it before they are too old.",
        old="before - REUSED_FOR_S) < MOST_DELETED",
        new="before) < MOST_DELETED",
    ),
    _K(
        name="numbers-of-roots-used-again",
        breaks="Roots that are kept after all others were deleted get no timestamp.",
        old="0 if timestamp is None else timestamp.last_root",
        new="0",
    ),
    _K(
        name="last-timestamp-deleted",
        breaks="Numbers of roots start again, and roots with timestamps get others.",
        old="(), 0, MOST_DELETED)[:-1]:",
        new="(), 0, MOST_DELETED):",
    ),
    Mutant(
        file="qns/evidence/stamping.py",
        kind="evidence",
        name="deleted-root-comes-back",
        breaks="A timestamp that comes late restores roots that were deleted.",
        old="        if store.get(SEALED_ROOTS, (row.number,)) is not None:",
        new="        if True:",
    ),
    Mutant(
        file="qns/evidence/timestamps.py",
        kind="evidence",
        name="answer-to-another-request-accepted",
        breaks="An old response counts as the timestamp of a new request.",
        old="VerifierBuilder.from_request(request)",
        new="VerifierBuilder()",
    ),
    Mutant(
        file="qns/evidence/timestamps.py",
        kind="evidence",
        name="timestamp-not-verified",
        breaks="Anybody can make a timestamp.",
        old="        builder.build().verify_message(decoded, root)\n",
        new="",
    ),
    Mutant(
        file="qns/evidence/evidence_file.py",
        kind="evidence",
        name="unknown-field-of-a-file-ignored",
        breaks="A file can have content that nothing checks.",
        old="    seal.end()\n    top.end()\n",
        new="",
    ),
    _V(
        name="bytes-of-the-event-not-checked",
        breaks="Evidence of one event proves another.",
        old="        if digest != leaf.digest:",
        new="        if False:",
    ),
    _V(
        name="id-of-the-event-not-checked",
        breaks="The leaf may have another id than the event.",
        old="        if (event.id, event.source) != (leaf.event, leaf.source):",
        new="        if False:",
    ),
    _V(
        name="proof-of-the-leaf-not-checked",
        breaks="Receiver, number and event may be others than those that were sealed.",
        old="        if root != self.evidence.root:",
        new="        if False:",
    ),
    _V(
        name="signature-of-evidence-not-checked",
        breaks="Evidence needs no seal.",
        old="        if not key.verify(self.evidence.signature, message):",
        new="        if False:",
    ),
    _V(
        name="fingerprint-of-evidence-not-checked",
        breaks="The seal may name another certificate than that of the file.",
        old="        if certificate.fingerprint != self.evidence.fingerprint.hex():",
        new="        if False:",
    ),
    _V(
        name="validity-of-evidence-not-checked",
        breaks="A certificate proves what it sealed after its end.",
        old="        if not begins <= at <= ends:",
        new="        if False:",
    ),
    _V(
        name="certificate-of-anybody-proves",
        breaks="A certificate that the document does not name for the organisation proves.",
        old="        if member is None or certificate.pem not in member.seals:",
        new="        if False:",
    ),
    _V(
        name="former-document-proves-for-ever",
        breaks="A key that was revoked makes evidence under a document that has expired.",
        old="        if freshness(document, at, GRACE_S) is Freshness.CLOSED:",
        new="        if False:",
    ),
    _V(
        name="document-in-another-form-accepted",
        breaks="The document may be altered where its signatures do not notice it.",
        old="        if write_federation(document) != self.evidence.document:",
        new="        if False:",
    ),
    _V(
        name="signatures-of-the-document-not-checked",
        breaks="With a newer document, anybody can make the document of the evidence.",
        old="        check_signed(document)\n        last",
        new="        last",
    ),
    _V(
        name="anchor-not-checked",
        breaks="A document of any root keys proves.",
        old="        check_signed(document, anchor)\n",
        new="",
    ),
    _V(
        name="newer-document-not-checked",
        breaks="Any document leads from the anchor to the evidence.",
        old="            check_signed(later, anchor)\n",
        new="",
    ),
    _V(
        name="newer-document-of-another-federation",
        breaks="The root keys of one federation prove in another.",
        old="            if later.name != document.name:",
        new="            if False:",
    ),
    _V(
        name="chain-to-the-newer-document-not-checked",
        breaks="Root sets that the federation never had prove.",
        old="            if later.roots[: len(document.roots)] != document.roots or not "
        "document.roots:",
        new="            if False:",
    ),
    _V(
        name="tree-of-the-timestamp-not-checked",
        breaks="The timestamp of any root proves the time of all.",
        old="        if root_of(leaf_of(self.evidence.root, seal), stamp.proof) != stamp.root:",
        new="        if False:",
    ),
    _V(
        name="wanted-timestamp-may-be-missing",
        breaks="Evidence without a timestamp is proved although one was asked for.",
        old="(_Open if authority is None else _Broken)(words)",
        new="_Open(words)",
    ),
    _V(
        name="time-of-the-receiver-believed",
        breaks="The validity of a certificate is that of the time which the receiver says.",
        old="        self.timestamped_at = checked_time(stamp.response, stamp.root, authority)\n"
        '        return f"the root existed before {moment(self.timestamped_at)}"',
        new="        at = checked_time(stamp.response, stamp.root, authority)\n"
        '        return f"the root existed before {moment(at)}"',
    ),
    _V(
        name="open-link-counts-as-proved",
        breaks="Evidence without an anchor is proved.",
        old="            or (link.name == TIMESTAMP and link.outcome is Outcome.OPEN)",
        new="            or link.outcome is Outcome.OPEN",
    ),
)
