"""Bugs of seals: what a forwarder may forge."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_S = partial(Mutant, file="qns/edl/seals.py", kind="seals")

SEALS = (
    _S(
        name="seals-not-checked",
        breaks="A forwarder alters and invents events.",
        old="        if not self.requires(source):\n            return None\n        entry",
        new="        if True:\n            return None\n        entry",
    ),
    _S(
        name="seals-not-checked-on-the-fast-path",
        file="qns/edl/intake.py",
        breaks="A forwarded event in ordinary order is accepted with any seal.",
        old="                or (seals is not None and seals.flaw(turn.now, producer, item) is not "
        "None)\n",
        new="",
    ),
    _S(
        name="subtree-not-checked",
        breaks="A forwarder promises entries that the producer has not sealed.",
        old="            waiting += each.children\n        return None",
        new="        return None",
    ),
    _S(
        name="any-member-may-bring-an-entry",
        breaks="An entry is accepted from members outside the way to its receiver.",
        old="        if sender != source and sender not in entry.carriers and ANY_MEMBER not in "
        "entry.carriers:",
        new="        if False:",
    ),
    _S(
        name="misrouted-entry-is-relayed",
        breaks="A peer takes custody of an entry that its producer has not given to relays.",
        old="        if entry.receiver != self.me and ANY_MEMBER not in entry.carriers:",
        new="        if False:",
    ),
    _S(
        name="relayed-acknowledgement-not-checked",
        breaks="A relay acknowledges events that the consumer has not got.",
        old="        if not self.requires(carried.consumer):\n            return None\n",
        new="        if True:\n            return None\n",
    ),
    _S(
        name="every-false-signature-checked",
        breaks="A request of forged items costs one signature check for each item.",
        old="            if len(self._false) >= MOST_FALSE_SIGNATURES:\n",
        new="            if False:\n",
    ),
    _S(
        name="false-signatures-counted-for-ever",
        breaks="A member that was forged once gets no further signature checked.",
        old="        self._false.clear()\n",
        new="",
    ),
    _S(
        name="event-bytes-not-sealed",
        file="qns/edl/seal_texts.py",
        breaks="A forwarder alters the content of an event.",
        old="    digest = sha256(item.xml).digest()",
        new='    digest = sha256(b"").digest()',
    ),
    _S(
        name="seal-of-another-federation-accepted",
        file="qns/edl/seal_texts.py",
        breaks="What was sealed in one federation is valid in another.",
        old="    return _DOMAIN + _text(federation) + _text(organisation) + root",
        new="    return _DOMAIN + _text(organisation) + root",
    ),
    _S(
        name="roots-outlive-their-certificate",
        breaks="A seal that was verified once stays valid when its certificate is revoked.",
        old="        self._roots.clear()\n",
        new="",
    ),
    _S(
        name="expired-seal-accepted",
        breaks="A certificate seals beyond its validity.",
        old="        if not key.begins - CLOCK_TOLERANCE_S <= now <= key.ends + CLOCK_TOLERANCE_S:",
        new="        if False:",
    ),
    _S(
        name="certificates-of-leavers-forgotten",
        breaks="Events of an organisation that left are accepted unchecked.",
        old="                self.former[name] = organisation.seals\n",
        new="                pass\n",
    ),
    _S(
        name="certificates-of-leavers-not-stored",
        breaks="Events of an organisation that left are accepted unchecked after a restart.",
        old="turn.put(FORMER_SEALS, FormerSealRow(name, number, certificate, last))",
        new="pass",
    ),
    _S(
        name="wrong-seal-is-a-final-rejection",
        file="qns/edl/item_checks.py",
        breaks="A forged copy makes a dead letter of the genuine event.",
        old="    return Outcome(False, flaw)\n",
        new="    return Outcome(False, flaw, True)\n",
    ),
    _S(
        name="duplicate-with-an-old-seal-refused",
        file="qns/edl/item_checks.py",
        breaks="A forwarder whose copy has a former seal can never end its promise.",
        old="        return TAKEN\n    consumer.seals.refuse",
        new="        pass\n    consumer.seals.refuse",
    ),
    _S(
        name="promise-forgets-its-seal",
        file="qns/edl/custody.py",
        breaks="A forwarder that crashed sends what it promised without a seal.",
        old="    if parcel.seal:\n        fields.append(_text(parcel.seal))\n",
        new="",
    ),
    _S(
        name="adopted-entry-without-seal",
        file="qns/edl/forwarder.py",
        breaks="A peer that adopts a subtree sends it without a seal.",
        old="adopted = Parcel(parcel.event, incarnation, child, path, None, parcel.seal)",
        new="adopted = Parcel(parcel.event, incarnation, child, path, None)",
    ),
    _S(
        name="gap-reply-not-sealed",
        file="qns/peer/sealing.py",
        breaks="The answer to a gap pull is refused by its receiver.",
        old="            if type(answer) is Envelope and type(answer.body) is GapPulled:",
        new="            if False:",
    ),
    _S(
        name="leaf-passes-for-a-node",
        file="qns/edl/merkle.py",
        breaks="An inner node of a tree passes for a leaf.",
        old='_LEAF, _NODE = b"\\x00", b"\\x01"',
        new='_LEAF, _NODE = b"", b""',
    ),
)
