"""Lying: the messages of a member that lies and is who it says it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.language import parse_subscription
from qns.d2q.subscription_xml import write_subscription
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Entry,
    Envelope,
    Fence,
    Gossip,
    Hello,
    Notification,
    Notify,
    OfferDocument,
    ReachabilityRow,
    Request,
    Standing,
)
from qns.federation.document_xml import write_federation
from qns.peer.inputs import Received
from qns.simulation.actions import Action
from qns.simulation.forging import FORGE, FORGING_S, Forging
from qns.simulation.world import World

_AHEAD: Final = 5
_FAR: Final = 2**52
_SILENT_S: Final = 5.0
_LIE_LASTS_S: Final = 1.0
"""How long the turns of a peer are measured after a lie."""


@dataclass(slots=True, eq=False)
class Lying:
    """Tells the lies of a plan. A lie that is not possible any more is left out."""

    world: World
    _told: int = 0

    def tell(self, action: Action) -> bool:
        """Sends the messages of one action; returns False if nothing was sent."""
        world, liar, to = self.world, action.org, str(action.fields["to"])
        names = world.federation
        gateway = world.nodes[liar].gateway
        if gateway is None or liar not in names or to not in names:
            return False
        tell = _TELL[str(action.fields["lie"])]
        fields = {**action.fields, "number": int(action.at * 1_000)}
        for nth in range(int(str(action.fields["times"]))):
            at = world.now + nth * 0.4
            world.at(at, lambda: self._tell(tell, liar, to, fields))
        return True

    def _tell(self, tell: _Tell, liar: str, to: str, fields: dict[str, Any]) -> None:
        if {liar, to} <= self.world.federation.organisations.keys():
            tell(self, liar, to, fields)

    # --- lies about this peer and the one that is called ------------------------------------------

    def _fences(self, liar: str, to: str, fields: dict[str, Any]) -> None:
        """A hello with many fences, at a time with more than a stream may have."""
        number = 1_100 if fields["large"] else 900
        fences = tuple(Fence(n + 1, 3 * n) for n in range(1, number))
        standing = self._standing(liar, to, fences=fences)
        epoch, joined = number + self._next(), self._incarnation(liar)
        hello = Hello(joined, epoch, 4 * number, fences, 0, 0, "", standing, 0, "")
        self._send(liar, to, hello)

    def _epochs(self, liar: str, to: str, fields: dict[str, Any]) -> None:
        """The receiver has forgotten an epoch that it never began."""
        ahead = _FAR if fields["large"] else _AHEAD
        self._send(liar, to, Acknowledge(self._standing(liar, to, ahead=ahead)))

    def _surprises(self, liar: str, to: str, _: dict[str, Any]) -> None:
        """The receiver began its epoch, and somebody else a later one."""
        self._send(liar, to, Acknowledge(self._standing(liar, to)))
        self._send(liar, to, Acknowledge(self._standing(liar, to, ahead=_AHEAD)))

    def _incarnations(self, liar: str, to: str, _: dict[str, Any]) -> None:
        """Early events of former and future memberships of the liar."""
        told = self._next()
        items = tuple(
            self._event(liar, self._entry(to, 2 * number), f"x{told}-{number}")._replace(
                producer_incarnation=incarnation
            )
            for incarnation in range(1, 20)
            for number in (1, 2)
        )
        self._send(liar, to, Notify(items))

    def _two_contents(self, liar: str, to: str, fields: dict[str, Any]) -> None:
        """One id has two contents; a forwarder gets the second one for a receiver of the first."""
        third, told = str(fields["third"]), self._next()
        if third not in self.world.federation:
            return
        event = f"y{told}"
        first = self._event(liar, self._entry(third, 10_000 + told), event)
        self._send(liar, third, Notify((first,)))
        entry = self._entry(to, 10_000 + told)._replace(
            children=(self._entry(third, 20_000 + told),)
        )
        self._send(liar, to, Notify((self._event(liar, entry, event, region="south"),)))

    def _silence(self, liar: str, *_: object) -> None:
        """The liar promises to forward events, and does not."""
        self.world.silent_until[liar] = self.world.now + _SILENT_S

    def _forge(self, liar: str, *_: object) -> None:
        """The liar alters what it forwards."""
        world = self.world
        forging = Forging(liar, world.now + FORGING_S, Random(f"{world.seed} forges"))  # noqa: S311
        world.tamper = lambda sender, _to, envelope: forging.alter(world.now, sender, envelope)

    # --- lies about others ------------------------------------------------------------------------

    def _reachability(self, liar: str, to: str, fields: dict[str, Any]) -> None:
        """Reports in the name of all others: nobody reaches anybody."""
        others = [name for name in self.world.federation.organisations if name != liar]
        number = 2**53 - 1 if fields["large"] else self._next()
        rows = tuple(
            ReachabilityRow(name, number, number, tuple(x for x in others if x != name))
            for name in others
        )
        self._send(liar, to, Gossip(), rows)

    def _document(self, liar: str, to: str, fields: dict[str, Any]) -> None:
        """A document of a version far ahead, which some get and of which the others only hear."""
        if fields["large"]:
            document = replace(self.world.federation, version=_FAR)
            self._send(liar, to, OfferDocument(write_federation(document)))
        else:
            self._send(liar, to, Gossip(), document=_FAR)

    # --- views ------------------------------------------------------------------------------------

    def _patterns(self, liar: str, to: str, fields: dict[str, Any]) -> None:
        """A view of patterns whose comparison takes long."""
        number = 24 if fields["large"] else 8
        texts = []
        for nth in range(number):
            terms = [f'Region contains "{_fragment(nth + 7 * each)}"' for each in range(12)]
            texts.append(f"Report from {to} where {' and '.join(terms)}")
        self._change_view(liar, to, texts, fields["number"])

    def _elements(self, liar: str, to: str, fields: dict[str, Any]) -> None:
        """A view of very many elements; all large ones are the same."""
        number = 2_200 if fields["large"] else 300
        name = "large" if fields["large"] else fields["number"]
        region = f'Report from {to} where Region = "{name}'
        texts = [f'{region}-{each}"' for each in range(number)]
        self._change_view(liar, to, texts, fields["number"])

    def _change_view(self, liar: str, to: str, texts: list[str], version: int) -> None:
        """Sends a whole view; the peer reads it in slices, until it is sent once more."""
        schema, digest = self.world.federation.schema, Digest()
        elements = [
            write_subscription(parse_subscription(each, schema), schema).decode() for each in texts
        ]
        for each in elements:
            digest.add(each)
        self._send(
            liar,
            to,
            ChangeSub(
                self._incarnation(to),
                self._incarnation(liar),
                self._epoch(liar),
                None,
                version,
                tuple(elements),
                (),
                str(digest),
            ),
        )

    # --- what lies are made of --------------------------------------------------------------------

    def _incarnation(self, name: str) -> int:
        return self.world.federation[name].incarnation

    def _epoch(self, name: str) -> int:
        gateway = self.world.nodes[name].gateway
        return 1 if gateway is None else gateway.status.epoch

    def _standing(
        self, liar: str, to: str, ahead: int = 0, fences: tuple[Fence, ...] = ()
    ) -> Standing:
        """Returns a standing of the liar in the stream of another one, whose epoch it knows."""
        return Standing(
            self._incarnation(to),
            self._incarnation(liar),
            self._epoch(liar),
            self._epoch(to) + ahead,
            0,
            fences,
        )

    def _entry(self, to: str, number: int) -> Entry:
        return Entry(to, self._incarnation(to), 1, number, 0)

    def _event(self, liar: str, entry: Entry, id: str, region: str = "north") -> Notification:
        schema = self.world.federation.schema
        fields = {"id": id, "class": "Report", "source": liar, "data": {"Region": region}}
        xml = write_event(EventReader(schema).from_fields(fields), schema)
        joined = self._incarnation(liar)
        return Notification(liar, joined, 1, entry.number, id, xml, 0.0, entry, (liar,))

    def _next(self) -> int:
        self._told += 1
        return self._told

    def _send(
        self,
        liar: str,
        to: str,
        body: Request,
        rows: tuple[ReachabilityRow, ...] = (),
        document: int | None = None,
    ) -> None:
        version = self.world.federation.version if document is None else document
        self._carry(liar, to, Envelope(liar, version, rows, body))

    def _carry(self, liar: str, to: str, envelope: Envelope) -> None:
        """Carries a message that the peer of its sender has not sent; the answer is ignored."""
        for delay in self.world.network.arrivals(liar, to, is_request=True):
            self.world.at(self.world.now + delay, lambda: self._arrive(to, envelope))

    def _arrive(self, to: str, envelope: Envelope) -> None:
        node = self.world.nodes[to]
        if node.is_up:
            node.lied_to_until = self.world.now + _LIE_LASTS_S
            self.world.arrive(node, Received(envelope), None)


def _fragment(number: int) -> str:
    """Returns a text of two letters that begins as others end."""
    return f"{number % 8:03b}{number // 8 % 8:03b}{number % 5:03b}".translate({48: "a", 49: "b"})


_Tell = Callable[[Lying, str, str, dict[str, Any]], None]
_TELL: Final[dict[str, _Tell]] = {
    "fences": Lying._fences,
    "epochs": Lying._epochs,
    "surprises": Lying._surprises,
    "incarnations": Lying._incarnations,
    "reachability": Lying._reachability,
    "two-contents": Lying._two_contents,
    "patterns": Lying._patterns,
    "elements": Lying._elements,
    "document": Lying._document,
    "silence": Lying._silence,
    FORGE: Lying._forge,
}
