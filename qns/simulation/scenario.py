"""One seed, from the plan to the verdict: play it, heal everything, wait for rest, judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from qns.cbr.oracle import producer_view
from qns.d2q.event_json import EventReader
from qns.errors import Busy, QnsError
from qns.federation.document import Organisation
from qns.federation.document_xml import write_federation
from qns.history.judge import judge
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    InstallDocument,
    Pause,
    Publish,
    Read,
    Renew,
    Request,
    Resume,
    Subscribe,
    Unsubscribe,
)
from qns.simulation.disks import MemoryDisk, SqliteDisk
from qns.simulation.network import Weather
from qns.simulation.node import KillPoint
from qns.simulation.rest import unrest
from qns.simulation.workload import CHAOS_S, Action, Plan
from qns.simulation.world import TUNING, World
from qns.turn import Record

Perform = Callable[[Action], None]

_OWNER = "user"
_POINTS = {
    "now": None,
    "before": KillPoint.BEFORE_COMMIT,
    "after": KillPoint.AFTER_COMMIT,
    "halfway": KillPoint.HALFWAY,
}
_REST_AT_MOST_S = 240.0


@dataclass(slots=True)
class Outcome:
    """How one seed ended."""

    seed: int
    violations: list[str]
    history: list[Record]
    counts: dict[str, int]
    """Messages by kind, faults by kind, events, notifications."""

    @property
    def held(self) -> bool:
        return not self.violations


@dataclass(slots=True, eq=False)
class Scenario:
    plan: Plan
    world: World = field(init=False)
    open_calls: Counter[str] = field(default_factory=Counter)
    """Organisation -> how many requests of its users are not answered yet."""
    former: dict[str, Organisation] = field(default_factory=dict)
    restores: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan = self.plan
        tuning = replace(TUNING, most_owed=plan.most_owed)
        disk = SqliteDisk if plan.sqlite else MemoryDisk
        self.world = World(plan.seed, plan.federation, tuning, disk)
        for name, node in self.world.nodes.items():
            node.clock_ahead_s = plan.clocks[name]
        if plan.newcomer is not None:
            self.former[plan.newcomer.name] = plan.newcomer

    def run(self) -> Outcome:
        world = self.world
        try:
            violations = self._play()
        finally:
            for node in world.nodes.values():
                node.disk.discard()
        verdict = judge(world.history)
        violations += [f"{each.rule}: {each.explain()}" for each in verdict.violations]
        self.counts["lost messages"] = world.network.lost
        self.counts["duplicated messages"] = world.network.duplicated
        self.counts |= {f"{kind} messages": number for kind, number in world.messages.items()}
        for record in world.history:
            if record["do"] in ("pub", "ntfy", "skip", "drop", "rewind"):
                self.counts[record["do"]] = self.counts.get(record["do"], 0) + 1
        return Outcome(self.plan.seed, violations, world.history, self.counts)

    def _play(self) -> list[str]:
        world = self.world
        world.start()
        self._schedule(self.plan.actions)
        world.run_until(CHAOS_S)
        self._heal()
        if world.absent:
            self._lull()
        violations = self._rest()
        if not violations:
            self._schedule(self.plan.calm_actions[: len(self.plan.calm_actions) // 2])
            world.run_for(6.0)
            violations = self._rest()
        if not violations:
            self._schedule(self.plan.calm_actions[len(self.plan.calm_actions) // 2 :])
            world.run_for(6.0)
            violations = self._rest()
        return violations

    def _schedule(self, actions: Sequence[Action]) -> None:
        world = self.world
        for action in actions:
            perform: Perform = getattr(self, "_do_" + action.kind.replace("-", "_"))

            def act(action: Action = action, perform: Perform = perform) -> None:
                if not action.org or action.org in world.nodes or action.kind == "rejoin":
                    perform(action)

            world.at(world.now + action.at, act)

    def _heal(self) -> None:
        self.world.network.heal()
        for node in self.world.nodes.values():
            node.full_until = 0.0
            node.kill_point = None
        self.world.start()
        self._install(next(iter(self.world.federation.organisations)))

    def _lull(self) -> None:
        """All that can be done without those who are gone is done; then they come back."""
        world = self.world
        restless = self._wait(30.0)
        if not restless:
            absent = sorted(world.absent)
            world.history.append({"t": world.now, "do": "lull", "absent": absent})
        world.absent.clear()
        world.start()

    def _rest(self) -> list[str]:
        restless = self._wait(_REST_AT_MOST_S)
        if restless:
            return restless
        self.world.history.append({"t": self.world.now, "do": "calm"})
        return self._wrong_tables()

    def _wait(self, at_most_s: float) -> list[str]:
        """Until nothing is under way; what never comes to rest is a violation."""
        world = self.world
        until = world.now + at_most_s
        while world.now <= until:
            world.run_for(1.0)
            waiting = [name for name, calls in self.open_calls.items() if calls]
            if set(waiting) - world.absent:
                reason = f"a request of a user of {waiting[0]} is not answered"
                continue
            reason = unrest(world) or ""
            if not reason:
                return []
        return [f"Rest: {at_most_s:.0f} s after everything was healed, {reason}."]

    def _wrong_tables(self) -> list[str]:
        """Semantics §6: every External Merge Table holds what recomputing it gives."""
        wrong = []
        document = self.world.federation
        for consumer in document.organisations:
            gateway = self.world.nodes[consumer].gateway
            assert gateway is not None
            subscriptions = [each.subscription for each in gateway.peer.iil.table]
            for producer in document.organisations:
                other = self.world.nodes[producer].gateway
                if producer == consumer or other is None:
                    continue
                hosts = document[producer].hosts
                expected = producer_view(subscriptions, producer, hosts)
                held = {
                    each.projected(producer, hosts)
                    for each in other.peer.producer.table.view(consumer).values()
                }
                if held != expected:
                    wrong.append(
                        f"Merge table: at rest, {producer} holds {len(held)} elements for "
                        f"{consumer}, but its users' subscriptions merge to {len(expected)}."
                    )
        return wrong

    # --- requests, made again until they are answered ---------------------------------------------

    def _call(
        self,
        org: str,
        request: Request,
        then: Callable[[Answer], None] | None = None,
        restores: int | None = None,
    ) -> None:
        now_restores = self.restores.get(org, 0)
        if restores is None:
            restores = now_restores
            self.open_calls[org] += 1
        elif self._is_moot(org, request, restores != now_restores):
            self.open_calls[org] -= 1
            return
        done = [False]

        def reply(answer: object) -> None:
            if done[0] or isinstance(answer, Busy):
                return
            done[0] = True
            self.open_calls[org] -= 1
            if then is not None and not isinstance(answer, QnsError):
                then(answer)  # type: ignore[arg-type]

        def check() -> None:
            if not done[0]:
                done[0] = True
                self._call(org, request, then, restores)

        self.world.ask(org, request, reply)
        self.world.at(self.world.now + 1.0, check)

    def _is_moot(self, org: str, request: Request, restored: bool) -> bool:
        """Whether to give up: the peer has forgotten the first attempt, or it is over by now."""
        if isinstance(request, Subscribe):
            ended = ("usub", org, request.id)
            told = ((r["do"], r.get("org"), r.get("sub")) for r in self.world.history)
            return restored or ended in told
        return restored and not isinstance(request, InstallDocument)

    def _do_subscribe(self, action: Action) -> None:
        fields = action.fields
        lifetime_s = fields.get("lifetime_s", inf)
        assert isinstance(lifetime_s, float)
        self._call(
            action.org,
            Subscribe(
                _OWNER,
                str(fields["text"]),
                id=str(fields["sub"]),
                group=str(fields.get("group", "")),
                lifetime_s=lifetime_s,
            ),
        )

    def _do_unsubscribe(self, action: Action) -> None:
        self._call(action.org, Unsubscribe(_OWNER, str(action.fields["sub"])))

    def _do_pause(self, action: Action) -> None:
        self._call(action.org, Pause(_OWNER, str(action.fields["sub"])))

    def _do_resume(self, action: Action) -> None:
        self._call(action.org, Resume(_OWNER, str(action.fields["sub"])))

    def _do_renew(self, action: Action) -> None:
        self._call(action.org, Renew(_OWNER, str(action.fields["sub"]), 60.0))

    def _do_read(self, action: Action) -> None:
        sub = str(action.fields["sub"])

        def acknowledge(answer: Answer) -> None:
            if isinstance(answer, Deliveries) and answer.deliveries:
                upto = answer.deliveries[-1].number
                self._call(action.org, AcknowledgeDeliveries(_OWNER, sub, upto))

        self._call(action.org, Read(_OWNER, sub), acknowledge)

    def _do_publish(self, action: Action) -> None:
        reader = EventReader(self.world.federation.schema)
        event = reader.from_fields({**action.fields, "source": action.org})
        self._call(action.org, Publish(event))

    # --- what breaks ------------------------------------------------------------------------------

    def _count(self, fault: str) -> None:
        self.counts[fault] = self.counts.get(fault, 0) + 1

    def _do_weather(self, action: Action) -> None:
        self._count("weather changes")
        self.world.network.weather = Weather(**action.fields)  # type: ignore[arg-type]

    def _do_cut(self, action: Action) -> None:
        self._count("partitions")
        for pair in str(action.fields["pairs"]).split():
            self.world.network.cut(*pair.split(">"))

    def _do_mend(self, action: Action) -> None:
        for pair in str(action.fields["pairs"]).split():
            sender, receiver = pair.split(">")
            self.world.network.blocked.discard((sender, receiver))

    def _do_crash(self, action: Action) -> None:
        self._count("crashes")
        world, org = self.world, action.org
        down_s = action.fields["down_s"]
        assert isinstance(down_s, float)
        world.kill(org, _POINTS[str(action.fields["point"])])
        world.at(world.now + down_s, lambda: world.start(org))

    def _do_gone(self, action: Action) -> None:
        if action.org in self.world.federation:
            self._count("publishers gone")
            self.world.absent.add(action.org)
            self.world.kill(action.org)

    def _do_backup(self, action: Action) -> None:
        self.world.back_up(action.org)

    def _do_restore(self, action: Action) -> None:
        world, org = self.world, action.org
        node = world.nodes[org]
        if not node.backups or org not in world.federation:
            return
        self._count("restores")
        down_s = action.fields["down_s"]
        assert isinstance(down_s, float)
        node.die()
        self.restores[org] = self.restores.get(org, 0) + 1
        backup = node.backups[-1]
        world.at(world.now + down_s, lambda: world.put_back(org, backup))

    def _do_disk_full(self, action: Action) -> None:
        self._count("full disks")
        node = self.world.nodes[action.org]
        during_s = action.fields["during_s"]
        assert isinstance(during_s, float)
        node.full_until = self.world.now + during_s
        self.world.at(node.full_until + 0.1, lambda: self.world.start(action.org))

    # --- the federation changes -------------------------------------------------------------------

    def _install(self, *at: str) -> None:
        xml = write_federation(self.world.federation)
        for name in at:
            self._call(name, InstallDocument(xml))

    def _other_than(self, org: str) -> str:
        return next(name for name in self.world.federation.organisations if name != org)

    def _do_host(self, action: Action) -> None:
        world, org = self.world, action.org
        if org in world.federation:
            self._count("federation changes")
            world.federation = world.federation.hosting(org, str(action.fields["hosts"]).split(","))
            self._install(self._other_than(org))

    def _do_leave(self, action: Action) -> None:
        world, org = self.world, action.org
        if org in world.federation and len(world.federation.organisations) > 2:
            self._count("federation changes")
            self.former[org] = world.federation[org]
            world.note(org, "leave", joined=self.former[org].joined)
            world.federation = world.federation.without(org)
            self._install(org, self._other_than(org))

    def _do_rejoin(self, action: Action) -> None:
        world, org = self.world, action.org
        if org in self.former and org not in world.federation:
            self._count("federation changes")
            world.federation = world.federation.with_organisation(self.former[org])
            if org in world.nodes:
                world.note(org, "join", joined=world.federation[org].joined)
                world.nodes[org].backups.clear()
            else:
                world.add(org, self.plan.clocks[org])
                world.start(org)
            self._install(org, self._other_than(org))
