"""Twin users: users and Quality Factories that have the address of a twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from qns.d2q.event_json import EventReader
from qns.errors import QnsError
from qns.iil.requests import Publish, Subscribe
from qns.simulation.actions import Action
from qns.simulation.world import World

_OWNER: Final = "twin user"


@dataclass(slots=True, eq=False)
class TwinUsers:
    world: World

    def publish(self, action: Action) -> None:
        schema, org = self.world.federation.schema, action.org
        if org in self.world.twins and action.fields["class"] in schema.classes:
            event = EventReader(schema).from_fields({**action.fields, "source": org})
            self.world.ledger.ask(self.world.now, org, Publish(event))
            self.ask(org, Publish(event))

    def subscribe(self, action: Action) -> None:
        if action.org in self.world.twins:
            text, id = str(action.fields["text"]), str(action.fields["sub"])
            self.ask(action.org, Subscribe(_OWNER, text, id=id))

    def ask(self, org: str, request: Publish | Subscribe) -> None:
        """Hands a request of a user to the twin of a host."""
        world, twin = self.world, self.world.twins[org]

        def reply(answer: object) -> None:
            if not isinstance(answer, QnsError):
                twin.acknowledged.append((world.now, request))

        world.arrive(twin.node, request, reply)

    def more_publications(self) -> Iterator[Action]:
        """Yields a publication at every twin that has not given way, and at its original.

        Only members that exchange events or hellos with both learn that there are two.
        """
        for org, twin in self.world.twins.items():
            if not twin.has_given_way:
                for prefix, kind in (("b", "publish"), ("t", "twin-publish")):
                    id = f"{prefix}{len(self.world.ledger.publications)}-{org}"
                    fields: dict[str, object] = {"id": id, "class": "Report", "available": "INF"}
                    yield Action(0.0, kind, org, fields)
