"""Bugs of the streams to consumers: rows, fences and acknowledgements."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_O = partial(Mutant, file="qns/edl/outbound_stream.py")
_W = partial(Mutant, file="qns/edl/owed_rows.py")

STREAMS = (
    Mutant(
        name="rejoiner-not-drained",
        file="qns/edl/owed_events.py",
        kind="organisations that leave",
        breaks="An organisation joins again although it still owes events.",
        old="    return not any(\n        each.owes",
        new="    return True or not any(\n        each.owes",
    ),
    _O(
        name="outbound-fences-not-recovered",
        file="qns/edl/owed_events.py",
        kind="recovery after a crash",
        breaks="A producer forgets the fences of its streams at a restart.",
        old="        streams[fence.consumer].fences.append(Fence(fence.epoch, fence.first))",
        new="        pass",
    ),
    _O(
        name="consumer-epoch-not-recovered",
        kind="recovery after a crash",
        breaks="A producer forgets at a restart which epoch its consumers have.",
        old="            consumer_epoch=row.consumer_epoch,\n",
        new="",
    ),
    _O(
        name="view-epoch-not-recovered",
        kind="recovery after a crash",
        breaks="A producer forgets at a restart which epoch sent a view.",
        old="            view_epoch=row.view_epoch,\n",
        new="",
    ),
    _O(
        name="confirmed-epoch-not-recovered",
        kind="recovery after a crash",
        breaks="A producer forgets at a restart which fences a consumer knows.",
        old="            confirmed=row.confirmed,\n",
        new="",
    ),
    _O(
        name="acknowledgement-not-recovered",
        kind="recovery after a crash",
        breaks="A producer forgets at a restart what its consumers have acknowledged.",
        old="            acknowledged=row.acknowledged,\n",
        new="",
    ),
    _O(
        name="owed-events-not-held-after-restart",
        kind="recovery after a crash",
        breaks="Events that are owed are deleted after a restart.",
        old="        if row.number > self.acknowledged:\n            self._owe(",
        new="        if False:\n            self._owe(",
    ),
    _W(
        name="number-not-stored",
        kind="recovery after a crash",
        breaks="The number of an event is not written to the store.",
        old="        turn.put(OWED, row)\n",
        new="",
    ),
    _W(
        name="removed-number-stays-in-store",
        kind="what is kept",
        breaks="The numbers of events that nobody needs stay in the store.",
        old="            self._forget(number)\n            turn.delete(OWED, self.consumer, "
        "number)",
        new="            self._forget(number)",
    ),
    _W(
        name="owed-row-on-disk-not-found",
        kind="what is kept",
        breaks="A number that is only on the disk is skipped.",
        old="            row = self._view.get(OWED, (self.consumer, number))",
        new="            row = None",
    ),
    _W(
        name="owed-rows-on-disk-not-read",
        kind="what is kept",
        breaks="A consumer that was away gets skips for everything that is only on the disk.",
        old="            rows = self._view.scan(OWED, (self.consumer,), number - 1, limit)",
        new="            rows = []",
    ),
    _W(
        name="owed-rows-read-once",
        kind="what is kept",
        breaks="Only the first thousand numbers on the disk are read.",
        old="            if len(rows) < limit:\n                return",
        new="            return",
    ),
    _W(
        name="number-of-event-on-disk-unknown",
        kind="what is kept",
        breaks="An event whose number is only on the disk is sent again to a late subscriber.",
        old="        if number is None and self._on_disk:",
        new="        if False:",
    ),
    _O(
        name="owed-event-not-held",
        kind="resending",
        breaks="An event that is owed is deleted before it is acknowledged.",
        old="        self._owe(row, log)\n        self.put(turn)",
        new="        self.put(turn)",
    ),
    _O(
        name="entry-without-fences",
        kind="epochs and incarnations",
        breaks="Entries do not carry the fences that their receiver lacks.",
        old="        fences = tuple(self.fences.after(self.confirmed))",
        new="        fences = ()",
    ),
    _O(
        name="restore-begins-after-unconfirmed-numbers",
        kind="epochs and incarnations",
        breaks="An epoch after a restore begins after numbers whose epochs are not confirmed.",
        old="        firsts += [fence.first for fence in self.fences.after(self.confirmed)]\n",
        new="",
    ),
    _O(
        name="unseen-numbers-not-sent-again",
        kind="epochs and incarnations",
        breaks="A forgotten epoch is repeated from its first number on, not from earlier ones.",
        old="            begun = min([fence.first, *unseen])\n",
        new="            begun = fence.first\n",
    ),
    _O(
        name="fences-never-dropped",
        kind="epochs and incarnations",
        breaks="A producer keeps one fence for each of its starts.",
        old="            self._drop_fences(turn, standing)\n",
        new="",
    ),
    _O(
        name="lost-epoch-not-found",
        kind="epochs and incarnations",
        breaks="A producer whose disk was lost does not see that consumers know later epochs.",
        old="        if not step_back_to:\n            return None",
        new="        return None",
    ),
    _O(
        name="lost-fences-ignored",
        kind="epochs and incarnations",
        breaks="A restored producer ignores fences that only the consumer knows.",
        old="                step_back_to.append(begun)\n",
        new="                pass\n",
    ),
    _O(
        name="epoch-before-a-lost-fence",
        kind="epochs and incarnations",
        breaks="A restored producer begins its next epoch before one of which the consumer has a "
        "fence.",
        old="                newest = max(newest, fence.epoch)\n",
        new="",
    ),
    _O(
        name="acknowledgement-past-a-fence",
        kind="epochs and incarnations",
        breaks="A consumer acknowledges numbers that an unknown fence cuts off.",
        old="        return last if first is None else min(last, first - 1)",
        new="        return last",
    ),
    _O(
        name="consumer-never-falls-back",
        kind="epochs and incarnations",
        breaks="A restored consumer does not get again what it lost.",
        old="        elif may_fall_back and last < self.acknowledged:\n"
        "            self._fall_back(last, log)\n",
        new="",
    ),
    _O(
        name="fallen-back-events-not-held",
        kind="epochs and incarnations",
        breaks="Events that a restored consumer needs again are not held.",
        old="            self._owe(row, log)\n        self.acknowledged = last",
        new="            pass\n        self.acknowledged = last",
    ),
    _O(
        name="acknowledged-events-kept",
        kind="what is kept",
        breaks="Acknowledged events are never deleted.",
        old="            self._settle(row, log)\n        self.acknowledged = last",
        new="            pass\n        self.acknowledged = last",
    ),
    _O(
        name="acknowledgement-not-stored",
        kind="recovery after a crash",
        breaks="An acknowledgement is not written to the store.",
        old="            return False\n        self.put(turn)\n        return True",
        new="            return False\n        return True",
    ),
    _O(
        name="drop-not-declared",
        kind="gaps and skips",
        breaks="An event that the retention limit drops is not reported.",
        old="        turn.report(\n            kind,",
        new="        dict(\n            kind=kind,",
    ),
    _O(
        name="resending-ends-early",
        kind="resending",
        breaks="Resending ends after the first batch.",
        old="        if last < self.number:\n            self.resend_next = last "
        "+ 1\n        else:",
        new="        if True:",
    ),
)
