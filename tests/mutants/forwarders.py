"""Bugs of forwarders: custody, adoption and relays."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_F = partial(Mutant, file="qns/edl/forwarder.py")
_C = partial(Mutant, file="qns/edl/custody.py")

FORWARDERS = (
    _F(
        name="adoption-loses-last-child",
        kind="custody and adoption",
        breaks="The last child of a forwarder that does not answer is not adopted.",
        old="        for child in children:\n            incarnation",
        new="        for child in children[:-1]:\n            incarnation",
    ),
    _F(
        name="adoption-never-happens",
        kind="custody and adoption",
        breaks="The subtree of a forwarder that does not answer waits for it.",
        old="        if not children:\n            return\n",
        new="        return\n",
    ),
    _F(
        name="adopted-promise-not-durable",
        kind="custody and adoption",
        breaks="A promise for an adopted child is lost at a restart.",
        old="                self.promise(turn, adopted)",
        new="                self.send(turn, adopted)",
    ),
    _F(
        name="adopted-subtree-stays-in-store",
        kind="custody and adoption",
        breaks="After a restart an adopted subtree is sent with its former parent again.",
        old="        if parcel.custody is not None:\n            self.custody.put(turn, parcel)\n"
        "        for child",
        new="        for child",
    ),
    _F(
        name="silent-peer-not-bypassed",
        kind="custody and adoption",
        breaks="The subtrees of a peer that does not answer are not adopted.",
        old="            self._adopt(turn, parcel)\n            if parcel.custody is None:  # the "
        "stream resends it later",
        new="            if parcel.custody is None:  # the stream resends it later",
    ),
    _F(
        name="unreachable-receiver-keeps-subtree",
        kind="custody and adoption",
        breaks="A subtree below a peer that is known to be unreachable waits for it.",
        old="        if not self.reachability.reachable(receiver):\n            "
        "self._adopt(turn, parcel)\n\n",
        new="\n",
    ),
    _F(
        name="refused-parcel-taken-as-delivered",
        kind="refusals",
        breaks="A parcel that its receiver did not take counts as delivered.",
        old="            if outcome.taken:\n                self.custody.fulfil(turn, parcel)",
        new="            if outcome.taken or not outcome.permanent:\n"
        "                self.custody.fulfil(turn, parcel)",
    ),
    _F(
        name="refused-parcel-not-sent-again",
        kind="refusals",
        breaks="A parcel that its receiver cannot take now is sent again only after a restart.",
        old="                link.put_aside(turn.now, parcel)",
        new="                pass",
    ),
    _F(
        name="repeated-refusal-pauses-the-link",
        kind="refusals",
        breaks="An event that its receiver refuses again keeps back all that the link has to send.",
        old="                is_new |= not parcel.was_refused\n",
        new="                is_new = True\n",
    ),
    _F(
        name="refused-parcel-keeps-subtree",
        kind="refusals",
        breaks="The subtree below a receiver that refuses an event gets nothing.",
        old="            if not outcome.taken:\n                self._adopt(turn, parcel)\n",
        new="",
    ),
    _F(
        name="rejected-parcel-without-dead-letter",
        kind="refusals",
        breaks="A parcel that its receiver rejects for good disappears without a dead letter.",
        old="                self.custody.reject(turn, parcel, outcome.reason)",
        new="                self.custody.fulfil(turn, parcel)",
    ),
    _F(
        name="subtree-dropped-with-leaver",
        kind="organisations that leave",
        breaks="The subtree below a receiver that left is dropped with it.",
        old="            self._adopt(turn, parcel)\n            self.custody.fulfil(turn, parcel)\n"
        "        link.drop_parcels()",
        new="            self.custody.fulfil(turn, parcel)\n        link.drop_parcels()",
    ),
    _F(
        name="custody-for-leaver-kept",
        kind="organisations that leave",
        breaks="Promises for a receiver that left are kept in the store.",
        old="            self._adopt(turn, parcel)\n            self.custody.fulfil(turn, parcel)\n"
        "        link.drop_parcels()",
        new="            self._adopt(turn, parcel)\n        link.drop_parcels()",
    ),
    _F(
        name="remaining-time-never-ends",
        kind="late subscribers",
        breaks="A forwarded event has its whole availability again.",
        old="    remaining_s = max(0.0, logged.expires_at - now)",
        new="    remaining_s = logged.event.available_s",
    ),
    _F(
        name="relay-without-custody",
        kind="relays",
        breaks="A relay accepts an event for another receiver and forgets it.",
        old="        self.promise(turn, parcel)\n        if self.reachability.reachable(receiver):",
        new="        if self.reachability.reachable(receiver):",
    ),
    _F(
        name="relay-does-not-pass-on",
        kind="relays",
        breaks="A relay that does not reach the receiver either keeps the event to itself.",
        old="            self.link(hop).parcels[copy.key] = copy",
        new="            pass",
    ),
    _F(
        name="relayed-skip-dropped",
        kind="relays",
        breaks="A relay drops the skips that it has to pass on.",
        old="            link.skips[skip] = None",
        new="            pass",
    ),
    _F(
        name="relayed-acknowledgement-dropped",
        kind="relays",
        breaks="A relay drops the acknowledgements that it has to pass on.",
        old="            self.link(hop).add_standing(producer, consumer, carried, at)",
        new="            pass",
    ),
    _F(
        name="break-not-reported",
        kind="relays",
        breaks="A relay that loses the way to a receiver tells nobody.",
        old="                self.link(parcel.path[-1]).wants_gossip = True",
        new="                pass",
    ),
    _C(
        name="custody-not-recovered",
        kind="recovery after a crash",
        breaks="A forwarder forgets its promises at a restart.",
        old="        for row in store.rows(CUSTODY):\n            yield self.recover(row)",
        new="        yield from ()",
    ),
    _C(
        name="dead-letters-not-recovered",
        kind="recovery after a crash",
        breaks="A peer forgets its dead letters at a restart.",
        old="            self.recover_letter(letter)",
        new="            pass",
    ),
    _C(
        name="promise-number-reused",
        kind="recovery after a crash",
        breaks="After a restart a promise gets the id of a dead letter.",
        old="        self._number = max(self._number, row.id)\n",
        new="",
    ),
    _C(
        name="fulfilled-promise-stays-in-store",
        kind="recovery after a crash",
        breaks="A promise that was fulfilled is back after a restart.",
        old="            turn.delete(CUSTODY, parcel.custody)\n",
        new="",
    ),
    _C(
        name="dead-letter-not-held",
        kind="refusals",
        breaks="The event of a dead letter is deleted, so it cannot be delivered again.",
        old="        self.log.hold((letter.source, letter.event))\n",
        new="",
    ),
    _C(
        name="dead-letter-never-removed",
        kind="refusals",
        breaks="A dead letter that is delivered again stays in the store.",
        old="        turn.delete(DEAD_LETTERS, number)\n",
        new="",
    ),
    _C(
        name="route-forgets-subtree",
        kind="recovery after a crash",
        breaks="A promise is stored without the subtree below its receiver.",
        old="    below = [_entry_fields(child) for child in children]",
        new="    below = []",
    ),
    Mutant(
        name="relay-never-chosen",
        file="qns/edl/relays.py",
        kind="relays",
        breaks="What is owed to an unreachable consumer waits until the network heals.",
        old="        found = self.routes.hops(stream.consumer, carrying=event)",
        new="        found = []",
    ),
    Mutant(
        name="refusing-relay-kept",
        file="qns/edl/relays.py",
        kind="relays",
        breaks="A relay that refuses events is used for ever.",
        old="            way.hop, way.version, way.trial_until = None, -1, None\n",
        new="",
    ),
    Mutant(
        name="relay-in-a-circle",
        file="qns/edl/routes.py",
        kind="relays",
        breaks="A relay sends an event back to a peer that it has passed.",
        old="        seen = {self.me, target, *carried}",
        new="        seen = {self.me, target}",
    ),
)
