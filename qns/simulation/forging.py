"""Forging: a member alters what it forwards for others.

Only seals stop it, so only federations with seals have a forger. Everything that it brings is
refused; the producers send it again, and nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from qns.edl.messages import Entry, Envelope, Item, Notification, Notify, RelayAcknowledgement
from qns.simulation.actions import CHAOS_S, Action

FORGE: Final = "forge"
"""The lie of a forger."""
FORGER_CAPABILITY: Final = 4
"""More than that of others, so that trees have the forger above them."""
FORGING_S: Final = 30.0


def draw_forging(seed: int, lies: list[Action]) -> list[Action]:
    """Draws when a liar forges, from a stream of its own: other lies stay as they are."""
    if not lies:
        return []
    at = Random(f"forger {seed}").uniform(2.0, CHAOS_S - FORGING_S)  # noqa: S311
    fields: dict[str, object] = {"lie": FORGE, "to": lies[0].fields["to"], "times": 1}
    return [Action(at, lies[0].kind, lies[0].org, fields)]


@dataclass(slots=True, eq=False)
class Forging:
    """Alters the requests of one member until a time: the `tamper` of a world."""

    forger: str
    until: float
    chance: Random
    forged: int = field(default=0)
    """How many messages were altered."""

    def alter(self, now: float, sender: str, envelope: Envelope) -> Envelope:
        body = envelope.body
        if sender != self.forger or now > self.until:
            return envelope
        if isinstance(body, Notify):
            return envelope._replace(body=Notify(tuple(map(self._item, body.items))))
        if isinstance(body, RelayAcknowledgement) and body.consumer != self.forger:
            self.forged += 1
            standing = body.standing._replace(last=body.standing.last + self.chance.choice((1, 9)))
            return envelope._replace(body=replace(body, standing=standing))
        return envelope

    def _item(self, item: Item) -> Item:
        if not isinstance(item, Notification) or item.source == self.forger:
            return item
        self.forged += 1
        entry = item.entry
        match self.chance.choice(("content", "place", "number", "fence", "strip", "subtree", "id")):
            case "content":
                for one, other in ((b"north", b"south"), (b"east", b"west")):
                    if one in item.xml:
                        return item._replace(xml=item.xml.replace(one, other))
                return item._replace(xml=item.xml + b" ")
            case "place":
                return item._replace(sequence=item.sequence + 1)
            case "number":
                return item._replace(entry=entry._replace(number=entry.number + 1))
            case "fence":
                return item._replace(entry=entry._replace(epoch=entry.epoch + 1, confirmed=0))
            case "strip":
                return item._replace(seal=b"")
            case "subtree":
                return item._replace(entry=entry._replace(children=(_below(entry),)))
            case _:
                return item._replace(event=f"{item.event}x")


def _below(entry: Entry) -> Entry:
    """Returns an entry that the producer has not made."""
    return entry._replace(number=entry.number + 1, children=())
