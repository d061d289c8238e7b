"""The demo's chapter on failure: a forwarder dies with a promise; all get everything once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from qns.cli.demo_peers import DemoFailed, PeerProcess
from qns.cli.demo_story import Story
from qns.cli.worked_case import EVENTS

_PRODUCER, _FORWARDER, _BELOW = "CoC", "INAIL", "INPS"

CRASH_EVENTS: Final[tuple[dict[str, Any], ...]] = (
    {**EVENTS[0], "id": "e3", "quality": {"Name.Accuracy": 0.5}},
    {**EVENTS[0], "id": "e4", "quality": {"Name.Accuracy": 0.1}},
)
"""Of interest to both other organisations."""


def play_crash(story: Story, reached: Mapping[str, Iterable[str]]) -> None:
    """`reached`: organisation -> its users whom these events concern."""
    first, second = CRASH_EVENTS
    forwarder, below = story.peers[_FORWARDER], story.peers[_BELOW]
    story.heading(
        f"A forwarder crashes: {_PRODUCER} → {_FORWARDER} → {_BELOW} is the way of an event"
    )

    below.kill()
    story.publish(first)
    with story.waiting(f"{_FORWARDER} takes e3"):
        story.wait_for_delivery("e3", reached[_FORWARDER])
        story.wait_for(f"{_FORWARDER} to promise e3", lambda: _promises(forwarder) > 0)
    _tell(story, f"{_BELOW} is down; {_PRODUCER} publishes e3", reached[_FORWARDER], "e3")
    story.line(f"    {_FORWARDER} promises to bring it to {_BELOW}: the promise is on its disk")

    forwarder.kill()
    story.line(("kill -9 ", "bold red"), f"of {_FORWARDER}, before it could")

    with story.waiting(f"{_BELOW} starts"):
        below.start()
        below.wait_until_ready()
        story.wait_for_delivery("e3", reached[_BELOW])
    _tell(story, f"{_BELOW} is back; {_PRODUCER} sends it directly", reached[_BELOW], "e3")

    story.publish(second)
    with story.waiting("e4 is on its way"):
        story.wait_for_delivery("e4", reached[_BELOW])
    _tell(story, f"{_PRODUCER} publishes e4, around {_FORWARDER}", reached[_BELOW], "e4")

    with story.waiting(f"{_FORWARDER} starts"):
        forwarder.start()
        forwarder.wait_until_ready()
        story.wait_for_delivery("e4", reached[_FORWARDER])
        story.wait_for(f"{_FORWARDER} to keep its promise", lambda: _promises(forwarder) == 0)
    _tell(story, f"{_FORWARDER} is back and gets what it missed", reached[_FORWARDER], "e4")
    if not forwarder.sent("notify"):
        raise DemoFailed(f"{_FORWARDER} forgot its promise")
    story.line(f"    it keeps its promise too: {_BELOW} has e3 already, and nobody gets it twice")


def _promises(peer: PeerProcess) -> int:
    """How many parcels it has in custody."""
    return int(peer.metrics()["qns_custody_parcels"])


def _tell(story: Story, what: str, users: Iterable[str], event: str) -> None:
    story.line((f"{what:<42}", "bold"), f"{event} → ", (", ".join(users), "bold green"))
