"""Sealing: the producer's seals go onto what leaves the peer, after the commit and before release.

One signature covers everything that the turns of one commit let out. A seal is not stored: what is
sent again gets a new one, so that it always has a certificate of the document in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qns.edl.messages import (
    Envelope,
    GapPulled,
    Item,
    Notify,
    RelayAcknowledgement,
    Reply,
    Request,
    Skip,
    entry_of,
)
from qns.edl.seals import Sealable, Sealer
from qns.errors import QnsError
from qns.federation.document import Federation
from qns.peer.inputs import Effects

Letter = tuple[Sealable, str]
"""A message, and the organisation that gets it."""


def seal_effects(sealer: Sealer, federation: Federation, all_effects: Sequence[Effects]) -> None:
    """Seals what this organisation says itself; what it forwards has seals already.

    If the signer fails, everything leaves unsealed: the receivers refuse it, and it is sent again.
    """
    me = sealer.me
    letters: list[Letter] = []
    for effects in all_effects:
        for send in effects.sends:
            letters += _letters(me, send.envelope.body, send.to)
        for answer in effects.answers:
            if type(answer) is Envelope:
                letters += _letters(me, answer.body)
    if not letters:
        return
    try:
        sealed = sealer.seal(federation.name, letters)
    except QnsError as error:
        sealer.problem = str(error)
        return
    sealer.problem = ""
    messages = iter(sealed)
    for effects in all_effects:
        for place, send in enumerate(effects.sends):
            body = _with_seals(me, send.envelope.body, messages)
            if body is not send.envelope.body:
                envelope = send.envelope._replace(body=body)
                effects.sends[place] = send._replace(envelope=envelope)
        for place, answer in enumerate(effects.answers):
            if type(answer) is Envelope and type(answer.body) is GapPulled:
                body = _with_seals(me, answer.body, messages)
                effects.answers[place] = answer._replace(body=body)


def _letters(me: str, body: Request | Reply, to: str = "") -> Iterable[Letter]:
    """Yields what has to be sealed; whoever pulls a gap is the receiver of all items."""
    if isinstance(body, Notify | GapPulled):
        for item in body.items:
            if _is_own(me, item):
                yield item, to or entry_of(item).receiver
    elif isinstance(body, RelayAcknowledgement) and body.consumer == me:
        yield body, to


def _is_own(me: str, item: Item) -> bool:
    return item.source == me and (isinstance(item, Skip) or len(item.path) == 1)


def _with_seals(me: str, body: Request | Reply, messages: Iterable[Sealable]) -> Request | Reply:
    """Returns the body with its sealed messages, the next ones of `messages`."""
    rest = iter(messages)
    if isinstance(body, Notify):
        is_forwarded = not any(_is_own(me, item) for item in body.items)
        return body if is_forwarded else Notify(_items(me, body.items, rest))
    if isinstance(body, GapPulled):
        return GapPulled(_items(me, body.items, rest), body.epoch, body.fences)
    if isinstance(body, RelayAcknowledgement) and body.consumer == me:
        acknowledgement = next(rest)
        assert isinstance(acknowledgement, RelayAcknowledgement)
        return acknowledgement
    return body


def _items(me: str, items: tuple[Item, ...], sealed: Iterable[Sealable]) -> tuple[Item, ...]:
    rest = iter(sealed)
    found: list[Item] = []
    for item in items:
        if _is_own(me, item):
            own = next(rest)
            assert not isinstance(own, RelayAcknowledgement)
            item = own
        found.append(item)
    return tuple(found)
