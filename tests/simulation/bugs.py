"""Bugs that replace functions of the production code, to test that the simulator catches each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from qns.cbr.delta import Delta
from qns.cbr.producer_views import Changes, ProducerViews
from qns.cbr.subscription import Subscription
from qns.d2q.schema import Schema
from qns.edl import claims
from qns.edl.claims import Claims
from qns.edl.consumer import Consumer
from qns.edl.custody import Custody
from qns.edl.external_merge_table import ExternalMergeTable
from qns.edl.fences import Fences
from qns.edl.forwarder import Forwarder
from qns.edl.inbound_stream import InboundStream, Place
from qns.edl.link import Parcel
from qns.edl.merge_subscriptions_table import ViewState
from qns.edl.merger import Merger
from qns.edl.messages import Fence
from qns.edl.outbound_stream import OutboundStream
from qns.edl.producer import Producer
from qns.edl.readers import Readers
from qns.edl.routes import Routes
from qns.edl.seals import Seals
from qns.edl.uncompared_views import UncomparedViews
from qns.errors import Busy
from qns.iil.deliveries_dropped import Dropped
from qns.iil.dropped_numbers import DroppedNumbers
from qns.iil.layer import InternalInterfaceLayer
from qns.iil.local_dispatcher import LocalDispatcher
from qns.iil.local_subscription_table import LocalSubscription
from qns.peer import gateway as gateways
from qns.peer.backoff import Backoff
from qns.peer.event_log import LoggedEvent
from qns.peer.gateway import Begun, Gateway
from qns.peer.inputs import Input
from qns.peer.layers import ViewProgress
from qns.peer.lineage import MarkChange
from qns.peer.past_events import PastEvents
from qns.peer.peer import Peer
from qns.peer.ports import Mark
from qns.peer.publications import Publications
from qns.peer.steady_time import SteadyTime
from qns.peer.tuning import Tuning
from qns.peer.turn import Transaction, Turn
from qns.store.lineage import MemoryLineage
from tests.simulation.store_bugs import STORE_BUGS, STORE_BUGS_REVEALED_BY

Replacements = dict[tuple[Any, str], Any]
"""(class or module, name of a function in it) -> what replaces it."""


def acknowledge_before_commit() -> Replacements:
    """The effects of a turn leave at once; its transaction is committed with the next turn."""
    open_transactions: dict[Gateway, Transaction] = {}
    original = Gateway.begin

    def begin(
        gateway: Gateway, inputs: Sequence[Input], now: float, *, ahead: bool = False
    ) -> Begun:
        begun = original(gateway, inputs, now, ahead=ahead)
        before = open_transactions.get(gateway, Transaction())
        open_transactions[gateway] = begun.transaction
        return Begun(before, begun.effects)

    return {(Gateway, "begin"): begin}


def forward_from_memory() -> Replacements:
    """A forwarder keeps its custody only in memory."""

    def promise(custody: Custody, turn: Turn, parcel: Parcel) -> None:
        custody._keep(parcel, custody._number + 1)

    return {(Custody, "promise"): promise}


def no_epochs() -> Replacements:
    """A consumer ignores the epoch of a number and the producer's fences."""

    def learn(stream: InboundStream, turn: Turn, epoch: int, fences: Any, _: int = 0) -> None:
        stream.epoch = max(stream.epoch, epoch)

    def place(stream: InboundStream, epoch: int, number: int) -> Place:
        if number <= stream.last:
            return Place.DUPLICATE
        return Place.NEXT if number == stream.last + 1 else Place.EARLY

    return {(InboundStream, "learn"): learn, (InboundStream, "place"): place}


def no_hello_at_restart() -> Replacements:
    """A peer that starts again sends no hello."""
    original = Peer.start

    def start(peer: Peer, turn: Turn, *, restored: bool, is_new: bool = False) -> None:
        original(peer, turn, restored=restored, is_new=is_new)
        if peer.identity.epoch > 1:
            for name, link in peer.edl.forwarder.links.items():
                link.wants_hello = False
                view = peer.edl.consumer.merger.table.get(name)
                if view is not None:  # assume that the producer has the view
                    view.state, view.base = ViewState.IN_FORCE, view.version

    return {(Peer, "start"): start}


