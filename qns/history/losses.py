"""Losses: the events that a producer has declared lost for a consumer (semantics §8)."""

from __future__ import annotations

from qns.history.organisation import Organisation
from qns.history.publication import Publication
from qns.history.world import Crossing, World


def is_declared_lost(world: World, consumer: Organisation, publication: Publication) -> bool:
    """True if the producer declared a drop, or the consumer consumed a skip of the event."""
    producer = world.organisation(publication.source)
    if (consumer.name, consumer.last_incarnation, publication.id) in producer.branch.drops:
        return True
    crossings = crossings_of(world, consumer, publication)
    stream = consumer.last_incarnation, publication.source, publication.incarnation
    return any(
        skip.first <= crossing.place <= skip.last
        and crossing.event == publication.id
        and crossing.epoch == _epoch_in_force(crossings, crossing.place, skip.epoch)
        for skip in consumer.branch.skips
        if skip.stream == stream
        for crossing in crossings
    )


def crossings_of(world: World, consumer: Organisation, publication: Publication) -> list[Crossing]:
    """Returns all crossings of the stream from the event's producer to the consumer."""
    link = publication.source, publication.incarnation, consumer.name, consumer.last_incarnation
    return world.crossings.get(link, [])


def _epoch_in_force(crossings: list[Crossing], place: int, epoch: int) -> int:
    """Returns the epoch that last used this number of the stream, up to the given epoch.

    After a restore a producer may use a number again, in a later epoch.
    """
    return max(
        (each.epoch for each in crossings if each.place == place and each.epoch <= epoch),
        default=-1,
    )
