"""Bugs of the trust in federation documents."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_T = partial(Mutant, kind="signed documents")

SIGNED_DOCUMENTS = (
    _T(
        name="threshold-of-document-not-checked",
        file="qns/federation/signatures.py",
        breaks="One signature is enough.",
        old="    if valid >= roots.threshold:\n        return\n",
        new="    if valid >= 1:\n        return\n",
    ),
    _T(
        name="signatures-not-verified",
        file="qns/federation/signatures.py",
        breaks="A document that was altered after it was signed is accepted.",
        old="return Verdict.VALID if is_valid(key, signature, message) else Verdict.ALTERED",
        new="return Verdict.VALID",
    ),
    _T(
        name="key-that-signs-twice-counts-twice",
        file="qns/federation/roots.py",
        breaks="One signer reaches the threshold alone.",
        old="        if signature.key in keys:\n",
        new="        if False:\n",
    ),
    _T(
        name="predecessor-need-not-sign-a-root-set",
        file="qns/federation/signatures.py",
        breaks="Whoever adds a root set of their own takes the federation over.",
        old="        for roots in (before, after):\n",
        new="        for roots in (after,):\n",
    ),
    _T(
        name="root-set-need-not-sign-itself",
        file="qns/federation/signatures.py",
        breaks="A rotation to keys that nobody has ends all changes.",
        old="        for roots in (before, after):\n",
        new="        for roots in (before,):\n",
    ),
    _T(
        name="former-root-set-accepted",
        file="qns/federation/signatures.py",
        breaks="Keys that were rotated away sign again.",
        old="        if len(document.roots) < roots.number:\n",
        new='        if len(document.roots) < roots.number and source == "the anchor":\n',
    ),
    _T(
        name="root-set-of-the-anchor-not-compared",
        file="qns/federation/signatures.py",
        breaks="A document of another chain is accepted.",
        old="        if document.roots[roots.number - 1] != roots:\n",
        new="        if False:\n",
    ),
    _T(
        name="name-of-the-anchor-not-compared",
        file="qns/federation/signatures.py",
        breaks="A document of another federation is accepted as the first one.",
        old="    if anchor is not None and document.name != anchor.federation:\n",
        new="    if False:\n",
    ),
    _T(
        name="unsigned-accepted-after-signed",
        file="qns/federation/signatures.py",
        breaks="A member replaces a signed document by one that is not signed.",
        old="    if known and not document.roots:\n",
        new="    if anchor is not None and not document.roots:\n",
    ),
    _T(
        name="root-set-signature-valid-for-documents",
        file="qns/federation/signatures.py",
        breaks="The bytes that sign a document do not say what they are.",
        old="    return _DOCUMENT + write_federation(document, with_signatures=False)",
        new="    return write_federation(document, with_signatures=False)",
    ),
    _T(
        name="expired-document-accepted",
        file="qns/federation/acceptance.py",
        breaks="A peer is kept at an old version for ever.",
        old="    _check_expiry(document, now)\n",
        new="",
    ),
    _T(
        name="sender-of-signed-document-counts",
        file="qns/federation/acceptance.py",
        breaks="An organisation that joins cannot bring the signed document.",
        old="    if document.roots and (anchor is not None or in_force.roots):",
        new="    if False:",
    ),
    _T(
        name="stranger-brings-the-first-root-keys",
        file="qns/federation/acceptance.py",
        breaks="Anybody takes over a federation whose documents are not signed yet.",
        old="    if document.roots and (anchor is not None or in_force.roots):",
        new="    if document.roots:",
    ),
    _T(
        name="stored-document-not-checked-at-start",
        file="qns/peer/opening.py",
        breaks="A store with an unsigned document outlives the anchor.",
        old="    if anchor is not None and not plan.installs:\n",
        new="    if False:\n",
    ),
    _T(
        name="no-grace",
        file="qns/federation/acceptance.py",
        breaks="A document that expires at midnight disconnects the federation at midnight.",
        old="document.expires.timestamp() + grace_s",
        new="document.expires.timestamp()",
    ),
    _T(
        name="never-closed",
        file="qns/peer/peer.py",
        breaks="A peer works for ever with a document that has expired.",
        old="self.edl.dialogue.is_closed = age is Freshness.CLOSED",
        new="self.edl.dialogue.is_closed = False",
    ),
    _T(
        name="closed-peer-serves-messages",
        file="qns/edl/layer.py",
        breaks="A closed peer takes messages from members that may have been removed.",
        old="        if self.dialogue.is_closed and not isinstance(body, ",
        new="        if False and not isinstance(body, ",
    ),
    _T(
        name="stranger-learns-reachability",
        file="qns/edl/layer.py",
        breaks="An organisation that is not a member learns which members reach each other.",
        old="            return Envelope(self.me, self.consumer.federation.version, (), fault)\n",
        new='            return self.dialogue.envelope("", fault)\n',
    ),
)
