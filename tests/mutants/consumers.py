"""Bugs of the consumer side: streams from producers, epochs and gaps."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_S = partial(Mutant, file="qns/edl/inbound_stream.py")
_C = partial(Mutant, file="qns/edl/consumer.py")

CONSUMERS = (
    _C(
        name="testimony-not-kept",
        kind="epochs and incarnations",
        breaks="A consumer forgets the standing that proves the setback of a producer.",
        old="            self.testimonies.setdefault(producer, learned.before)\n",
        new="            pass\n",
    ),
    _C(
        name="testimony-never-ends",
        kind="epochs and incarnations",
        breaks="A consumer never tells a producer of its present standing after a setback.",
        old="            del self.testimonies[producer]\n",
        new="            pass\n",
    ),
    _C(
        name="later-view-proves-no-setback",
        kind="views",
        breaks="A peer that has forgotten a view is not told so by the producer that has it.",
        old="        if hello.held_version > view.version:",
        new="        if False:",
    ),
    _S(
        name="number-of-unknown-epoch-accepted",
        kind="epochs and incarnations",
        breaks="A number of an epoch whose fences are not known is accepted.",
        old="        if epoch > self.epoch:\n            return Place.UNKNOWN\n",
        new="",
    ),
    _S(
        name="fence-off-by-one",
        kind="epochs and incarnations",
        breaks="The first number that a fence cuts off is accepted.",
        old="        if first is not None and number >= first:",
        new="        if first is not None and number > first:",
    ),
    _S(
        name="harmless-fence-dropped-too-early",
        kind="epochs and incarnations",
        breaks="A fence is dropped although numbers before the newest one are missing.",
        old="        if newest is not None and newest.first <= self.last + 1:",
        new="        if newest is not None:",
    ),
    _S(
        name="fence-that-sets-back-is-dropped",
        kind="epochs and incarnations",
        breaks="A fence that set the stream back is dropped when the next one comes.",
        old="        if not sets_back:\n",
        new="        if True:\n",
    ),
    _S(
        name="forgotten-fence-not-reported",
        kind="epochs and incarnations",
        breaks="A consumer drops the fence of an epoch that the producer has forgotten.",
        old="            self._keep(turn, forgotten, fresh[0].first)\n",
        new="            pass\n",
    ),
    _S(
        name="forgotten-fence-replaced",
        kind="epochs and incarnations",
        breaks="The fence of a forgotten epoch is replaced by a later one at the same number.",
        old=", is_apart=forgotten is not None)",
        new=")",
    ),
    _S(
        name="fence-does-not-step-back",
        kind="epochs and incarnations",
        breaks="A new fence does not set the stream back.",
        old="                self.last = max(0, min(self.last, fence.first - 1))\n",
        new="",
    ),
    _S(
        name="fence-keeps-early-entries",
        kind="epochs and incarnations",
        breaks="A new fence does not remove the early entries that it cuts off.",
        old="            if row.epoch < fence.epoch and row.number >= fence.first\n",
        new="            if False\n",
    ),
    _S(
        name="incomplete-fences-learned",
        kind="epochs and incarnations",
        breaks="An entry that lacks a fence is learned from.",
        old="        if entry.confirmed > self.epoch:\n            return None\n",
        new="",
    ),
    _S(
        name="producer-epoch-not-stored",
        kind="recovery after a crash",
        breaks="A consumer forgets at a restart which epoch of a producer it knows.",
        old="        self._drop_fences(turn)\n        self.put(turn)\n",
        new="        self._drop_fences(turn)\n",
    ),
    _S(
        name="inbound-fence-not-stored",
        kind="recovery after a crash",
        breaks="A fence of a producer is not written to the store.",
        old="        turn.put(INBOUND_FENCES, row)\n",
        new="",
    ),
    _S(
        name="early-entry-not-stored",
        kind="recovery after a crash",
        breaks="An early entry is not written to the store.",
        old="        turn.put(EARLY, row)\n",
        new="",
    ),
    _S(
        name="early-entry-not-deleted",
        kind="recovery after a crash",
        breaks="An early entry that was taken stays in the store.",
        old="            turn.delete(EARLY, self.producer, "
        "self.producer_incarnation, row.number)\n",
        new="",
    ),
    _S(
        name="skip-keeps-early-entries",
        kind="gaps and skips",
        breaks="Early entries that a skip passed stay and block the stream.",
        old="[row for number, row in self.early.items() if number <= last]",
        new="[]",
    ),
    _C(
        name="inbound-fences-not-recovered",
        kind="recovery after a crash",
        breaks="A consumer forgets the fences of producers at a restart.",
        old="            self.stream(fence.producer, fence.producer_joined).recover_fence(fence)",
        new="            pass",
    ),
    _C(
        name="early-entries-not-recovered",
        kind="recovery after a crash",
        breaks="A consumer forgets its early entries at a restart.",
        old="            self.stream(early.producer, early.producer_joined).early[early.number] = "
        "early",
        new="            pass",
    ),
    _C(
        name="early-entries-not-held-after-restart",
        kind="recovery after a crash",
        breaks="The events of early entries are deleted after a restart.",
        old="            self.log.hold((early.producer, early.event))\n",
        new="",
    ),
    _C(
        name="gap-not-watched-after-restart",
        kind="gaps and skips",
        breaks="A gap that was open at a restart is not pulled.",
        old="        for stream in self.streams.values():\n            "
        "self.watch_gap(turn, stream)\n"
        "\n    def apply_document",
        new="        pass\n\n    def apply_document",
    ),
    _C(
        name="confirmed-view-of-former-incarnation",
        kind="organisations that leave",
        breaks="A view is taken as in force at a producer that has joined again.",
        old="            if left or new[name].incarnation != old[name].incarnation:",
        new="            if left:",
    ),
    _C(
        name="stream-of-leaver-not-stored",
        kind="organisations that leave",
        breaks="The stream of a producer that left is not in the store, so its events are unknown.",
        old="                self.stream(name, organisation.incarnation).put(turn)",
        new="                pass",
        survives="equivalent: a producer owes events only after a hello, which stores the stream",
    ),
    _C(
        name="early-entries-of-returned-producer-kept",
        kind="organisations that leave",
        breaks="Early entries of a producer's former incarnation are kept for ever.",
        old="            if self.has_returned(name, incarnation):",
        new="            if False:",
    ),
    _C(
        name="consumer-epoch-not-followed",
        kind="epochs and incarnations",
        breaks="After a lost epoch the consumer acknowledges in the old one.",
        old="            stream.consumer_epoch = epoch",
        new="            pass",
    ),
    _C(
        name="old-confirmation-ends-backlog",
        kind="views",
        breaks="The backlog of an older version of a view counts for the newest one.",
        old="            upto if version == view.version else None,",
        new="            upto if version >= 0 else None,",
    ),
    _C(
        name="answer-of-old-epoch-accepted",
        kind="epochs and incarnations",
        breaks="A reply to changeSub from an earlier epoch of the producer counts.",
        old="        if not is_same or reply.epoch < stream.epoch:",
        new="        if not is_same:",
    ),
    _C(
        name="answer-of-other-incarnation-accepted",
        kind="epochs and incarnations",
        breaks="A reply to changeSub from a former incarnation of the producer counts.",
        old="        if not is_same or reply.epoch < stream.epoch:",
        new="        if reply.epoch < stream.epoch:",
    ),
    _C(
        name="hello-of-old-epoch-accepted",
        kind="epochs and incarnations",
        breaks="A delayed hello of an earlier epoch of the producer counts.",
        old="        if hello.epoch < stream.epoch or hello.standing",
        new="        if hello.standing",
    ),
    _C(
        name="hello-for-former-incarnation-accepted",
        kind="epochs and incarnations",
        breaks="A hello for a former incarnation of this peer counts.",
        old="        if hello.epoch < stream.epoch or hello.standing.producer_incarnation != "
        "self.incarnation:",
        new="        if hello.epoch < stream.epoch:",
    ),
    _C(
        name="forgotten-own-epoch-ignored",
        kind="epochs and incarnations",
        breaks="A peer whose disk was lost does not see that producers know its later epochs.",
        old="            self.claims.believe(turn, producer, hello.held_epoch, self.epoch)",
        new="            pass",
    ),
    _C(
        name="view-of-earlier-epoch-confirmed",
        kind="views",
        breaks="A view that an earlier epoch sent is confirmed without a second hello.",
        old="        elif hello.held_epoch < self.epoch and "
        "view.matches(hello.held_version, hello.held_digest):",
        new="        elif False:",
    ),
    _C(
        name="restored-producer-view-not-compared",
        kind="views",
        breaks="After a producer was restored, its copy of the view is not compared.",
        old="            view.lose()\n            self.want_hello(producer)\n",
        new="",
    ),
    _C(
        name="restored-producer-stays-stable",
        kind="views",
        breaks="After a producer was restored, subscriptions stay stable there.",
        old="            if learned.sets_back:\n"
        "                self.unconfirm_view(turn, producer)",
        new="",
    ),
    _C(
        name="gap-never-pulled",
        kind="gaps and skips",
        breaks="A gap waits for the producer to resend, and is never pulled.",
        old="            link.pull_at = turn.now + self.tuning.pull_after_s * pauses",
        new="            link.pull_at = None",
    ),
    _C(
        name="acknowledgement-never-sent",
        kind="resending",
        breaks="Events that came through others are not acknowledged to their producer.",
        old="            link.acknowledge_at = at",
        new="            pass",
    ),
)
