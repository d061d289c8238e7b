"""Internal Interface Layer: the users' side of a peer (thesis 5.4.4).

Subscriptions: Interpreter -> Local Subscription Table. Events: Local Matcher -> Local Dispatcher.
The External Diffusion Layer calls this layer as its `DeliverySink` and is called as `Interest`
(`qns.peer.layers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from qns.cbr.subscription import Subscription
from qns.d2q.schema import Schema
from qns.errors import DuplicateId, LimitExceeded, ValueRefused
from qns.federation.document import Federation
from qns.iil.cursor import Cursor
from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.interpreter import interpret, without_labels
from qns.iil.local_dispatcher import LocalDispatcher
from qns.iil.local_matcher import LocalMatcher
from qns.iil.local_subscription_table import (
    LocalSubscription,
    LocalSubscriptionTable,
    SubscriptionEvent,
)
from qns.iil.number_series import NumberSeries
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Deliveries,
    Delivery,
    ListSubscriptions,
    Ok,
    Pause,
    PullDeliveries,
    Renew,
    Resume,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Subscriptions,
    Unsubscribe,
    Unsubscribed,
)
from qns.iil.stability import Stability
from qns.peer.event_log import EventLog, LoggedEvent
from qns.peer.layers import Interest, ViewProgress
from qns.peer.ports import Index, Mark, Store
from qns.peer.row_view import RowView
from qns.peer.tuning import Tuning
from qns.peer.turn import Turn

_LONGEST_NAME = 200


@dataclass(slots=True, eq=False)
class InternalInterfaceLayer:
    schema: Schema
    log: EventLog
    tuning: Tuning
    epoch: int
    """The epoch of the peer; the ids that it gives to subscriptions begin with it."""
    table: LocalSubscriptionTable
    matcher: LocalMatcher
    stability: Stability
    dispatcher: LocalDispatcher

    @classmethod
    def build(
        cls,
        schema: Schema,
        log: EventLog,
        view: RowView,
        tuning: Tuning,
        start: Mark,
        index: Index[str],
    ) -> InternalInterfaceLayer:
        """Returns the layer for a start of the peer that begins with this mark."""
        table = LocalSubscriptionTable(index, NumberSeries(start), tuning.ended_remembered)
        stability = Stability()
        dispatcher = LocalDispatcher(
            table,
            log,
            stability.is_pending,
            tuning.lease_s,
            tuning.longest_queue,
            view,
            tuning.unread_in_memory,
        )
        matcher = LocalMatcher(table)
        return cls(schema, log, tuning, start.epoch, table, matcher, stability, dispatcher)

    def recover_from(self, store: Store, now: float) -> None:
        self.table.recover_from(store, self.schema)
        self.stability.recover_from(store)
        self.dispatcher.recover_from(store, now)

    def subscriptions(self) -> Iterator[tuple[str, Subscription]]:
        """Yields the users' subscriptions with their ids, in order of arrival."""
        return ((each.id, each.subscription) for each in self.table)

    # --- subscribing and ending -------------------------------------------------------------------

    def subscribe(
        self, turn: Turn, request: Subscribe, *, interest: Interest
    ) -> tuple[Subscribed, Subscription]:
        """Adds a subscription; returns the answer and the normal form.

        Repeating the request with the same id changes nothing.
        """
        self._check(request)
        if request.id in self.table:
            found = self.table[request.id]
            if (found.owner, found.text, found.group) != (
                request.owner,
                request.text,
                request.group,
            ):
                raise DuplicateId(
                    f"subscription {request.id} exists already", remedy="choose another id"
                )
        else:
            subscription = interpret(request.text, self.schema)
            found = self._add(turn, request, subscription)
            interest.add_interest(turn, found.id, subscription)
            self._begin(turn, found, interest)
        return self._subscribed(found), found.subscription

    def _check(self, request: Subscribe) -> None:
        """Raises ValueRefused for a name or a lifetime that cannot be stored."""
        for kind, name in (
            ("an owner", request.owner),
            ("a subscription's id", request.id),
            ("a delivery group's name", request.group),
        ):
            if len(name) > _LONGEST_NAME or not name.isprintable():
                raise ValueRefused(f"{kind} has at most {_LONGEST_NAME} printable characters")
        _check_lifetime(request.lifetime_s)

    def _add(self, turn: Turn, request: Subscribe, subscription: Subscription) -> LocalSubscription:
        if len(self.table) >= self.tuning.most_subscriptions:
            raise LimitExceeded(
                f"{len(self.table)} subscriptions exist already", remedy="end some of them first"
            )
        return self.table.add(
            turn,
            request.id or self.table.free_id(self.epoch),
            request.owner,
            subscription,
            text=request.text,
            reading=without_labels(request.text, subscription, self.schema),
            group=request.group,
            expires_at=turn.now + request.lifetime_s,
        )

    def _begin(self, turn: Turn, subscription: LocalSubscription, interest: Interest) -> None:
        """Makes a new subscription wait for every producer, and delivers what it can get now."""
        views = {view.producer: view for view in interest.views()}
        for source in self.log.sources():
            if source not in views:  # this organisation, or one that has left
                self._catch_up(turn, subscription, source, late=True)
        for view in views.values():
            self._wait(turn, subscription, view, late=True)
        self._note_stable(turn, subscription.id)

    def unsubscribe(self, turn: Turn, request: Unsubscribe, *, interest: Interest) -> Unsubscribed:
        subscription = self.table.owned(request.id, request.owner)
        return Unsubscribed(request.id, self._end(turn, subscription, "unsubscribed", interest))

    def end_all(self, turn: Turn, why: str, *, interest: Interest) -> None:
        """Ends every subscription."""
        for subscription in self.table:
            self._end(turn, subscription, why, interest)

    def end_expired(self, turn: Turn, *, interest: Interest) -> None:
        """Ends the subscriptions whose lifetime is over."""
        for subscription in self.table.expired(turn.now):
            self._end(turn, subscription, "expired", interest)

    def _end(
        self, turn: Turn, subscription: LocalSubscription, why: str, interest: Interest
    ) -> int:
        """Ends a subscription; returns how many events are dropped with it."""
        self.stability.forget(turn, subscription.id)
        dropped = self.dispatcher.count_dropped(subscription)
        self.table.end(turn, subscription, why, dropped)
        self.dispatcher.end(turn, subscription)
        interest.remove_interest(turn, subscription.id)
        return dropped

    # --- other requests of users ------------------------------------------------------------------

    def renew(self, turn: Turn, request: Renew) -> Subscribed:
        subscription = self.table.owned(request.id, request.owner)
        _check_lifetime(request.lifetime_s)
        self.table.renew(turn, subscription, turn.now + request.lifetime_s)
        return self._subscribed(subscription)

    def pause(self, turn: Turn, request: Pause) -> Ok:
        subscription = self.table.owned(request.id, request.owner)
        self.table.change(turn, subscription, SubscriptionEvent.PAUSE)
        return Ok()

    def resume(self, turn: Turn, request: Resume) -> Ok:
        subscription = self.table.owned(request.id, request.owner)
        self.table.change(turn, subscription, SubscriptionEvent.RESUME)
        self.dispatcher.resume(turn, subscription)
        return Ok()

    def list_subscriptions(self, _: Turn, request: ListSubscriptions) -> Subscriptions:
        return Subscriptions(
            tuple(
                SubscriptionInfo(
                    each.id,
                    each.text,
                    each.group,
                    each.is_paused,
                    each.expires_at,
                    tuple(self.stability.pending(each.id)),
                    each.delivered,
                    each.dropped,
                    self.dispatcher.depth(each.id),
                )
                for each in self.table
                if each.owner == request.owner
            )
        )

    def pull(self, _: Turn, request: PullDeliveries) -> Deliveries:
        subscription, series = self.table.owned(request.id, request.owner), self.table.series
        self.table.check_cursor(subscription, Cursor(request.after, request.series))
        if request.limit < 0:
            raise ValueRefused("a negative limit", remedy="say how many deliveries to read")
        dropped = self.dispatcher.dropped.after(request.id, request.after)
        if dropped:
            raise DeliveriesDropped.of(request.id, dropped, series.at(request.id, dropped[-1].last))
        found = self.dispatcher.read(
            request.id, request.after, request.limit, self.tuning.bytes_per_call
        )
        return Deliveries(
            tuple(
                Delivery(number, *logged.key, logged.xml, series.at(request.id, number))
                for number, logged in found
            )
        )

    def acknowledge(self, turn: Turn, request: AcknowledgeDeliveries) -> Ok:
        subscription = self.table.owned(request.id, request.owner)
        self.table.check_cursor(subscription, Cursor(request.upto, request.series))
        self.dispatcher.acknowledge(turn, request.id, request.upto)
        self.table.series.acknowledge(turn, request.id, request.upto)
        return Ok()

    def _subscribed(self, subscription: LocalSubscription) -> Subscribed:
        pending = tuple(self.stability.pending(subscription.id))
        return Subscribed(subscription.id, pending, subscription.expires_at)

    # --- events and producers (qns.peer.layers.DeliverySink) --------------------------------------

    def offer(self, turn: Turn, events: Sequence[LoggedEvent]) -> None:
        if len(events) == 1:
            (logged,) = events
            self.dispatcher.offer(turn, logged, self.matcher.match(logged.event))
            return
        found = self.matcher.match_all([logged.event for logged in events])
        for logged, matched in zip(events, found, strict=True):
            self.dispatcher.offer(turn, logged, matched)

    def offer_again(self, turn: Turn, logged: LoggedEvent, offered_to: int) -> None:
        matched = [self.table[id] for id in self.matcher.match(logged.event)]
        served = {each.group for each in matched if each.group and each.created <= offered_to}
        fresh = [
            each.id
            for each in matched
            if each.created > offered_to
            and each.group not in served
            and self.dispatcher.find(each.id, logged.key) is None
        ]
        self.dispatcher.offer(turn, logged, fresh)

    def newest_subscription(self) -> int:
        return self.table.next_number() - 1

    def stream_advanced(
        self, turn: Turn, producer: str, last: int, view: ViewProgress | None
    ) -> None:
        for row in self.stability.pop_stable(turn, producer, last):
            subscription = self.table[row.subscription]
            self._catch_up(turn, subscription, producer, late=bool(row.late))
            if view is not None:
                self._record_stable(turn, subscription, view)
            self._note_stable(turn, subscription.id)

    def view_confirmed(self, turn: Turn, version: int, upto: int, view: ViewProgress) -> None:
        self.stability.confirm(turn, view.producer, version, upto)
        self.stream_advanced(turn, view.producer, view.last, view)

    def view_unconfirmed(self, turn: Turn, view: ViewProgress) -> None:
        for subscription in self.table:
            self._wait(turn, subscription, view, late=False)

    def void_backlogs(self, turn: Turn, producer: str, first: int) -> bool:
        return self.stability.void(turn, producer, first)

    def has_pending(self, producer: str) -> bool:
        return self.stability.has_pending(producer)

    def pending_at(self, producer: str) -> int:
        """Returns how many subscriptions are not stable yet at this producer."""
        return self.stability.pending_at(producer)

    def apply_schema(self, turn: Turn, new: Schema, *, interest: Interest) -> None:
        """Extends the scope of subscriptions to classes that the schema has below theirs now."""
        affected = list(self.table.apply_schema(turn, self.schema, new))
        # All are removed before any is added: `X` and `only X` may have been equivalent until now,
        # and then one of them stands for both in the merge subscription.
        for each in affected:
            interest.remove_interest(turn, each.id)
        for each in affected:
            interest.add_interest(turn, each.id, each.subscription)
        self.schema = new

    def apply_document(
        self, turn: Turn, old: Federation, new: Federation, *, interest: Interest
    ) -> None:
        """Stops waiting for organisations that left; waits for those that changed."""
        views = {view.producer: view for view in interest.views()}
        for name in old.organisations:
            if name not in views:
                for row in self.stability.pop_producer(turn, name):
                    subscription = self.table[row.subscription]
                    self._catch_up(turn, subscription, name, late=bool(row.late))
                    self._note_stable(turn, subscription.id)
        has_other_rights = (new.groups, new.rights) != (old.groups, old.rights)
        for name, view in views.items():
            if has_other_rights or new.organisations[name] != old.organisations.get(name):
                self.view_unconfirmed(turn, view)

    def _wait(
        self, turn: Turn, subscription: LocalSubscription, view: ViewProgress, *, late: bool
    ) -> None:
        """Makes the subscription wait until it is stable at the producer, which may be now."""
        producer, sources = view.producer, subscription.subscription.sources
        if sources is not None and producer not in sources:
            return
        self.stability.wait(
            turn, subscription.id, producer, view.version, view.backlog_end, late=late
        )
        if view.backlog_end is not None:
            self.stream_advanced(turn, producer, view.last, view)

    def _catch_up(
        self, turn: Turn, subscription: LocalSubscription, source: str, *, late: bool
    ) -> None:
        """Delivers what was held and, for a late subscriber, what is still available."""
        events = self.log.available(source, turn.now) if late else ()
        wanted = [logged for logged in events if subscription.subscription.matches(logged.event)]
        self.dispatcher.catch_up(turn, subscription, source, wanted)

    def _record_stable(
        self, turn: Turn, subscription: LocalSubscription, view: ViewProgress
    ) -> None:
        seen = subscription.subscription.projected(view.producer, view.hosted)
        if seen is not None:
            turn.record(
                "stable",
                sub=subscription.id,
                producer=view.producer,
                joined=view.incarnation,
                epoch=view.epoch,
                classes=sorted(seen.scope),
            )

    def _note_stable(self, turn: Turn, subscription: str) -> None:
        if not self.stability.pending(subscription):
            turn.outcomes.stable.append(subscription)

    # --- the end of a turn ------------------------------------------------------------------------

    def end_leases(self, turn: Turn) -> None:
        """Passes on the events that members of groups have not acknowledged in time."""
        self.dispatcher.end_leases(turn)

    def put_counters(self, turn: Turn) -> None:
        """Writes the counters of subscriptions that changed in the turn."""
        self.table.put_counters(turn)

    def next_due(self) -> float:
        return min(self.table.next_expiry(), self.dispatcher.next_lease_end())


def _check_lifetime(lifetime_s: float) -> None:
    if not 0 < lifetime_s <= inf:
        raise ValueRefused("a lifetime is a positive number of seconds", remedy="leave it out")
