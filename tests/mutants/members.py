"""Bugs of the bounds on what one member may claim, invent or send."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_B = partial(Mutant, kind="bounds per member")

MEMBERS = (
    _B(
        name="claims-always-believed",
        file="qns/edl/claims.py",
        breaks="A member that goes on claiming later epochs makes this peer begin one each time.",
        old="        if claimed - own > LARGEST_JUMP or turn.now < claimant.pause_until:",
        new="        if claimed - own > LARGEST_JUMP:",
    ),
    _B(
        name="implausible-claim-believed",
        file="qns/edl/claims.py",
        breaks="One claim of a very late epoch uses up the epochs of this peer.",
        old="        if claimed - own > LARGEST_JUMP or turn.now < claimant.pause_until:",
        new="        if turn.now < claimant.pause_until:",
    ),
    _B(
        name="repeated-claim-counts",
        file="qns/edl/claims.py",
        breaks="One hello that makes the same claim twice counts as two.",
        old="        if claimed <= claimant.epoch:\n            return True\n",
        new="",
    ),
    _B(
        name="first-claim-not-believed",
        file="qns/edl/claims.py",
        breaks="A true rollback is not healed.",
        old="        claimant.epoch = claimed\n        self.newest = max(self.newest, claimed)\n",
        new="        claimant.epoch = claimed\n",
    ),
    _B(
        name="relayed-claim-counts-for-the-consumer",
        file="qns/edl/layer.py",
        breaks="A relay makes claims in the names of all others.",
        old="carried.standing, brought_by=sender)",
        new="carried.standing)",
    ),
    _B(
        name="gossip-overrides-own-report",
        file="qns/edl/reachability.py",
        breaks="A member speaks for another that is reached.",
        old="                is_known = name in self._own and self.reachable(name)",
        new="                is_known = False",
    ),
    _B(
        name="gossip-kept-after-healing",
        file="qns/edl/reachability.py",
        breaks="What others said of an organisation still counts when it is reached again.",
        old="        if reachable and other in self._own:  # which counts again",
        new="        if False:  # which counts again",
    ),
    _B(
        name="own-report-not-repeated",
        file="qns/edl/dialogue.py",
        breaks="A report that was lost with a reply is not sent again.",
        old="        self.reachability.repeat_own(other)\n",
        new="",
    ),
    _B(
        name="invented-incarnation-accepted",
        file="qns/edl/intake.py",
        breaks="Earlier incarnations that a member invents have streams of their own.",
        old="            or not consumer.has_stream(item.source, item.producer_incarnation)\n",
        new="",
    ),
    _B(
        name="later-incarnation-accepted",
        file="qns/edl/intake.py",
        breaks="An incarnation that no document has yet has a stream.",
        old="        if self.consumer.is_to_come(source, item.producer_incarnation):",
        new="        if False:",
    ),
    _B(
        name="dead-letters-unbounded",
        file="qns/edl/custody.py",
        breaks="One source and one receiver fill the store of a forwarder with dead letters.",
        old="        if self._letters[source, receiver] >= self.most_dead_letters:",
        new="        if False:",
    ),
    _B(
        name="surplus-dead-letter-undeclared",
        file="qns/edl/custody.py",
        breaks="A dead letter beyond the limit is dropped in silence.",
        old="            discard(turn, parcel)\n        else:",
        new="            pass\n        else:",
    ),
    _B(
        name="view-elements-unbounded",
        file="qns/edl/external_merge_table.py",
        breaks="One consumer fills the memory of a producer with its view.",
        old="        if size > self.most_elements:",
        new="        if False:",
    ),
    _B(
        name="part-of-view-in-force",
        file="qns/edl/view_reader.py",
        breaks="A large view is in force before all its elements are read.",
        old="        if unread:\n            self._unread[consumer] = unread\n            raise",
        new="        if False:\n            self._unread[consumer] = unread\n            raise",
    ),
    _B(
        name="view-reader-sleeps",
        file="qns/edl/requests.py",
        breaks="Nothing wakes the peer to go on reading a large view.",
        old="        if self.producer.table.reader.is_reading:\n            return 0.0\n",
        new="",
    ),
    _B(
        name="elements-of-old-schema-kept",
        file="qns/edl/external_merge_table.py",
        breaks="Elements that were read before the schema grew are used after it.",
        old="        self.reader.apply_schema(schema)\n",
        new="",
    ),
    _B(
        name="refused-view-blocks-the-link",
        file="qns/edl/requests.py",
        breaks="A view that is refused for good is sent again at once, before everything else.",
        old="        if link.change_at is None or link.change_at <= turn.now:",
        new="        if True:",
    ),
    _B(
        name="fences-of-producer-unbounded",
        file="qns/edl/inbound_stream.py",
        breaks="A producer fills the store of a consumer with fences.",
        old="        if len(self.fences) - len(needless) > MOST_FENCES:",
        new="        if False:",
    ),
    _B(
        name="ended-ids-unbounded",
        file="qns/iil/local_subscription_table.py",
        breaks="Every subscription that ends leaves a row for ever.",
        old="        if len(self._ended) > self._ended_remembered:",
        new="        if False:",
    ),
    _B(
        name="lease-of-a-wrong-clock-kept",
        file="qns/iil/local_dispatcher.py",
        breaks="A lease that was given while the clock was ahead does not lapse.",
        old="            is_too_long = longest < delivery.lease_until < inf",
        new="            is_too_long = False",
    ),
    _B(
        name="clock-step-believed-at-once",
        file="qns/peer/steady_time.py",
        breaks="A clock that is wrong for a moment ends subscriptions.",
        old="        if is_ahead and passed - self._ahead_since < LASTS_S:",
        new="        if False:",
    ),
    _B(
        name="twin-never-found",
        file="qns/edl/claims.py",
        breaks="Two peers that run as one organisation take turns for ever.",
        old="            return len(recent) >= _SURPRISES\n",
        new="            return False\n",
    ),
    _B(
        name="rollback-taken-for-a-twin",
        file="qns/edl/claims.py",
        breaks="A member that knows a forgotten epoch makes a peer suspect a twin.",
        old="        if self._named.get(member) == own < claimed:\n",
        new="        if own < claimed:\n",
    ),
    _B(
        name="called-peer-gives-way",
        file="qns/peer/peer.py",
        breaks="The peer at the endpoint gives way to its copy.",
        old="is_called=turn.now - self._called_at <= silence_s",
        new="is_called=False",
    ),
    _B(
        name="peer-that-gave-way-sends",
        file="qns/peer/peer.py",
        breaks="A peer that has found its twin still sends messages.",
        old="        if not self.is_fenced:\n            sends",
        new="        if True:\n            sends",
    ),
    _B(
        name="peer-that-gave-way-accepts",
        file="qns/peer/peer.py",
        breaks="A peer that has found its twin accepts publications and subscriptions.",
        old="        if self.is_fenced:\n            raise _fenced_out(self.me)\n",
        new="",
    ),
)
