"""Bugs that leave a history without a contradiction: only the audit of the simulator finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from qns.cbr.event import Event
from qns.edl import tree_builder
from qns.edl.inbound_stream import InboundStream
from qns.edl.intake import Intake
from qns.edl.messages import Fence
from qns.edl.outbound_stream import OutboundStream
from qns.edl.producer import Producer
from qns.edl.readers import Readers
from qns.federation.document import Federation
from qns.iil.layer import InternalInterfaceLayer
from qns.iil.local_dispatcher import LocalDispatcher
from qns.iil.local_subscription_table import LocalSubscriptionTable
from qns.iil.requests import Pause, Subscribe
from qns.peer.event_log import LoggedEvent
from qns.peer.peer import Peer
from qns.peer.publications import Publications
from qns.peer.status import PeerStatus
from qns.peer.turn import Turn

Replacements = dict[tuple[Any, str], Any]


def publication_forgotten() -> Replacements:
    """A peer acknowledges some publications and keeps neither the event nor a record."""
    original = Publications.accept

    def accept(
        publications: Publications, turn: Turn, event: Event, federation: Federation
    ) -> LoggedEvent | None:
        if event.id.endswith("7"):
            return None
        return original(publications, turn, event, federation)

    return {(Publications, "accept"): accept}


def stability_not_recorded() -> Replacements:
    """Some events are not sent to others, and no peer records that a subscription is stable."""
    original = Producer.diffuse

    def diffuse(producer: Producer, turn: Turn, logged: LoggedEvent) -> list[str]:
        return [] if logged.event.id.endswith("7") else original(producer, turn, logged)

    def record_stable(*_: Any) -> None:
        pass

    return {
        (Producer, "diffuse"): diffuse,
        (InternalInterfaceLayer, "_record_stable"): record_stable,
    }


def delivery_recorded_and_never_read() -> Replacements:
    """A delivery is recorded and can be acknowledged, but no pull returns it."""
    original = LocalDispatcher.read

    def read(dispatcher: LocalDispatcher, *args: Any) -> list[tuple[int, LoggedEvent]]:
        found = original(dispatcher, *args)
        return [each for each in found if not each[1].event.id.endswith("7")]

    return {(LocalDispatcher, "read"): read}


def event_read_with_another_number() -> Replacements:
    """A pull returns deliveries with other numbers than those that were recorded."""
    original = LocalDispatcher.read

    def read(dispatcher: LocalDispatcher, *args: Any) -> list[tuple[int, LoggedEvent]]:
        return [(number, logged) for number, (_, logged) in _swapped(original(dispatcher, *args))]

    return {(LocalDispatcher, "read"): read}


def _swapped(
    found: list[tuple[int, LoggedEvent]],
) -> list[tuple[int, tuple[int, LoggedEvent]]]:
    numbers = [number for number, _ in found]
    return list(zip(numbers, found[:-2] + found[-2:][::-1], strict=True))


def pause_without_a_request() -> Replacements:
    """A peer pauses some subscriptions on its own and records it, so that nothing is owed."""
    original = InternalInterfaceLayer.subscribe

    def subscribe(
        iil: InternalInterfaceLayer, turn: Turn, request: Subscribe, **others: Any
    ) -> Any:
        is_new = request.id not in iil.table
        answer = original(iil, turn, request, **others)
        if is_new and request.id in iil.table and request.id.endswith("7"):
            iil.pause(turn, Pause(request.owner, request.id))
        return answer

    return {(InternalInterfaceLayer, "subscribe"): subscribe}


def subscription_recorded_with_another_text() -> Replacements:
    """A peer records a narrower subscription than the user asked for, and serves that one."""
    original = InternalInterfaceLayer.subscribe

    def subscribe(
        iil: InternalInterfaceLayer, turn: Turn, request: Subscribe, **others: Any
    ) -> Any:
        narrower = replace(request, text="Report/Wind from Met01")
        return original(iil, turn, narrower, **others)

    return {(InternalInterfaceLayer, "subscribe"): subscribe}


def events_dropped_without_a_limit() -> Replacements:
    """A producer drops, and declares, what it owes beyond two events, though no limit is set."""
    original = OutboundStream.assign_number

    def assign_number(stream: OutboundStream, turn: Turn, epoch: int, key: Any, log: Any) -> int:
        number = original(stream, turn, epoch, key, log)
        if number - stream.acknowledged > 2:
            stream.drop_oldest(turn, log)
        return number

    return {(OutboundStream, "assign_number"): assign_number}


def deliveries_dropped_without_a_limit() -> Replacements:
    """A queue drops, and declares, what is beyond two deliveries, though no limit is set."""
    original = LocalDispatcher.__init__

    def init(dispatcher: LocalDispatcher, *args: Any, **fields: Any) -> None:
        original(dispatcher, *args, **fields)
        dispatcher.longest_queue = 2

    return {(LocalDispatcher, "__init__"): init}


def lease_shortened() -> Replacements:
    """The lease of a member of a delivery group lapses after a second."""
    original = LocalDispatcher.__init__

    def init(dispatcher: LocalDispatcher, *args: Any, **fields: Any) -> None:
        original(dispatcher, *args, **fields)
        dispatcher.lease_s = 1.0

    return {(LocalDispatcher, "__init__"): init}


def rewind_without_a_restore() -> Replacements:
    """A consumer records for each event that its producer was restored, and goes on."""
    original = InboundStream.record_taken

    def record_taken(stream: InboundStream, turn: Turn, *args: Any, **fields: Any) -> None:
        original(stream, turn, *args, **fields)
        stream._report(turn, Fence(stream.epoch, stream.last + 1))

    return {(InboundStream, "record_taken"): record_taken}


def lifetime_halved() -> Replacements:
    """A subscription expires after half of its lifetime."""
    original = InternalInterfaceLayer.subscribe

    def subscribe(
        iil: InternalInterfaceLayer, turn: Turn, request: Subscribe, **others: Any
    ) -> Any:
        shorter = replace(request, lifetime_s=request.lifetime_s / 2)
        return original(iil, turn, shorter, **others)

    return {(InternalInterfaceLayer, "subscribe"): subscribe}


def start_declared_as_restored() -> Replacements:
    """A peer that starts again declares that its store is an older copy."""
    original = Peer.start

    def start(peer: Peer, turn: Turn, *, restored: bool, is_new: bool = False) -> None:
        original(peer, turn, restored=restored or peer.identity.epoch > 1, is_new=is_new)

    return {(Peer, "start"): start}


def setback_not_recorded() -> Replacements:
    """No peer records that a store went back in time, nor what it takes from such a producer."""
    record, record_taken = Turn.record, InboundStream.record_taken
    set_back: list[InboundStream] = []

    def record_start(turn: Turn, do: str, **fields: object) -> None:
        record(turn, do, **({**fields, "restored": False} if do == "start" else fields))

    def report(stream: InboundStream, turn: Turn, fence: Fence) -> None:
        set_back.append(stream)

    def take(stream: InboundStream, turn: Turn, *args: Any) -> None:
        if not any(each is stream for each in set_back):
            record_taken(stream, turn, *args)

    return {
        (Turn, "record"): record_start,
        (InboundStream, "_report"): report,
        (InboundStream, "record_taken"): take,
        (PeerStatus, "setback"): None,
    }


def cursor_not_checked() -> Replacements:
    """A peer that went back accepts the cursors of deliveries that it has forgotten."""

    def check_cursor(*_: Any) -> None:
        pass

    return {(LocalSubscriptionTable, "check_cursor"): check_cursor}


def flat_tree() -> Replacements:
    """A producer sends every event to all consumers itself."""

    def diffusion_tree(root: str, receivers: Any, *_: Any) -> dict[str, list[str]]:
        return {root: list(receivers), **{each: [] for each in receivers}}

    return {(tree_builder, "diffusion_tree"): diffusion_tree}


def sent_twice() -> Replacements:
    """A producer sends events along the tree, and again to each consumer."""
    original = Producer.diffuse

    def diffuse(producer: Producer, turn: Turn, logged: LoggedEvent) -> list[str]:
        interested = original(producer, turn, logged)
        for name in interested:
            producer.streams[name].resend_from(producer.streams[name].number)
        return interested

    return {(Producer, "diffuse"): diffuse}


def subtree_left_to_the_producer() -> Replacements:
    """A forwarder accepts a notification and does not forward it: the producer sends it again."""

    def members(intake: Intake, entries: Any) -> list[Any]:
        return []

    return {(Intake, "_members"): members}


def readers_not_checked() -> Replacements:
    """A producer sends an event to every organisation whose view matches."""
    return {(Readers, "may_read"): lambda *_: True}


LIES: dict[Callable[[], Replacements], tuple[str, ...]] = {
    publication_forgotten: ("Owed", "Answers"),
    stability_not_recorded: ("Owed",),
    delivery_recorded_and_never_read: ("Owed", "Dense numbers"),
    event_read_with_another_number: ("Answers", "Reading"),
    pause_without_a_request: ("Cause",),
    subscription_recorded_with_another_text: ("Owed", "Answers"),
    events_dropped_without_a_limit: ("Owed", "Cause of a drop", "Cause of a skip"),
    deliveries_dropped_without_a_limit: ("Cause of an overflow",),
    lease_shortened: ("Cause of a lapse",),
    rewind_without_a_restore: ("Cause of a rewind",),
    lifetime_halved: ("Cause of an expiry",),
    start_declared_as_restored: ("Lineage",),
    setback_not_recorded: ("Declared",),
    cursor_not_checked: ("Cursor",),
    flat_tree: ("Fan-out",),
    sent_twice: ("One notify",),
    subtree_left_to_the_producer: ("No resend",),
    readers_not_checked: ("Rights",),
}
"""Bug -> rules of the audit that one seed finds broken."""


@contextmanager
def lying(bug: Callable[[], Replacements]) -> Iterator[None]:
    """Replaces functions of the production code."""
    with ExitStack() as stack:
        for (owner, name), replacement in bug().items():
            stack.enter_context(patch.object(owner, name, replacement))
        yield
