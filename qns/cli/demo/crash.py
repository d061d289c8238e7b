"""Crash: the demo's chapter in which a forwarder is killed with an event in custody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from qns.cli.demo.peers import DemoFailed, PeerProcess
from qns.cli.demo.scenario import EVENTS
from qns.cli.demo.story import Story

_PRODUCER, _FORWARDER, _BELOW = "CoC", "INAIL", "INPS"

CRASH_EVENTS: Final[tuple[dict[str, Any], ...]] = (
    {**EVENTS[0], "id": "e3", "quality": {"Name.Accuracy": 0.5}},
    {**EVENTS[0], "id": "e4", "quality": {"Name.Accuracy": 0.1}},
)
"""Events that concern both other organisations."""


def play_crash(story: Story, reached: Mapping[str, Iterable[str]]) -> None:
    """Plays the chapter. `reached` is organisation -> its users that the events concern."""
    first, second = CRASH_EVENTS
    forwarder, below = story.peers[_FORWARDER], story.peers[_BELOW]
    story.heading(f"A forwarder crashes: events go {_PRODUCER} → {_FORWARDER} → {_BELOW}")

    below.kill()
    story.publish(first)
    with story.waiting(f"{_FORWARDER} takes e3"):
        story.wait_for_delivery("e3", reached[_FORWARDER])
        story.wait_for(f"{_FORWARDER} to take custody of e3", lambda: _in_custody(forwarder) > 0)
    _show(story, f"{_BELOW} is down; {_PRODUCER} publishes e3", reached[_FORWARDER], "e3")
    story.line(f"    {_FORWARDER} takes custody of e3 for {_BELOW}; that is on its disk")

    forwarder.kill()
    story.line(("kill -9 ", "bold red"), f"of {_FORWARDER}, before it has sent e3 to {_BELOW}")

    with story.waiting(f"{_BELOW} starts"):
        below.start()
        below.wait_until_ready()
        story.wait_for_delivery("e3", reached[_BELOW])
    _show(story, f"{_BELOW} is back; {_PRODUCER} sends it directly", reached[_BELOW], "e3")

    story.publish(second)
    with story.waiting("e4 is on its way"):
        story.wait_for_delivery("e4", reached[_BELOW])
    _show(story, f"{_PRODUCER} publishes e4, around {_FORWARDER}", reached[_BELOW], "e4")

    with story.waiting(f"{_FORWARDER} starts"):
        forwarder.start()
        forwarder.wait_until_ready()
        story.wait_for_delivery("e4", reached[_FORWARDER])
        story.wait_for(f"{_FORWARDER} to end its custody", lambda: _in_custody(forwarder) == 0)
    _show(story, f"{_FORWARDER} is back and gets what it missed", reached[_FORWARDER], "e4")
    if not forwarder.sent("notify"):
        raise DemoFailed(f"{_FORWARDER} did not send the event in its custody")
    story.line(f"    it also sends e3 to {_BELOW}, which recognises the duplicate")


def _in_custody(peer: PeerProcess) -> int:
    """Returns the number of parcels in a peer's custody."""
    return int(peer.metrics()["qns_custody_parcels"])


def _show(story: Story, what: str, users: Iterable[str], event: str) -> None:
    story.line((f"{what:<42}", "bold"), f"{event} → ", (", ".join(users), "bold green"))