def no_hold_back() -> Replacements:
    """A consumer takes early numbers at once."""
    original = InboundStream.place

    def place(stream: InboundStream, epoch: int, number: int) -> Place:
        found = original(stream, epoch, number)
        return Place.NEXT if found is Place.EARLY else found

    return {(InboundStream, "place"): place}


def containment_ignores_sources() -> Replacements:
    """A subscription contains others whatever their sources."""

    def contains(self: Subscription, other: Subscription) -> bool:
        return other.scope <= self.scope and all(
            name in other.constraints and values.contains(other.constraints[name])  # type: ignore[arg-type]
            for name, values in self.constraints.items()
        )

    return {(Subscription, "contains"): contains}


def merger_forgets_uncovered() -> Replacements:
    """When a cover is removed, the subscriptions that it covered are not added."""

    original_leave = ProducerViews.unsubscribe

    def unsubscribe(views: ProducerViews[Any], id: Any) -> Changes:
        changes = original_leave(views, id)
        return {name: Delta(removed=each.removed) for name, each in changes.items()}

    return {(ProducerViews, "unsubscribe"): unsubscribe}


def unsubscribe_not_propagated() -> Replacements:
    """An unsubscription changes no view."""

    def unsubscribe(merger: Merger, turn: Turn, id: str) -> None:
        merger.views.unsubscribe(id)

    return {(Merger, "unsubscribe"): unsubscribe}


def late_subscriber_served_twice() -> Replacements:
    """A late subscriber gets the available events at once, and again when it becomes stable."""
    original = InternalInterfaceLayer._wait

    def wait(
        iil: InternalInterfaceLayer,
        turn: Turn,
        subscription: LocalSubscription,
        view: ViewProgress,
        *,
        late: bool,
    ) -> None:
        if late:
            iil._catch_up(turn, subscription, view.producer, late=True)
        original(iil, turn, subscription, view, late=late)

    return {(InternalInterfaceLayer, "_wait"): wait}


def growing_schema_changes_no_scope() -> Replacements:
    """A producer reads new events with a grown schema, but keeps the scopes of the old one."""

    def apply_schema(table: ExternalMergeTable, schema: Schema) -> None:
        table.schema = schema

    return {(ExternalMergeTable, "apply_schema"): apply_schema}


def overflow_not_recorded() -> Replacements:
    """A full queue drops deliveries and tells the reader, but leaves no record."""
    original = LocalDispatcher._shorten

    def shorten(dispatcher: Any, turn: Turn, *rest: Any) -> None:
        records, turn.records = turn.records, []
        original(dispatcher, turn, *rest)
        kept = [each for each in turn.records if each["do"] != "overflow"]
        turn.records = records + kept

    return {(LocalDispatcher, "_shorten"): shorten}


def overflow_not_declared() -> Replacements:
    """A full queue drops deliveries and records it, but does not tell the reader."""

    def after(dropped: DroppedNumbers, id: str, number: int) -> tuple[Dropped, ...]:
        return ()

    return {(DroppedNumbers, "after"): after}


def no_relays() -> Replacements:
    """What is owed to an unreachable consumer waits until the link heals."""

    def hops(routes: Routes, target: str, carried: Any = ()) -> list[str]:
        return []

    return {(Routes, "hops"): hops}


def acknowledgement_not_relayed() -> Replacements:
    """A consumer that does not reach the producer acknowledges nothing."""

    def relay_standing(forwarder: Forwarder, *_: Any) -> bool:
        return False

    return {(Forwarder, "relay_standing"): relay_standing}


