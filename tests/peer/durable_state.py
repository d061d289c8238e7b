"""The durable state of a peer as values: what must be the same after a crash."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Any

from qns.cbr.subscription import Subscription
from qns.edl.custody import write_route
from qns.edl.merger import Merger
from qns.peer.event_log import EventKey
from qns.peer.peer import Peer
from qns.peer.tables import SERVED, ServedRow


def durable_state(peer: Peer) -> dict[str, Any]:
    """Returns everything that a peer must know after a crash as it did before.

    Not in it are times of resending, requests under way and what a hello finds out.
    """
    edl, iil = peer.edl, peer.iil
    return {
        "identity": peer.identity.row._replace(epoch=0, nonce=""),
        "document": edl.dialogue.document_xml,
        "held events": peer.log.holders(),
        "publications": dict(peer.publications._rows),
        "outbound": {name: _outbound(each) for name, each in edl.producer.streams.items()},
        "views held": {
            consumer: (set(elements), edl.producer.table.digest(consumer))
            for consumer, elements in edl.producer.table.views.items()
            if elements
        },
        "inbound": {
            key: (each.epoch, each.last, list(each.fences), each.harmless, each.early)
            for key, each in edl.consumer.streams.items()
            if (each.epoch, each.last) != (0, 0)
        },
        "own views": {
            name: (_as_seen(edl.consumer.merger, name), view.version)
            for name, view in edl.consumer.merger.table.views.items()
        },
        "custody": {
            number: (parcel.event, write_route(parcel))
            for number, parcel in edl.forwarder.custody.parcels.items()
        },
        "parcels of custody": {
            parcel.custody: parcel.entry.receiver
            for link in edl.forwarder.links.values()
            for parcel in link.all_parcels()
            if parcel.custody is not None
        },
        "dead letters": dict(edl.forwarder.custody.dead_letters),
        "number series": {id: list(rows) for id, rows in iil.table.series._rows.items()},
        "subscriptions": {
            each.id: (each.row(), each.delivered, each.dropped) for each in iil.table
        },
        "ended": set(iil.table._ended),
        "pending": {
            (row.subscription, row.producer): row
            for rows in iil.stability._waiting.values()
            for row in rows.values()
        },
        "queues": {
            id: list(queue.rows()) for id, queue in iil.dispatcher._queues.items() if len(queue)
        },
        "queued events": _queued_events(peer),
        "served": _served_rows(peer),
    }


def _queued_events(peer: Peer) -> dict[EventKey, int]:
    """Returns how many rows the events have in users' queues, as queues and log agree on."""
    found = Counter(
        (row.source, row.event)
        for queue in peer.iil.dispatcher._queues.values()
        for row in queue.rows()
    )
    for each in peer.log:
        assert each.queued in (found[each.key], inf)
    return dict(found)


def _served_rows(peer: Peer) -> set[ServedRow]:
    """Returns which groups have received which events, as the store and the log agree on."""
    found = set(peer.view.rows(SERVED))
    in_memory = {each.key for each in peer.log}
    assert {ServedRow(group, *each.key) for each in peer.log for group in each.served} == {
        row for row in found if (row.source, row.event) in in_memory
    }
    assert peer.log._served_rows == len(found)
    return found


def _outbound(stream: Any) -> tuple[Any, ...]:
    return (
        stream.consumer_incarnation,
        stream.number,
        stream.acknowledged,
        stream.confirmed,
        stream.consumer_epoch,
        stream.view_epoch,
        stream.version,
        sorted(stream.fences),
        list(stream.owed.between(1, stream.number)),
    )


def _as_seen(merger: Merger, producer: str) -> set[Subscription | None]:
    """Returns the elements of a view as the producer sees them; their texts may differ."""
    hosted = merger.hosted(producer)
    return {each.projected(producer, hosted) for each in merger.table[producer].texts}
