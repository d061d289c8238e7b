"""Bugs of merge subscriptions and of the views that producers hold."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_V = partial(Mutant, file="qns/edl/merge_subscriptions_table.py")
_M = partial(Mutant, file="qns/edl/merger.py")
_E = partial(Mutant, file="qns/edl/external_merge_table.py")
_P = partial(Mutant, file="qns/cbr/producer_views.py")

VIEWS = (
    _V(
        name="digest-of-own-view-ignored",
        kind="views",
        breaks="A producer's copy of the view counts as equal if its version is.",
        old="        return (version, digest) == (self.version, str(self.digest))",
        new="        return version == self.version",
    ),
    _V(
        name="failed-change-forgotten",
        kind="views",
        breaks="The delta of a changeSub without an answer is lost.",
        old="            self.unsent.include(self.sending.then(later))",
        new="            self.unsent.include(later)",
    ),
    _V(
        name="failed-change-repeated-out-of-order",
        kind="views",
        breaks="The delta of a failed changeSub is applied after the later one.",
        old="            self.unsent.include(self.sending.then(later))",
        new="            self.unsent.include(later.then(self.sending))",
        survives="equivalent: in both orders an element that was added and removed cancels out",
    ),
    _V(
        name="failed-change-replaces-later-one",
        kind="views",
        breaks="A failed changeSub is repeated without what has changed meanwhile.",
        old="            self.unsent.include(self.sending.then(later))",
        new="            self.unsent.include(self.sending)",
    ),
    _V(
        name="send-all-keeps-base",
        kind="views",
        breaks="A producer that asks for the whole view gets a delta.",
        old='because a delta does not fit."""\n        self.base, self.sending',
        new='because a delta does not fit."""\n        _, self.sending',
    ),
    _V(
        name="different-view-keeps-base",
        kind="views",
        breaks="A delta is sent to a producer that has another view.",
        old="        if not self.is_sending and (self.base != version or version "
        "== self.version):\n"
        "            self.base = None\n",
        new="",
    ),
    _V(
        name="view-version-not-written",
        kind="recovery after a crash",
        breaks="A consumer forgets at a restart which version its view has.",
        old="        self._happened(ViewEvent.CHANGED)\n        self.put(turn)",
        new="        self._happened(ViewEvent.CHANGED)",
    ),
    _M(
        name="rehosted-view-unchanged",
        kind="views",
        breaks="A producer that hosts other classes keeps the old view.",
        old="        if before != after or (gains and after):\n            view.change(",
        new="        if False:\n            view.change(",
    ),
    _M(
        name="returned-producer-keeps-view",
        kind="organisations that leave",
        breaks="A producer that joined again is believed to have the view.",
        old="            if name not in producers or new[name].incarnation != "
        "old[name].incarnation:",
        new="            if name not in producers:",
    ),
    _M(
        name="digest-keeps-removed-elements",
        kind="views",
        breaks="The digest of a view contains removed elements.",
        old="            view.digest.remove(text)",
        new="            pass",
    ),
    _P(
        name="sources-ignored-in-the-merge-set",
        kind="views",
        breaks="An element with sources covers others in the merge set.",
        old="        if where & _M and not wide.accepts_sources_of(narrow):",
        new="        if False:",
    ),
    _P(
        name="covered-ones-stay-away",
        kind="views",
        breaks="What only the leaver contained does not come back into the views.",
        old="            self._place(child, at & was_root, change)",
        new="            pass",
    ),
    _P(
        name="grandchildren-without-parent",
        kind="views",
        breaks="What an inner node contained does not come back when its root leaves.",
        old="                    _link(parent, child, inherited)",
        new="                    pass",
    ),
    _P(
        name="mapping-remembered-too-long",
        kind="views",
        breaks="A view is made with the classes that a producer hosted before.",
        old="        self._hosting.clear()\n",
        new="",
    ),
    _P(
        name="containment-at-other-producers",
        kind="views",
        breaks="An element counts as contained at every producer if it is at one.",
        old="            where &= self._within_at(narrow.scope, wide.scope)",
        new="            pass",
    ),
    _M(
        name="same-element-sent-in-other-words",
        kind="views",
        breaks="A producer gets a change although its view accepts the same events.",
        old="        same = self._same_at(producer, left, delta.added)",
        new="        same: dict[Subscription, Subscription] = {}",
    ),
    _E(
        name="digest-of-change-ignored",
        kind="views",
        breaks="A change is applied although the view then has another digest.",
        old="        if str(after) != change.digest:\n",
        new="        if False:\n",
    ),
    _E(
        name="unknown-removal-accepted",
        kind="views",
        breaks="A change that removes an unknown element breaks the table.",
        old="            if not removed <= known.keys():\n                return None\n",
        new="            removed &= known.keys()\n",
    ),
    _E(
        name="removed-element-still-matches",
        kind="views",
        breaks="Events are still sent for an element that was removed.",
        old="        self.matcher.delete(consumer, text, subscription)\n        turn.delete",
        new="        turn.delete",
    ),
    _E(
        name="removed-element-stays-in-store",
        kind="recovery after a crash",
        breaks="An element that was removed is back after a restart.",
        old="        turn.delete(EXTERNAL, consumer, text)\n",
        new="",
    ),
    _E(
        name="view-of-leaver-kept",
        kind="organisations that leave",
        breaks="The view of a consumer that left is kept.",
        old="        for text in list(self.view(consumer)):\n            self._remove(",
        new="        for text in ():\n            self._remove(",
    ),
)