def commit_keeps_the_last_turn() -> Replacements:
    """Of several turns that are committed together, only the last one is written."""

    def add(transaction: Transaction, later: Transaction) -> None:
        transaction._changes = later._changes

    return {(Transaction, "add"): add}


def publication_repeated() -> Replacements:
    """A publication whose factory repeats it because the answer is late is published again."""

    def is_known(publications: Publications, event: Any, digest: bytes) -> bool:
        return False

    return {(Publications, "_is_known"): is_known}


def epoch_from_the_clock() -> Replacements:
    """The epoch of a start is the time, in milliseconds."""
    started: list[float] = []
    open_gateway, begin = Gateway.open, gateways.begin_epoch

    def opened(*args: Any, now: float, **fields: Any) -> Gateway:
        started.append(now)
        return open_gateway(*args, now=now, **fields)

    def begin_epoch(*args: Any) -> MarkChange:
        change = begin(*args)
        mark = Mark(int((started[-1] + 1_000.0) * 1_000), change.mark.nonce)
        marks = (*change.marks_to_write[:-1], mark)
        return replace(change, mark=mark, marks_to_write=marks)

    return {(Gateway, "open"): opened, (gateways, "begin_epoch"): begin_epoch}


def clock_step_believed_at_once() -> Replacements:
    """A process follows every step forward of its clock."""

    def at(steady: SteadyTime, clock: float, passed: float) -> float:
        steady._now = max(steady._now, clock)
        return steady._now

    return {(SteadyTime, "at"): at}


def mark_written_after_the_store() -> Replacements:
    """The marks that may come next are not written before the store changes."""
    original = MemoryLineage.write

    def write(lineage: MemoryLineage, marks: tuple[Mark, ...]) -> None:
        if len(marks) == 1:
            original(lineage, marks)

    return {(MemoryLineage, "write"): write}


def restored_producer_ignores_restored_consumer() -> Replacements:
    """A producer that was restored does not notice that a consumer has fallen back."""
    original = OutboundStream._fall_back

    def fall_back(stream: OutboundStream, *rest: Any) -> None:
        if not stream.fences:
            original(stream, *rest)

    return {(OutboundStream, "_fall_back"): fall_back}


def restored_producer_trusts_its_views() -> Replacements:
    """A restored producer sends consumers only what the views in its old store match."""

    def restore(stream: OutboundStream, turn: Turn, epoch: int, first: int | None = None) -> None:
        stream.raise_fence(turn, epoch)

    def diffuse(producer: Producer, turn: Turn, logged: LoggedEvent) -> list[str]:
        producer.uncompared = UncomparedViews()
        return original(producer, turn, logged)

    original = Producer.diffuse
    return {(OutboundStream, "restore"): restore, (Producer, "diffuse"): diffuse}


def no_fence_at_a_start() -> Replacements:
    """A start of a producer does not declare from which number on its new epoch counts, and the
    producer ignores that consumers have later numbers."""

    def raise_fence(stream: OutboundStream, turn: Turn, epoch: int) -> None:
        pass

    def find_lost_epoch(*_: Any) -> None:
        return None

    return {
        (OutboundStream, "raise_fence"): raise_fence,
        (OutboundStream, "find_lost_epoch"): find_lost_epoch,
    }


def pauses_without_a_limit() -> Replacements:
    """The pauses between attempts to reach another peer double without a limit."""

    def link_backoff(tuning: Tuning) -> Backoff:
        return Backoff(tuning.first_pause_s, 1e9)

    return {(Tuning, "link_backoff"): property(link_backoff)}


def repeated_event_not_recognised() -> Replacements:
    """A consumer does not recognise an event that a producer publishes again after a setback."""

    def find(past: PastEvents, *_: Any) -> int | None:
        return None

    return {(PastEvents, "find"): find}


def full_peer_acknowledges() -> Replacements:
    """A peer that holds too many events acknowledges a publication and drops it."""
    original = Publications.accept

    def accept(publications: Publications, *args: Any) -> LoggedEvent | None:
        try:
            return original(publications, *args)
        except Busy:
            return None

    return {(Publications, "accept"): accept}


