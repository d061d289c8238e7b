"""Scenario: plays the plan of one seed, heals all faults, waits for rest and judges the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf

from qns.d2q.event_json import EventReader
from qns.federation.document import Organisation
from qns.federation.document_xml import write_federation
from qns.history.judge import judge
from qns.history.verdict import MOST_PER_RULE
from qns.iil.requests import (
    InstallDocument,
    Pause,
    Publish,
    Renew,
    Resume,
    Subscribe,
    Unsubscribe,
)
from qns.peer.lineage import EPOCH_SCATTER
from qns.peer.turn import Record
from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.audit import audit
from qns.simulation.bounds import with_bounds
from qns.simulation.calls import Calls
from qns.simulation.disks import MemoryDisk, SqliteDisk
from qns.simulation.findings import Findings
from qns.simulation.growth import grown
from qns.simulation.injection import Injection
from qns.simulation.lasting import keeping_out, needless_notifications, still_owed, working_pairs
from qns.simulation.lie_bounds import judge_lie_bounds
from qns.simulation.network import LONGEST_DELAY_S
from qns.simulation.readers import OWNER, Readers
from qns.simulation.repeats import repeatable
from qns.simulation.rest import QUIET, REST, judge_tables, unrest
from qns.simulation.signers import draw_signers
from qns.simulation.trusted import among_others, misled
from qns.simulation.twin_rules import judge_twins
from qns.simulation.workload import Plan
from qns.simulation.world import TUNING, World

Perform = Callable[[Action], None]

_REST_AT_MOST_S = 240.0
_LASTING_AT_LEAST_S = 6.0
"""The last events of a lasting partition are published in this time."""
_LASTING_AT_MOST_S = 150.0
_QUIET_S = 30.0
_EXPEL_AFTER_S = 120
_MANY_VIOLATIONS = 10_000
_BEGIN_S = 1_000_000.0
"""What a correct clock shows at the start, so that one that is set back by days is positive."""
_READ_EVERY_S = 10
_BUSY_EVERY_S = 4
_COMPARE_WITHIN_S = 1_000.0
"""Longer than any partition: the judge expects that a rollback never loses an event."""


@dataclass(slots=True)
class ScenarioResult:
    """The result of one seed."""

    seed: int
    violations: list[str]
    history: list[Record]
    counts: dict[str, int]
    """Messages by kind, faults by kind, events, notifications."""
    asked: dict[str, int] = field(default_factory=dict)
    """Rule -> how often it had something to decide."""

    @property
    def held(self) -> bool:
        """True if no rule was broken."""
        return not self.violations


@dataclass(slots=True, eq=False)
class Scenario:
    """A plan and the world in which it is played."""

    plan: Plan
    world: World = field(init=False)
    former: dict[str, Organisation] = field(default_factory=dict)
    """Organisations that may join: former members and the newcomer."""
    counts: dict[str, int] = field(default_factory=dict)
    """The counts of the outcome."""
    injection: Injection = field(init=False)
    calls: Calls = field(init=False)
    readers: Readers = field(init=False)
    findings: Findings = field(default_factory=Findings)
    """What was judged while the world ran."""

    def __post_init__(self) -> None:
        plan = self.plan
        tuning = replace(
            TUNING,
            most_owed=plan.most_owed,
            longest_queue=plan.longest_queue,
            compare_within_s=_COMPARE_WITHIN_S,
        )
        if plan.seed % 2:  # half of the peers keep nearly everything only on the disk
            tuning = replace(tuning, owed_in_memory=2, unread_in_memory=2, events_in_memory=2)
        tuning = with_bounds(tuning, plan.actions)
        disk = SqliteDisk if plan.sqlite else MemoryDisk
        self.world = World(
            plan.seed,
            plan.federation,
            tuning,
            disk,
            plan.seed % 4 == 3,
            EPOCH_SCATTER,
            signers=draw_signers(plan.seed),
        )
        self.world.liars = plan.liars
        for name, node in self.world.nodes.items():
            node.wall_ahead_s = _BEGIN_S + plan.clocks[name]
        self.injection = Injection(self.world, self.counts)
        self.calls = Calls(self.world, self.injection)
        self.readers = Readers(self.calls, plan.grouped, self.findings)
        self.injection.on_put_back = self.readers.continue_after
        if plan.newcomer is not None:
            self.former[plan.newcomer.name] = plan.newcomer

    def run(self) -> ScenarioResult:
        world = self.world
        try:
            violations = self._play()
            judge_lie_bounds(world, self.findings)
            if not violations:
                judge_twins(world, self.findings)
        finally:
            for node in world.nodes.values():
                node.disk.discard()
            for twin in world.twins.values():
                twin.node.disk.discard()
        audited = audit(world, came_to_rest=not violations, has_faults=self.plan.has_faults)
        unjudged = world.liars | world.twins.keys()
        most = _MANY_VIOLATIONS if unjudged else MOST_PER_RULE
        verdict = judge(world.history, most_per_rule=most)
        found = among_others(verdict.violations, unjudged)
        violations += [f"{each.rule}: {each.explain()}" for each in found]
        violations += [each for each in self.findings.violations if each not in violations]
        violations += audited.violations
        asked = {str(rule): n for rule, n in verdict.checks.items()}
        asked |= self.findings.asked | audited.asked
        self.counts |= audited.apart
        if world.signers is not None:
            self.counts["rotations of root keys"] = world.signers.rotations
        self.counts["lost messages"] = world.network.lost
        self.counts["duplicated messages"] = world.network.duplicated
        self.counts |= {f"{kind} messages": number for kind, number in world.messages.items()}
        for record in world.history:
            if record["do"] in ("pub", "ntfy", "skip", "drop", "rewind", "overflow"):
                self.counts[record["do"]] = self.counts.get(record["do"], 0) + 1
        counts, history = self.counts, world.history
        return ScenarioResult(self.plan.seed, violations, history, counts, asked)

    def _play(self) -> list[str]:
        world = self.world
        world.start()
        for name in world.liars:  # it wants every event, so that it is in the trees
            world.ask(name, Subscribe(OWNER, "Report", id="all"))
        self._schedule(self.plan.actions)
        world.run_until(CHAOS_S)
        self._heal()
        violations = self._last() if world.network.severed else []
        self._await_late_actions()
        if world.absent:
            self._lull()
        violations = violations or self._rest()
        if not violations:
            self._schedule(self.plan.calm_actions[: len(self.plan.calm_actions) // 2])
            world.run_for(6.0)
            violations = self._rest()
        if not violations:
            self._schedule(self.plan.calm_actions[len(self.plan.calm_actions) // 2 :])
            world.run_for(6.0)
            self._read_everything()
            violations = self._rest()
        if not violations:
            self._resume_everything()
            self._read_everything()
            violations = self._wait(_REST_AT_MOST_S)
        return violations

    def _schedule(self, actions: Sequence[Action]) -> None:
        world = self.world
        for action in actions:
            perform = self._performer(action.kind)

            def act(action: Action = action, perform: Perform = perform) -> None:
                if not action.org or action.org in world.nodes or action.kind == "rejoin":
                    perform(action)

            world.at(world.now + action.at, act)

    def _performer(self, kind: str) -> Perform:
        kind = kind.replace("-", "_")
        perform: Perform = getattr(self, f"_do_{kind}", None) or getattr(
            self.injection, f"do_{kind}"
        )
        return perform

    def _heal(self) -> None:
        self.world.network.heal()
        for node in self.world.nodes.values():
            node.heal()
        self.world.start()
        self._install(next(iter(self.world.federation.organisations)))

    def _await_late_actions(self) -> None:
        """Runs the world until the last partition of minutes is over, and factories have repeated
        what they published."""
        late = [each for each in self.plan.actions if each.kind in ("split", "reunite", "repeat")]
        if late:
            self.world.run_until(max(self.world.now, late[-1].at + 0.1))
            self.world.network.restore()

    def _last(self) -> list[str]:
        """Waits until all that a way leads to is served, records that, and mends every link."""
        world = self.world
        until = world.now + _LASTING_AT_MOST_S
        world.run_for(_LASTING_AT_LEAST_S)
        pairs = working_pairs(world)
        while still_owed(world, pairs) and world.now < until:
            world.run_for(1.0)
        world.run_for(1.0)
        deceived = misled(world)
        ways = sorted(
            f"{producer}>{consumer}"
            for producer, consumer in pairs
            if not {producer, consumer} & deceived
        )
        world.history.append({"t": world.now, "do": "ways", "ways": ways})
        world.run_until(max(world.now, CHAOS_S + LONGEST_DELAY_S + 5.0))
        # Ends that were restored, or run twice, may disagree about numbers until a hello.
        restored = {*self.injection.restores, *world.liars, *world.twins, *deceived}
        pairs = frozenset(each for each in pairs if not any(name in restored for name in each))
        self.findings.ask(REST, len(pairs))
        violations = still_owed(world, pairs)
        if not violations:
            since = len(world.traffic)
            world.run_for(_QUIET_S)
            self.findings.ask(QUIET, len(pairs))
            violations = needless_notifications(world, pairs, since)
        world.network.restore()
        return violations

    def _lull(self) -> None:
        """Waits until only absent organisations are awaited, records a lull, and starts them."""
        world = self.world
        if not self._wait(30.0):
            absent = sorted(world.absent)
            world.history.append({"t": world.now, "do": "lull", "absent": absent})
        world.absent.clear()
        world.start()

    def _rest(self) -> list[str]:
        violations = self._wait(_REST_AT_MOST_S)
        if violations:
            return violations
        self.world.history.append({"t": self.world.now, "do": "calm"})
        self.world.ledger.calms.append(self.world.now)
        return judge_tables(self.world, self.findings)

    def _wait(self, at_most_s: float) -> list[str]:
        """Runs the world until nothing is under way; returns a violation if that takes too long."""
        world = self.world
        until = world.now + at_most_s
        self.findings.ask(REST)
        for second in count():
            if world.now > until:
                break
            if second % _READ_EVERY_S == 0 and world.tuning.most_events < TUNING.most_events:
                self._resume_everything()  # a full log waits for readers
                self._read_everything()
            if second % _BUSY_EVERY_S == 0:
                for action in self.injection.twin_users.more_publications():
                    self._performer(action.kind)(action)
            world.run_for(1.0)
            waiting = [name for name, calls in self.calls.open.items() if calls]
            if set(waiting) - world.absent:
                reason = f"a request of a user of {waiting[0]} is not answered"
                if second == _EXPEL_AFTER_S:
                    for liar in keeping_out(world, waiting):
                        world.leave(liar)
                        self._install(self._other_than(liar))
                continue
            reason = unrest(world) or ""
            if not reason:
                return []
        return [f"Rest: {at_most_s:.0f} s after everything was healed, {reason}."]

    # --- requests of users ------------------------------------------------------------------------

    def _do_subscribe(self, action: Action) -> None:
        fields = action.fields
        lifetime_s = fields.get("lifetime_s", inf)
        assert isinstance(lifetime_s, float)
        self.calls.call(
            action.org,
            Subscribe(
                OWNER,
                str(fields["text"]),
                id=str(fields["sub"]),
                group=str(fields.get("group", "")),
                lifetime_s=lifetime_s,
            ),
        )

    def _do_unsubscribe(self, action: Action) -> None:
        self.calls.call(action.org, Unsubscribe(OWNER, str(action.fields["sub"])))

    def _do_pause(self, action: Action) -> None:
        self.calls.call(action.org, Pause(OWNER, str(action.fields["sub"])))

    def _do_resume(self, action: Action) -> None:
        self.calls.call(action.org, Resume(OWNER, str(action.fields["sub"])))

    def _do_renew(self, action: Action) -> None:
        self.calls.call(action.org, Renew(OWNER, str(action.fields["sub"]), 60.0))

    def _do_read(self, action: Action) -> None:
        self.readers.read(action.org, str(action.fields["sub"]))

    def _read_everything(self) -> None:
        """Makes every user read, so that a delivery that is missing is found."""
        for org, sub in self.world.ledger.subscriptions:
            if org in self.world.federation:
                self.readers.read(org, sub, everything=True)

    def _resume_everything(self) -> None:
        """Ends every pause, so that users read what was queued meanwhile."""
        for org, sub in list(self.world.ledger.subscriptions):
            if not self.world.ledger.may_have_ended((org, sub), self.world.now):
                self.calls.call(org, Resume(OWNER, sub))

    def _do_publish(self, action: Action) -> None:
        schema = self.world.federation.schema
        if action.fields["class"] in schema.classes:
            event = EventReader(schema).from_fields({**action.fields, "source": action.org})
            self.calls.call(action.org, Publish(event))

    def _do_repeat(self, action: Action) -> None:
        for each in repeatable(self.world, action.org):
            self.injection.count("repeated publications")
            self.calls.call(action.org, each.request)

    # --- the federation changes -------------------------------------------------------------------

    def _install(self, *at: str) -> None:
        xml = write_federation(self.world.federation)
        for name in at:
            self.calls.call(name, InstallDocument(xml))

    def _other_than(self, org: str) -> str:
        return next(name for name in self.world.federation.organisations if name != org)

    def _do_host(self, action: Action) -> None:
        world, org = self.world, action.org
        if org in world.federation:
            self.injection.count("federation changes")
            hosts = str(action.fields["hosts"]).split(",")
            world.change_document(world.federation.hosting(org, hosts))
            self._install(self._other_than(org))

    def _do_grow(self, action: Action) -> None:
        world, org = self.world, action.org
        if org in world.federation:
            self.injection.count("federation changes")
            world.change_document(grown(world.federation, action))
            self._install(self._other_than(org))

    def _do_leave(self, action: Action) -> None:
        world, org = self.world, action.org
        if org in world.federation and len(world.federation.organisations) > 2:
            self.injection.count("federation changes")
            self.former[org] = world.federation[org]
            world.leave(org)
            self._install(org, self._other_than(org))

    def _do_rejoin(self, action: Action) -> None:
        world, org = self.world, action.org
        if org in self.former and org not in world.federation:
            self.injection.count("federation changes")
            world.change_document(world.federation.with_organisation(self.former[org]))
            if org in world.nodes:
                world.join(org)
                for copies in world.nodes[org].copies:
                    copies.clear()
            else:
                world.add(org, _BEGIN_S + self.plan.clocks[org])
                world.start(org)
            others = () if action.fields.get("alone") else (self._other_than(org),)
            self._install(org, *others)
