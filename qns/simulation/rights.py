"""Rights in simulations: documents with rights and their changes, and the rule about who is sent
what.

No organisation is sent an event of a class that it may not read: neither in a notification, also if
it only passes the event on, nor in the answer to a pulled gap. The document of the sender counts;
for what forwarders bring, also those with which the producer has sent the event.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from random import Random
from typing import Final

from qns.edl.messages import Notification
from qns.federation.document import Federation
from qns.federation.rights import EVERYONE, ReadRule
from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.findings import Findings
from qns.simulation.ledger_entries import Key
from qns.simulation.sent import Sent
from qns.simulation.users import CLASSES
from qns.simulation.world import World

RULE: Final = "Rights"
GROUP: Final = "some"
"""The group of the documents; rules name it as they name organisations."""


def draw_rights(seed: int, names: list[str]) -> list[Action]:
    """Draws changes of rights in half of the seeds; the one at time 0 is in the first document.

    It has draws of its own, so that the rest of a plan does not depend on it.
    """
    if Random(f"has rights {seed}").random() < 0.5:  # noqa: S311
        return []
    chance = Random(f"rights {seed}")  # noqa: S311
    times = [chance.uniform(1.0, CHAOS_S * 0.95) for _ in range(chance.choice((1, 2, 3)))]
    if chance.random() < 0.7:
        times.append(0.0)
    return [
        Action(at, "rights", chance.choice(names), {"rules": _draw(chance, names)})
        for at in sorted(times)
    ]


def _draw(chance: Random, names: list[str]) -> str:
    """Draws rules, each as class, reader and source; `open` stands for no rights."""
    if chance.random() < 0.1:
        return "open"
    drawn = [("Report!", EVERYONE, EVERYONE)] if chance.random() < 0.9 else []
    for path in CLASSES:
        for _ in range(chance.choice((0, 1, 1, 2))):
            reader = chance.choice((EVERYONE, GROUP, *names))
            source = chance.choice((EVERYONE, EVERYONE, GROUP, *names))
            drawn.append((f"{path}{chance.choice(('', '', '!'))}", reader, source))
    return " ".join(f"{path}>{reader}<{source}" for path, reader, source in drawn)


def with_group(seed: int, federation: Federation) -> Federation:
    """Returns the same version with a group of about half of the organisations."""
    chance = Random(f"group {seed}")  # noqa: S311
    members = frozenset(name for name in federation.organisations if chance.random() < 0.5)
    return replace(federation, groups={GROUP: members})


def rules_of(federation: Federation, action: Action) -> frozenset[ReadRule] | None:
    """Returns the rules of an action, without those that name former members."""
    text, found = str(action.fields["rules"]), set[ReadRule]()
    if text == "open":
        return None
    known = {EVERYONE, *federation.organisations, *federation.groups}
    for each in text.split():
        path, _, names = each.partition(">")
        reader, _, source = names.partition("<")
        if {reader, source} <= known:
            found.add(ReadRule(path.rstrip("!"), reader, source, path.endswith("!")))
    return frozenset(found)


def judge_rights(world: World, findings: Findings, unjudged: Collection[str]) -> None:
    """Judges every notification that was sent by an organisation that is judged."""
    ledger = world.ledger
    if not ledger.documents.have_rights:
        return
    versions: defaultdict[Key, set[int]] = defaultdict(set)
    for sent in world.sent:
        if sent.sender in unjudged:
            continue
        for item in sent.items:
            if isinstance(item, Notification) and item.source not in unjudged:
                _judge(world, findings, sent, item, versions[item.source, item.event])


def _judge(
    world: World, findings: Findings, sent: Sent, item: Notification, versions: set[int]
) -> None:
    publication = world.ledger.publications.get((item.source, item.event))
    if publication is None:
        return
    readers = {sent.to}
    if sent.sender == item.source:
        versions.add(sent.document)
        readers.update(item.entry.receivers())
        counted = {sent.document}
    else:
        counted = versions | {sent.document}
    data_class = str(publication.fields["class"])
    for reader in sorted(readers):
        findings.judge(
            RULE,
            any(
                world.ledger.documents.may_read(version, reader, item.source, data_class)
                for version in counted
            ),
            f"{sent.sender} sent {sent.to} event {item.event} of {item.source} at {sent.t:.3f} s "
            f"for {reader}, which may not read {data_class} by version {sent.document}.",
        )
