"""Bugs of the users' side: stability, delivery, pausing, groups and lifetimes."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_I = partial(Mutant, file="qns/iil/layer.py")
_S = partial(Mutant, file="qns/iil/stability.py")
_D = partial(Mutant, file="qns/iil/local_dispatcher.py")
_T = partial(Mutant, file="qns/iil/local_subscription_table.py")
_N = partial(Mutant, file="qns/iil/number_series.py", kind="cursors")

USERS = (
    _I(
        name="stability-never-recorded",
        kind="stability",
        breaks="The history does not say that a subscription became stable.",
        old="                self._record_stable(turn, subscription, view)",
        new="                pass",
    ),
    _I(
        name="stability-never-reported",
        kind="stability",
        breaks="Nobody learns that a subscription is stable everywhere.",
        old="            turn.outcomes.stable.append(subscription)",
        new="            pass",
    ),
    _I(
        name="held-events-not-delivered",
        kind="stability",
        breaks="Events that were held for a pending subscription are not delivered.",
        old="            self._catch_up(turn, subscription, producer, late=bool(row.late))\n"
        "            if view is not None:",
        new="            if view is not None:",
    ),
    _I(
        name="late-subscriber-gets-nothing",
        kind="late subscribers",
        breaks="A late subscriber does not get events that are still available here.",
        old="        events = self.log.available(source, turn.now) if late else ()",
        new="        events = ()",
    ),
    _I(
        name="late-events-not-matched",
        kind="late subscribers",
        breaks="A late subscriber gets events that its subscription does not match.",
        old="[logged for logged in events if subscription.subscription.matches(logged.event)]",
        new="list(events)",
    ),
    _I(
        name="subscription-never-waits",
        kind="stability",
        breaks="A new subscription is stable at once, before its backlog is complete.",
        old="        self.stability.wait(\n            turn, subscription.id, producer",
        new="        return\n        self.stability.wait(\n            turn, "
        "subscription.id, producer",
    ),
    _I(
        name="left-producer-waited-for",
        kind="organisations that leave",
        breaks="Subscriptions stay pending at a producer that left.",
        old="                for row in self.stability.pop_producer(turn, name):",
        new="                for row in ():",
    ),
    _I(
        name="changed-producer-stays-stable",
        kind="organisations that leave",
        breaks="Subscriptions stay stable at a producer that hosts other classes.",
        old="has_other_rights or new.organisations[name] != old.organisations.get(name):",
        new="has_other_rights:",
    ),
    _I(
        name="ended-subscription-stays-in-view",
        kind="views",
        breaks="A subscription that ended stays in the merge subscription.",
        old="        interest.remove_interest(turn, subscription.id)\n",
        new="",
    ),
    _I(
        name="lifetime-never-ends",
        kind="delivery",
        breaks="A subscription whose lifetime is over is not ended.",
        old='            self._end(turn, subscription, "expired", interest)',
        new="            pass",
    ),
    _S(
        name="waiting-not-recovered",
        kind="recovery after a crash",
        breaks="A pending subscription is stable after a restart.",
        old="            self.recover(row)",
        new="            pass",
    ),
    _S(
        name="confirmation-of-older-version-counts",
        kind="stability",
        breaks="A subscription is stable when an older view than its own is in force.",
        old="            if row.until is None and row.version <= version:",
        new="            if row.until is None:",
    ),
    _S(
        name="stable-before-backlog-ends",
        kind="stability",
        breaks="A subscription is stable before the last event of its backlog.",
        old="row.until is not None and row.until <= last]",
        new="row.until is not None and row.until <= last + 1]",
    ),
    _S(
        name="stability-not-stored",
        kind="recovery after a crash",
        breaks="A stable subscription is pending again after a restart.",
        old="        turn.delete(WAITING, subscription, producer)",
        new="        pass",
    ),
    _S(
        name="late-flag-forgotten",
        kind="late subscribers",
        breaks="A subscription that waits again does not get what was available before.",
        old="        late = late or (before is not None and bool(before.late))\n",
        new="",
    ),
    _D(
        name="paused-subscription-notified",
        kind="delivery",
        breaks="Events are delivered to a paused subscription.",
        old="        elif to.is_paused:\n            self._enqueue(turn, logged, to, held=False)\n",
        new="",
    ),
    _D(
        name="resumed-subscription-misses-queue",
        kind="delivery",
        breaks="Events that were queued in a pause are not delivered.",
        old="            if not row.held and self._unqueue(turn, row):",
        new="            if False:",
    ),
    _D(
        name="group-served-twice",
        kind="delivery",
        breaks="A delivery group gets an event again.",
        old="        if group in logged.served:\n            return\n",
        new="",
    ),
    Mutant(
        name="served-group-not-stored",
        file="qns/peer/event_log.py",
        kind="recovery after a crash",
        breaks="After a restart a delivery group gets an event again.",
        old="            turn.put(SERVED, ServedRow(group, *logged.key))\n",
        new="",
    ),
    _D(
        name="held-events-out-of-order",
        kind="stability",
        breaks="Held and late events are delivered out of publication order.",
        old="        for logged in sorted(events.values(), key=lambda each: each.position):",
        new="        for logged in events.values():",
    ),
    _D(
        name="lapsed-lease-not-passed-on",
        kind="delivery",
        breaks="An event that a member of a group does not acknowledge stays with it.",
        old="end = self._pass_on(turn, self.table[run.subscription], row)",
        new="end = longest",
    ),
    _D(
        name="delivery-not-held",
        kind="what is kept",
        breaks="An event is deleted before its user has read it.",
        old="        logged.queued += 1\n        turn.transaction",
        new="        turn.transaction",
    ),
    _D(
        name="delivery-not-stored",
        kind="recovery after a crash",
        breaks="A delivery is lost at a restart.",
        old="        turn.transaction.put(DELIVERIES, row)\n",
        new="",
    ),
    _D(
        name="deliveries-not-held-after-restart",
        kind="recovery after a crash",
        breaks="Events that users have not read are deleted after a restart.",
        old="            self.log.recover_queued((delivery.source, delivery.event))\n",
        new="",
    ),
    _D(
        name="queued-events-not-held-after-restart",
        kind="recovery after a crash",
        breaks="Events that wait for a paused user are deleted after a restart.",
        old="            self.log.recover_queued((queued.source, queued.event))\n",
        new="",
    ),
    _D(
        name="acknowledged-delivery-stays-in-store",
        kind="recovery after a crash",
        breaks="A delivery that was acknowledged is back after a restart.",
        old="            turn.delete(DELIVERIES, row.subscription, row.number)\n",
        new="",
    ),
    _T(
        name="counters-not-stored",
        kind="recovery after a crash",
        breaks="Deliveries get numbers again that were used before a restart.",
        old="            turn.put(COUNTERS, CounterRow(each.id, each.delivered, each.dropped))",
        new="            pass",
    ),
    _T(
        name="pause-not-stored",
        kind="recovery after a crash",
        breaks="A paused subscription is active after a restart.",
        old="        subscription.state = after\n        turn.put(SUBSCRIPTIONS, "
        "subscription.row())",
        new="        subscription.state = after",
    ),
    _T(
        name="subscription-not-stored",
        kind="recovery after a crash",
        breaks="A subscription is lost at a restart.",
        old="        self._keep(added)\n        turn.put(SUBSCRIPTIONS, added.row())",
        new="        self._keep(added)",
    ),
    _T(
        name="ended-id-reused",
        kind="delivery",
        breaks="The id of a subscription that ended is given again.",
        old="        if id in self._ended:\n            raise",
        new="        if False:\n            raise",
    ),
    _T(
        name="cursor-series-ignored",
        kind="cursors",
        breaks="A reader of a rolled-back peer skips deliveries whose numbers are used again.",
        old="cursor.number <= delivered and self.series.may_have(id, cursor)",
        new="cursor.number <= delivered",
    ),
    _T(
        name="cursor-beyond-the-end-accepted",
        kind="cursors",
        breaks="A cursor is accepted although the peer has made fewer deliveries.",
        old="cursor.number <= delivered and self.series.may_have(id, cursor)",
        new="self.series.may_have(id, cursor)",
    ),
    _T(
        name="series-continued-by-next-start",
        kind="cursors",
        breaks="Only the first start of a peer begins a number series.",
        old="                found.delivered, found.dropped = counter.delivered, counter.dropped\n",
        new="                found.delivered, found.dropped = counter.delivered, counter.dropped\n"
        "                found.in_series = counter.delivered > 0\n",
    ),
    _T(
        name="series-not-recovered",
        kind="cursors",
        breaks="A peer that started again does not know the series of earlier numbers.",
        old="        self.series.recover_from(store)\n",
        new="",
    ),
    _T(
        name="series-of-ended-subscription-kept",
        kind="cursors",
        breaks="The store keeps the number series of subscriptions that ended.",
        old="        self.series.remove(turn, subscription.id)\n",
        new="",
    ),
    _I(
        name="acknowledgement-of-a-lost-delivery-accepted",
        kind="cursors",
        breaks="A reader acknowledges new deliveries with the cursor of a lost one.",
        old="        self.table.check_cursor(subscription, Cursor(request.upto, request.series))\n",
        new="",
    ),
    _I(
        name="dropped-numbers-declared-without-series",
        kind="cursors",
        breaks="A reader that continues after dropped numbers has a cursor without a check.",
        old="series.at(request.id, dropped[-1].last)",
        new='""',
    ),
    _N(
        name="series-not-stored",
        breaks="A number series is lost at a restart.",
        old="        turn.put(NUMBER_SERIES, row)\n",
        new="",
    ),
    _N(
        name="series-begins-too-late",
        breaks="The first number of a start belongs to the series before.",
        old="NumberSeriesRow(id, first, _series_id",
        new="NumberSeriesRow(id, first + 1, _series_id",
    ),
    _N(
        name="series-same-after-every-start",
        breaks="Two starts of a peer use the same number series.",
        old='f"{start.epoch} {start.nonce} {subscription}"',
        new='f"{subscription}"',
    ),
    _N(
        name="series-same-for-every-subscription",
        breaks="The cursor of another subscription is accepted.",
        old='f"{start.epoch} {start.nonce} {subscription}"',
        new='f"{start.epoch} {start.nonce}"',
    ),
    _N(
        name="series-same-after-a-rollback-in-one-epoch",
        breaks="A peer that is rolled back without a trace uses a number series again.",
        old='f"{start.epoch} {start.nonce} {subscription}"',
        new='f"{start.epoch} {subscription}"',
    ),
    _N(
        name="series-forgotten-too-early",
        breaks="An acknowledgement forgets the series of the acknowledged number itself.",
        old="bisect_right(rows, upto, key=_first_of) - 1",
        new="bisect_right(rows, upto, key=_first_of)",
    ),
    _N(
        name="series-never-forgotten",
        breaks="The store keeps a row for each start of the peer, for ever.",
        old="        if len(rows) > 1:",
        new="        if False:",
    ),
    _N(
        name="series-of-unread-numbers-unbounded",
        breaks="A reader that never acknowledges makes the number series grow without end.",
        old="        self._keep_newest(turn, rows, MOST_SERIES)\n",
        new="",
    ),
)
