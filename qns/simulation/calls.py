"""Calls: requests of users and operators, repeated until they are answered, in the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from qns.errors import Busy, QnsError
from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.requests import Answer, InstallDocument, Request, Subscribe
from qns.simulation.injection import Injection
from qns.simulation.ledger_entries import Call
from qns.simulation.world import World

Then = Callable[[Answer | DeliveriesDropped], None]


@dataclass(slots=True, eq=False)
class Calls:
    world: World
    injection: Injection
    open: Counter[str] = field(default_factory=Counter)
    """Organisation -> how many requests are not answered yet."""

    def call(self, org: str, request: Request, then: Then | None = None) -> None:
        """Asks a peer until it answers; `then` gets the answer, unless it is an error."""
        self.open[org] += 1
        noted = self.world.ledger.ask(self.world.now, org, request)
        self._attempt(org, request, then, noted, self.injection.restores[org])

    def _attempt(
        self, org: str, request: Request, then: Then | None, noted: Call | None, restores: int
    ) -> None:
        world, done = self.world, [False]

        def reply(answer: object) -> None:
            if noted is not None:  # the answer has left the peer, even if the user gave up on it
                world.ledger.grant(world.now, noted, answer)
            if done[0] or isinstance(answer, Busy):
                return
            done[0] = True
            self.open[org] -= 1
            is_answered = isinstance(answer, DeliveriesDropped) or not isinstance(answer, QnsError)
            if then is not None and is_answered:
                then(answer)  # type: ignore[arg-type]

        def check() -> None:
            if done[0]:
                return
            done[0] = True
            if self._is_moot(org, request, restores != self.injection.restores[org]):
                self.open[org] -= 1
            else:
                self._attempt(org, request, then, noted, restores)

        world.ask(org, request, reply)
        world.at(world.now + 1.0, check)

    def _is_moot(self, org: str, request: Request, restored: bool) -> bool:
        """True if a request is not repeated: a restored peer has forgotten the first attempt, or
        the subscription may have ended since."""
        if restored:
            return not isinstance(request, InstallDocument)
        return isinstance(request, Subscribe) and self.world.ledger.may_have_ended(
            (org, request.id), self.world.now
        )
