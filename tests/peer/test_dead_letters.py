"""Dead letters: an operator sees, redelivers and drops what a receiver rejected for good."""

from __future__ import annotations

import pytest

from qns.errors import NotAllowed
from qns.iil.requests import DropDeadLetter, RedeliverDeadLetter
from qns.peer.outcomes import IncidentKind
from qns.simulation.world import World
from tests.edl.peers import peer_of, publish, subscribe, world_of


def world_with_letter(*others: str) -> World:
    """Returns a world in which C has rejected event e1 of P for good."""
    world = world_of("P", "C", *others, publications_remembered=1)
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1")
    world.run_for(3.0)
    publish(world, "P", "e2")  # P forgets that e1 was published
    world.run_for(3.0)
    publish(world, "P", "e1", available=5)  # another event under an id that C knows
    world.run_for(60.0)
    return world


def test_status_shows_a_dead_letter_with_its_event_and_reason() -> None:
    world = world_with_letter()
    status = peer_of(world, "P").status
    (letter,) = status.find_dead_letters()
    assert (letter.receiver, letter.source, letter.event) == ("C", "P", "e1")
    assert letter.data_class == "Report"
    assert letter.reason == "P has published another event with id e1"
    assert letter.at < world.now
    assert list(status.find_dead_letters("C")) == [letter]
    assert list(status.find_dead_letters("D")) == []
    assert status.dead_letter(letter.number) == letter
    assert status.content_of(letter)["id"] == "e1"


def test_dropped_dead_letter_is_a_recorded_loss_that_frees_its_event() -> None:
    world = world_with_letter()
    peer = peer_of(world, "P")
    (letter,) = peer.status.find_dead_letters()
    turn, effects = peer.turn([DropDeadLetter(letter.number)], world.now)
    (record,) = (each for each in turn.records if each["do"] == "discard")
    assert record == {"do": "discard", "to": "C", "joined": 1, "source": "P", "event": "e1"}
    (incident,) = effects.outcomes.incidents
    assert incident.kind is IncidentKind.DISCARD
    assert (peer.status.dead_letters, peer.status.events_kept) == (0, 0)


@pytest.mark.parametrize("request_of", [DropDeadLetter, RedeliverDeadLetter])
def test_number_without_a_dead_letter_is_refused_and_changes_nothing(
    request_of: type[DropDeadLetter | RedeliverDeadLetter],
) -> None:
    world = world_with_letter()
    peer = peer_of(world, "P")
    with pytest.raises(NotAllowed, match="there is no dead letter 99"):
        peer.status.dead_letter(99)
    _, effects = peer.turn([request_of(99)], world.now)
    assert isinstance(effects.answers[0], NotAllowed)
    assert "qns peer dead-letters list" in effects.answers[0].remedy
    assert peer.status.dead_letters == 1
