"""Losses: what a producer has declared that it will not bring, counted apart (semantics §8)."""

from __future__ import annotations

from qns.history.organisation import Organisation
from qns.history.publication import Publication
from qns.history.world import Crossing, World


def is_declared_lost(world: World, consumer: Organisation, publication: Publication) -> bool:
    """Whether a drop was declared, or the consumer has consumed a skip of the event's number."""
    producer = world.organisation(publication.source)
    if (consumer.name, consumer.incarnation, publication.id) in producer.branch.drops:
        return True
    crossings = crossings_of(world, consumer, publication)
    stream = consumer.incarnation, publication.source, publication.joined
    return any(
        skip.first <= crossing.place <= skip.last
        and crossing.event == publication.id
        and crossing.epoch == _epoch_in_force(crossings, crossing.place, skip.epoch)
        for skip in consumer.branch.skips
        if (skip.own_joined, skip.source, skip.joined) == stream
        for crossing in crossings
    )


def crossings_of(world: World, consumer: Organisation, publication: Publication) -> list[Crossing]:
    """Everything in the stream in which the event came, or would have come."""
    link = publication.source, publication.joined, consumer.name, consumer.incarnation
    return world.crossings.get(link, [])


def _epoch_in_force(crossings: list[Crossing], place: int, epoch: int) -> int:
    """The epoch whose use of this number a consumer means that knows the producer's `epoch`."""
    return max(
        (each.epoch for each in crossings if each.place == place and each.epoch <= epoch),
        default=-1,
    )
