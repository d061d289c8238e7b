"""Bugs of rights: who is sent the events of which class, and of classes that nobody hosts."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_P = partial(Mutant, file="qns/edl/producer.py", kind="rights")
_R = partial(Mutant, file="qns/edl/readers.py", kind="rights")
_F = partial(Mutant, file="qns/edl/forwarder.py", kind="rights")

RIGHTS = (
    _P(
        name="matches-not-restricted",
        breaks="An event goes to every organisation whose view matches, whatever its rights.",
        old="        interested = self.readers.among(wanting, logged.event.data_class)",
        new="        interested = wanting",
    ),
    _P(
        name="uncompared-views-in-every-tree",
        breaks="A consumer whose view is not known is in the tree of events that it may not read.",
        old="        interested = self.readers.among(wanting, logged.event.data_class)",
        new="        interested = self.readers.among(wanting, logged.event.data_class)\n"
        "        interested += self.uncompared.at(turn.now).difference(interested)",
    ),
    _P(
        name="backlog-not-restricted",
        breaks="A late subscriber gets the available events that it may not read.",
        old="            if not is_sent and may_read and wanted.match(logged.event):",
        new="            if not is_sent and wanted.match(logged.event):",
    ),
    _P(
        name="right-without-backlog",
        breaks="A right that is given brings only later events.",
        old="        if self.readers.gained:\n            self._send_gained(turn)",
        new="        if False:\n            self._send_gained(turn)",
    ),
    _P(
        name="dead-letter-not-restricted",
        breaks="An operator sends a dead letter to an organisation that may not read it any more.",
        old="        if not self.readers.may_read(consumer, logged.event.data_class):",
        new="        if False:",
    ),
    _P(
        name="parcels-not-recalled",
        breaks="What waits on the links is sent after the right to read it has ended.",
        old="            self.forwarder.recall_own()\n            self.resending",
        new="            self.resending",
    ),
    _R(
        name="lost-right-ignored-when-resending",
        breaks="What is owed is sent again after the right to read it has ended.",
        old="            if not self.may_read(stream.consumer, data_class):",
        new="            if False:",
    ),
    _R(
        name="relay-reads-what-it-may-not",
        breaks="A relay gets the later events of a stream, also those that it may not read.",
        old="            elif hop and not self.may_read(hop, data_class):",
        new="            elif False:",
    ),
    Mutant(
        name="relay-chosen-without-right",
        file="qns/edl/routes.py",
        kind="rights",
        breaks="Peers that may not read an event are chosen to relay it.",
        old="                and self.may_carry(name, carrying)\n",
        new="",
    ),
    _F(
        name="second-relay-without-right",
        breaks="A relay passes an event on through one that may not read it.",
        old="        for hop in self.routes.hops(receiver, parcel.path, carrying=content)[:1]:",
        new="        for hop in self.routes.hops(receiver, parcel.path)[:1]:",
    ),
    _F(
        name="relayed-copy-sent-after-the-right",
        breaks="A copy for a relay is sent after the relay has lost the right to read it.",
        old="                is_relayed and not self.routes.may_carry(link.other, logged.event)",
        new="                False",
    ),
    Mutant(
        name="older-view-accepted",
        file="qns/edl/layer.py",
        kind="rights",
        breaks="A view of an older document replaces the one that new rights have widened.",
        old="        if isinstance(body, ChangeSub) and envelope.document < ",
        new="        if False and envelope.document < ",
    ),
    Mutant(
        name="view-not-restricted",
        file="qns/federation/schema_mapper.py",
        kind="rights",
        breaks="A consumer asks for classes that it may not read.",
        old="        return {name: classes & self.readable(except_for, name) for name, classes in "
        "hosts.items()}",
        new="        return hosts",
    ),
    Mutant(
        name="widened-view-stays-stable",
        file="qns/edl/merger.py",
        kind="rights",
        breaks="Subscriptions are stable before the producer knows of a new right.",
        old="            gains = has_rights and name in gaining",
        new="            gains = False",
    ),
    Mutant(
        name="group-members-not-readers",
        file="qns/federation/rights.py",
        kind="rights",
        breaks="A rule for a group grants nothing to its members.",
        old="{EVERYONE, name, *self._called.get(name, ())}",
        new="{EVERYONE, name}",
    ),
    Mutant(
        name="foreign-class-delivered",
        file="qns/edl/intake.py",
        kind="rights",
        breaks="An event of a class that its source never hosted is delivered.",
        old="            if self.consumer.is_foreign(item.source, item.producer_incarnation, "
        "event.data_class):",
        new="            if False:",
    ),
    Mutant(
        name="foreign-class-on-the-fast-path",
        file="qns/edl/intake.py",
        kind="rights",
        breaks="The fast path delivers an event of a class that its source never hosted.",
        old="            if consumer.is_foreign(source, incarnation, event.data_class):",
        new="            if False:",
    ),
    Mutant(
        name="former-classes-forgotten",
        file="qns/federation/document.py",
        kind="rights",
        breaks="Events that a producer still owes are rejected when it hosts their class no more.",
        old="hosted=(old.hosts | old.hosted) - hosts)",
        new="hosted=frozenset())",
    ),
)
