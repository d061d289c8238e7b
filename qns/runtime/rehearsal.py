"""Rehearsal: two peers in memory exchange messages once before the real peer listens.

Libraries are imported, the matching index is compiled and schemas are built at their first use.
Without the rehearsal, the first callers of the peer would wait a second for this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qns.cbr.event import Event
from qns.cbr.index import MatchingIndex
from qns.edl.requests import Send
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import write_federation
from qns.iil.requests import Publish, PullDeliveries, Subscribe
from qns.peer.gateway import Gateway
from qns.peer.inputs import Answered, Effects, Input, Output, Received
from qns.peer.recovery import Settings
from qns.peer.tuning import Tuning
from qns.soap.endpoint import Endpoint
from qns.soap.local_client import read_local, write_local
from qns.soap.peer_client import read_reply, write_call
from qns.soap.shapes import Port
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore

_CONSUMER: Final = "A"
_PRODUCER: Final = "B"
_MOST_MESSAGES: Final = 100
_HEADERS: Final = {"Content-Type": "text/xml; charset=utf-8"}


def rehearse(federation: Federation, endpoint: Endpoint) -> int:
    """Runs the rehearsal and returns the number of deliveries, which is one if all works."""
    schema = federation.schema
    path = next(iter(schema.classes))
    organisations = {
        name: Organisation(name, frozenset((path,))) for name in (_CONSUMER, _PRODUCER)
    }
    trial = replace(federation.unsigned(), organisations=organisations, version=1)
    document = write_federation(trial)
    stage = _Stage(endpoint, document)
    subscription = Subscribe("rehearsal", f"only {path}", id="1")
    read = PullDeliveries("rehearsal", "1")
    stage.ask(_CONSUMER, subscription)
    stage.ask(_PRODUCER, Publish(Event("1", path, _PRODUCER, {})))
    for request in (subscription, read):
        endpoint.decode(Port.LOCAL, _HEADERS, write_local(request)[0])
    call = endpoint.decode(Port.LOCAL, _HEADERS, write_local(read)[0])
    output = stage.ask(_CONSUMER, read)
    assert output is not None
    reply = endpoint.reply(call, output)
    answer = read_local(read, reply.status, reply.body)
    return len(getattr(answer, "deliveries", ()))


class _Stage:
    def __init__(self, endpoint: Endpoint, document: bytes) -> None:
        self._endpoint = endpoint
        self._gateways = {
            name: Gateway.open(
                Settings(name, Tuning(), MatchingIndex),
                MemoryStore(),
                MemoryLineage(),
                document=document,
                nonce="rehearsal",
                now=0.0,
            )
            for name in (_CONSUMER, _PRODUCER)
        }
        for name, gateway in self._gateways.items():
            self._send_all(name, gateway.first)

    def ask(self, name: str, input: Input) -> Output:
        effects = self._gateways[name].run([input], 0.0)
        self._send_all(name, effects)
        return effects.answers[0]

    def _send_all(self, name: str, effects: Effects) -> None:
        """Sends the requests of a peer to the other one, as bytes, until there are none."""
        under_way = [(name, send) for send in effects.sends]
        for _ in range(_MOST_MESSAGES):
            if not under_way:
                return
            sender, send = under_way.pop(0)
            answer = self._call(send, under_way)
            more = self._gateways[sender].run([answer], 0.0)
            under_way += [(sender, each) for each in more.sends]

    def _call(self, send: Send, under_way: list[tuple[str, Send]]) -> Answered:
        body, _ = write_call(send.envelope)
        call = self._endpoint.decode(Port.PEER, _HEADERS, body)
        assert isinstance(call.input, Received)
        effects = self._gateways[send.to].run([call.input], 0.0)
        under_way += [(send.to, each) for each in effects.sends]
        output = effects.answers[0]
        assert output is not None
        reply = self._endpoint.reply(call, output)
        return Answered.of(send.number, read_reply(send.envelope, reply.status, reply.body))
