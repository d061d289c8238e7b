"""Bugs of links, requests, trees and the External Diffusion Layer as a whole."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_R = partial(Mutant, file="qns/edl/requests.py")
_D = partial(Mutant, file="qns/edl/dialogue.py")
_L = partial(Mutant, file="qns/edl/layer.py")
_K = partial(Mutant, file="qns/edl/link.py")
_H = partial(Mutant, file="qns/edl/reachability.py")
_B = partial(Mutant, file="qns/edl/tree_builder.py")

DIFFUSION = (
    _R(
        name="no-hello-when-link-heals",
        kind="links",
        breaks="Peers that reach each other again do not compare what they have.",
        old="        if healed and not isinstance(request, Hello):",
        new="        if False:",
    ),
    _R(
        name="failed-change-not-repeated",
        kind="views",
        breaks="A changeSub without an answer is not sent again.",
        old="                self.consumer.change_sub_failed(link.other)",
        new="                pass",
    ),
    _R(
        name="failed-hello-not-repeated",
        kind="links",
        breaks="A hello without an answer is not sent again.",
        old="            case Hello():\n                self.consumer.want_hello(link.other)",
        new="            case Hello():\n                pass",
    ),
    _R(
        name="refused-notify-not-sent-again",
        kind="refusals",
        breaks="A notify that fails is sent again only when it is overdue.",
        old="                    self.producer.resending.resend_unanswered(receiver)",
        new="                    pass",
    ),
    _R(
        name="failed-pull-not-repeated",
        kind="gaps and skips",
        breaks="A pull of a gap that fails waits for another early entry.",
        old="            case PullGap():\n                link.pull_at = turn.now",
        new="            case PullGap():\n                pass",
    ),
    _R(
        name="failed-acknowledgement-not-repeated",
        kind="resending",
        breaks="An acknowledgement that fails is not sent again.",
        old="                self.consumer.acknowledge_later(turn, link.other, incarnation)",
        new="                pass",
    ),
    _R(
        name="failed-fetch-not-repeated",
        kind="links",
        breaks="A document that could not be fetched is not fetched again.",
        old="            case FetchDocument():\n                link.wants_document = True\n",
        new="            case FetchDocument():\n                pass\n",
    ),
    _R(
        name="answer-of-another-peer-accepted",
        kind="refusals",
        breaks="An answer counts whoever sent it.",
        old="        if envelope.sender != other or validate_envelope(envelope) is not None:",
        new="        if validate_envelope(envelope) is not None:",
    ),
    _R(
        name="invalid-answer-accepted",
        kind="refusals",
        breaks="An answer that no correct peer sends is used.",
        old="        if envelope.sender != other or validate_envelope(envelope) is not None:",
        new="        if envelope.sender != other:",
    ),
    _R(
        name="silent-peer-not-probed",
        kind="links",
        breaks="A peer that did not answer is called again only if something waits for it.",
        old="        link.wants_gossip = link.other in self.consumer.federation\n",
        new="",
    ),
    _R(
        name="outcomes-of-wrong-parcels",
        kind="refusals",
        breaks="Outcomes of resent items are taken for those of forwarded parcels.",
        old="        first_parcel = len(notify.items) - len(link.sent)",
        new="        first_parcel = 0\n        link.sent = link.sent[: len(notify.items)]",
    ),
    _R(
        name="standing-in-reply-ignored",
        kind="resending",
        breaks="The standing in the reply to a notify acknowledges nothing.",
        old="        if reply.standing is not None:\n            self.producer.update_standing",
        new="        if False:\n            self.producer.update_standing",
    ),
    _D(
        name="newer-document-not-fetched",
        kind="links",
        breaks="A peer that hears of a newer document does not fetch it.",
        old="            link.wants_document = True",
        new="            pass",
    ),
    _D(
        name="useless-document-fetched-for-ever",
        kind="links",
        breaks="A document that cannot be used is fetched again and again.",
        old="        link.useless_document, link.useless_reason = version, reason",
        new="        link.useless_reason = reason",
    ),
    _L(
        name="no-hello-at-start",
        kind="links",
        breaks="A peer that starts does not compare its views.",
        old="        for producer in self.consumer.merger.table:\n"
        "            self.consumer.want_hello(producer)\n        self.producer.start(turn)",
        new="        self.producer.start(turn)",
    ),
    _L(
        name="views-confirmed-after-restore",
        kind="epochs and incarnations",
        breaks="Subscriptions stay stable although this peer was restored.",
        old="            self.consumer.unconfirm_view(turn, producer)\n"
        "            self.consumer.want_hello(producer)",
        new="            self.consumer.want_hello(producer)",
    ),
    _L(
        name="stranger-served",
        kind="refusals",
        breaks="An organisation that is no member is served.",
        old="        if not self._knows(sender):",
        new="        if False:",
    ),
    _L(
        name="request-under-newer-document-served",
        kind="refusals",
        breaks="A request under a newer document is served with the older one.",
        old="        if is_behind and not isinstance(body, _OF_ANY_DOCUMENT):",
        new="        if False:",
    ),
    _L(
        name="invalid-request-served",
        kind="refusals",
        breaks="A request that no correct peer sends is served.",
        old="        if problem is not None:",
        new="        if False:",
    ),
    _L(
        name="events-offered-after-later-request",
        kind="stability",
        breaks="A changeSub overtakes events that came before it in the same turn.",
        old="            if type(envelope.body) is not Notify:\n"
        "                self._offer(turn, accepted)\n",
        new="",
    ),
    _L(
        name="forwarded-event-not-acknowledged",
        kind="resending",
        breaks="Events that came through others are not acknowledged.",
        old="            elif outcome.taken and entry_of(item).receiver == self.me:",
        new="            elif False:",
    ),
    _L(
        name="relayed-acknowledgement-of-anyone",
        kind="relays",
        breaks="Any peer can acknowledge in the name of another one.",
        old="        if not path or (path[0], path[-1]) != (consumer, sender) or self.me in path:",
        new="        if False:",
    ),
    _K(
        name="pauses-never-grow",
        kind="links",
        breaks="A peer that does not answer is called every second.",
        old="        self.failures += 1\n",
        new="        self.failures = 1\n",
    ),
    _K(
        name="failures-never-forgotten",
        kind="links",
        breaks="After an answer the next pause is as long as the last one.",
        old="        self.failures = 0\n",
        new="",
    ),
    _K(
        name="pause-not-cut-short",
        kind="links",
        breaks="A peer that calls is still not called before the pause is over.",
        old="            self.rest_until = min(self.rest_until, now + self.backoff.first_s)",
        new="            pass",
    ),
    _H(
        name="older-report-replaces-newer",
        kind="links",
        breaks="A delayed report of reachability replaces a newer one.",
        old="(known and known[1:3] >= row[1:3])",
        new="(known and known[1:3] == row[1:3])",
    ),
    _H(
        name="reports-sent-once-only",
        kind="links",
        breaks="Reports of reachability that were lost are not sent again.",
        old='peer may have been lost."""\n        self._sent.pop(other, None)',
        new='peer may have been lost."""',
    ),
    _B(
        name="capability-ignored",
        kind="trees",
        breaks="A node of a tree has more children than its capability.",
        old="                room -= 1\n",
        new="",
    ),
    _B(
        name="unreachable-receivers-left-out",
        kind="trees",
        breaks="A receiver that no node reaches is not in the tree.",
        old="    children[root] += waiting\n",
        new="",
    ),
    _B(
        name="tree-ignores-reachability",
        kind="trees",
        breaks="A tree has edges that are known to be broken.",
        old="            if reachability.reaches(parent, child):",
        new="            if True:",
    ),
    _B(
        name="stale-trees",
        kind="trees",
        breaks="A tree is used again although reachability has changed.",
        old="        if self._cached_version != self._reachability.version or len(",
        new="        if len(",
    ),
)