def position_in_a_stream_not_stored() -> Replacements:
    """A consumer forgets how far it has come when it opens its store again."""

    def put(stream: InboundStream, turn: Turn) -> None:
        pass

    return {(InboundStream, "put"): put}


def epoch_without_a_first_number() -> Replacements:
    """Lost commits are not noticed at a start, which does not announce where its epoch begins, and
    the producer ignores that consumers have later numbers."""
    original = Producer.start

    def start(producer: Producer, turn: Turn) -> None:
        with patch.object(OutboundStream, "raise_fence", lambda *_: None):
            original(producer, turn)

    def note_progress(gateway: Gateway) -> None:
        pass

    def find_lost_epoch(*_: Any) -> None:
        return None

    return {
        (Producer, "start"): start,
        (Gateway, "note_progress"): note_progress,
        (OutboundStream, "find_lost_epoch"): find_lost_epoch,
    }


def every_claim_believed() -> Replacements:
    """A peer believes every claim of a member that it has forgotten an epoch."""

    def believe(self: Claims, turn: Turn, member: str, claimed: int, own: int) -> bool:
        self.newest = max(self.newest, claimed)
        return True

    return {(Claims, "believe"): believe}


def old_claims_prove_a_twin() -> Replacements:
    """A peer gives way to a twin because of claims of one member from before it was called."""
    original = Claims.proves_twin

    def proves_twin(self: Claims, now: float, _: int, **fields: Any) -> bool:
        is_called = now - fields["called_at"] <= fields["silence_s"]
        return original(self, now, 1, **fields if is_called else {**fields, "called_at": 0.0})

    return {(Claims, "proves_twin"): proves_twin}


def fences_compared_with_all_others() -> Replacements:
    """The cost of a message grows with the square of the number of its fences."""
    original = Fences.add

    def add(fences: Fences, fence: Fence) -> list[Fence] | None:
        for _ in range(len(fences)):
            for _ in (1, 2):
                pass
        return original(fences, fence)

    return {(Fences, "add"): add}


def invented_memberships_accepted() -> Replacements:
    """A consumer keeps early events of memberships of a producer that no document has named."""
    return {
        (Consumer, "has_stream"): lambda *_: True,
        (Consumer, "is_to_come"): lambda *_: False,
        (Consumer, "has_returned"): lambda *_: False,
    }


def seals_not_checked() -> Replacements:
    """A peer accepts what a forwarder has altered or invented."""
    return {(Seals, "requires"): lambda *_: False}


def peer_gives_way_to_its_copy() -> Replacements:
    """A peer that members call does not wait until its copy has found that nobody calls it."""
    return {(claims, "_PATIENCE"): 0}


def copy_never_gives_way() -> Replacements:
    """A peer that nobody calls goes on beside the one that members call."""
    return {(Claims, "proves_twin"): lambda *_, **__: False}


def copy_accepts_after_it_gave_way() -> Replacements:
    """A peer that has found its twin accepts publications."""
    original = Peer._require_membership

    def require(peer: Peer) -> None:
        is_fenced, peer.is_fenced = peer.is_fenced, False
        original(peer)
        peer.is_fenced = is_fenced

    return {(Peer, "_require_membership"): require}


def rights_not_enforced() -> Replacements:
    """A producer sends an event to every organisation whose view matches."""
    return {(Readers, "may_read"): lambda *_: True}


def right_without_backlog() -> Replacements:
    """An organisation gets only what is published after it got the right to read it."""
    return {(Producer, "_send_gained"): lambda *_: None}


def lost_right_ends_nothing() -> Replacements:
    """What is owed is sent again, although its receiver may not read it any more."""
    return {(Readers, "withhold"): lambda _readers, _turn, _stream, _first, last, *_: last}


BUGS: dict[str, Callable[[], Replacements]] = {
    "acknowledge before commit": acknowledge_before_commit,
    "forward from memory": forward_from_memory,
    "no epochs": no_epochs,
    "no hello at restart": no_hello_at_restart,
    "no hold-back of early numbers": no_hold_back,
    "containment ignores sources": containment_ignores_sources,
    "merger forgets uncovered subscriptions": merger_forgets_uncovered,
    "unsubscribe not propagated": unsubscribe_not_propagated,
    "late subscriber served twice": late_subscriber_served_twice,
    "growing schema changes no scope": growing_schema_changes_no_scope,
    "overflow of a queue not recorded": overflow_not_recorded,
    "overflow of a queue not declared": overflow_not_declared,
    "no relays": no_relays,
    "acknowledgement not relayed": acknowledgement_not_relayed,
    "group commit keeps only the last turn": commit_keeps_the_last_turn,
    "repeated publication published again": publication_repeated,
    "epoch from the clock": epoch_from_the_clock,
    "clock step believed at once": clock_step_believed_at_once,
    "mark written after the store": mark_written_after_the_store,
    "restored producer ignores a restored consumer": restored_producer_ignores_restored_consumer,
    "restored producer trusts its views": restored_producer_trusts_its_views,
    "no fence at a start": no_fence_at_a_start,
    "pauses without a limit": pauses_without_a_limit,
    "repeated event not recognised": repeated_event_not_recognised,
    "full peer acknowledges": full_peer_acknowledges,
    "position in a stream not stored": position_in_a_stream_not_stored,
    "epoch without a first number": epoch_without_a_first_number,
    "every claim believed": every_claim_believed,
    "old claims prove a twin": old_claims_prove_a_twin,
    "fences compared with all others": fences_compared_with_all_others,
    "invented memberships accepted": invented_memberships_accepted,
    "seals not checked": seals_not_checked,
    "peer gives way to its copy": peer_gives_way_to_its_copy,
    "copy never gives way": copy_never_gives_way,
    "copy accepts after it gave way": copy_accepts_after_it_gave_way,
    **STORE_BUGS,
    "rights not enforced": rights_not_enforced,
    "right without backlog": right_without_backlog,
    "lost right ends nothing": lost_right_ends_nothing,
}

REVEALED_BY: dict[str, tuple[str, ...]] = {
    "forward from memory": ("gone",),
    "no relays": ("lasting",),
    "acknowledgement not relayed": ("lasting",),
    "group commit keeps only the last turn": ("slow-disk", "crash"),
    "repeated publication published again": ("slow-peer",),
    "epoch from the clock": ("clock", "crash"),
    "clock step believed at once": ("clock-step",),
    "mark written after the store": ("recovery",),
    "restored producer ignores a restored consumer": ("restores",),
    "pauses without a limit": ("split",),
    "repeated event not recognised": ("repeat", "restore"),
    "full peer acknowledges": ("bounds",),
    "position in a stream not stored": ("failing-disk",),
    "no fence at a start": ("snapshot",),
    "epoch without a first number": ("lose-log",),
    "every claim believed": ("liar",),
    "old claims prove a twin": ("liar", "split"),
    "fences compared with all others": ("liar",),
    "invented memberships accepted": ("liar",),
    "seals not checked": ("liar",),
    "peer gives way to its copy": ("twin",),
    "copy never gives way": ("twin",),
    "copy accepts after it gave way": ("twin",),
    **STORE_BUGS_REVEALED_BY,
    "rights not enforced": ("rights",),
    "right without backlog": ("rights",),
    "lost right ends nothing": ("rights", "partition"),
}
"""Bug -> the fault that reveals it, and after it further faults that are needed. Without the first
one no seed reveals the bug."""


@contextmanager
def switched_on(bug: str) -> Iterator[None]:
    """Replaces the functions of the production code while the context is open."""
    with ExitStack() as stack:
        for (owner, name), replacement in BUGS[bug]().items():
            stack.enter_context(patch.object(owner, name, replacement))
        yield
