"""Injection: performs the faults of a plan on a simulated world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from qns.errors import StoreFailed
from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.broken_disks import BrokenDisks, repaired_at
from qns.simulation.findings import Findings
from qns.simulation.lying import Lying
from qns.simulation.network import Weather
from qns.simulation.node import Backup, KillPoint
from qns.simulation.twin_users import TwinUsers
from qns.simulation.world import World

_POINTS = {
    "now": None,
    "before": KillPoint.BEFORE_COMMIT,
    "after": KillPoint.AFTER_COMMIT,
    "halfway": KillPoint.HALFWAY,
}


@dataclass(slots=True, eq=False)
class Injection:
    """Each method `do_<kind>` performs the actions of one kind, if that is still possible."""

    world: World
    counts: dict[str, int]
    """Kind of fault -> how many were injected."""
    findings: Findings = field(default_factory=Findings)
    restores: Counter[str] = field(default_factory=Counter)
    """Organisation -> how often it was restored."""
    lying: Lying = field(init=False)
    twin_users: TwinUsers = field(init=False)
    broken_disks: BrokenDisks = field(init=False)
    on_put_back: Callable[[str], None] = lambda _: None
    """Is called with an organisation whose host was put back and started."""

    def __post_init__(self) -> None:
        self.lying = Lying(self.world)
        self.twin_users = TwinUsers(self.world)
        self.broken_disks = BrokenDisks(self.world, self.findings)
        self.world.on_damage = self._repair

    def count(self, fault: str) -> None:
        self.counts[fault] = self.counts.get(fault, 0) + 1

    def do_weather(self, action: Action) -> None:
        self.count("weather changes")
        self.world.network.weather = Weather(**action.fields)  # type: ignore[arg-type]

    def do_cut(self, action: Action) -> None:
        self.count("partitions")
        for pair in str(action.fields["pairs"]).split():
            self.world.network.cut(*pair.split(">"))

    def do_mend(self, action: Action) -> None:
        for pair in str(action.fields["pairs"]).split():
            self.world.network.mend(*pair.split(">"))

    def do_bounds(self, _: Action) -> None:
        self.count("tiny bounds")  # they are in force from the start

    def do_split(self, action: Action) -> None:
        self.count("partitions of minutes")
        for pair in str(action.fields["pairs"]).split():
            self.world.network.cut(*pair.split(">"))

    def do_reunite(self, action: Action) -> None:
        self.do_mend(action)

    def do_sever(self, action: Action) -> None:
        self.count("lasting partitions")
        for pair in str(action.fields["pairs"]).split():
            self.world.network.sever(*pair.split(">"))

    def do_crash(self, action: Action) -> None:
        self.count("crashes")
        world, org = self.world, action.org
        down_s = action.fields["down_s"]
        assert isinstance(down_s, float)
        world.kill(org, _POINTS[str(action.fields["point"])])
        world.at(world.now + down_s, lambda: world.start(org))

    def do_gone(self, action: Action) -> None:
        if action.org in self.world.federation:
            self.count("publishers gone")
            self.world.absent.add(action.org)
            self.world.kill(action.org)

    def do_lie(self, action: Action) -> None:
        if self.lying.tell(action):
            self.count("lies")

    def do_twin(self, action: Action) -> None:
        if self.world.start_twin(action.org):
            self.count("twins")
            self.world.ledger.twins[action.org] = self.world.now

    def do_twin_publish(self, action: Action) -> None:
        self.twin_users.publish(action)

    def do_twin_subscribe(self, action: Action) -> None:
        self.twin_users.subscribe(action)

    def do_backup(self, action: Action) -> None:
        self.world.back_up(action.org)

    def do_restore(self, action: Action) -> None:
        if self._put_back(action, self.world.nodes[action.org].backups):
            self.count("restores")

    def do_snapshot(self, action: Action) -> None:
        with suppress(StoreFailed):  # the host is off, or its store has failed
            self.world.snapshot(action.org)

    def do_rollback(self, action: Action) -> None:
        if self._put_back(action, self.world.nodes[action.org].snapshots):
            self.count("rollbacks")

    def do_checkpoint(self, action: Action) -> None:
        with suppress(StoreFailed):
            self.world.nodes[action.org].checkpoint(self.world.now)

    def do_lose_log(self, action: Action) -> None:
        if self._put_back(action, self.world.nodes[action.org].checkpoints):
            self.count("lost logs")

    def _put_back(self, action: Action, copies: list[Backup]) -> bool:
        """Puts back the last copy of a member's host; returns False if there is none.

        It is put back before all faults end, since all is calm soon after that.
        """
        world, org = self.world, action.org
        if not copies or org not in world.federation:
            return False
        down_s = action.fields["down_s"]
        assert isinstance(down_s, float)
        world.nodes[org].die()
        self.restores[org] += 1
        copy = copies[-1]

        def put_back() -> None:
            world.put_back(org, copy)
            self.on_put_back(org)

        world.at(min(world.now + down_s, max(world.now, CHAOS_S)), put_back)
        return True

    def do_disk_full(self, action: Action) -> None:
        self.count("full disks")
        node = self.world.nodes[action.org]
        during_s = action.fields["during_s"]
        assert isinstance(during_s, float)
        node.full_until = self.world.now + during_s
        self.world.at(node.full_until + 0.1, lambda: self.world.start(action.org))

    # --- disks ------------------------------------------------------------------------------------

    def do_fail_syncs(self, action: Action) -> None:
        self.count("failing syncs")
        self.broken_disks.fail_syncs(action)

    def do_cut_power(self, action: Action) -> None:
        self.count("power cuts")
        self.broken_disks.cut_power(action)

    def do_rot(self, action: Action) -> None:
        if self.broken_disks.rot(action):
            self.count("changed bits")

    def _repair(self, org: str) -> None:
        """Makes the operator of a host put its store back soon."""
        world, backup = self.world, self.broken_disks.repair(org)
        if backup is None:
            return

        def put_back() -> None:
            if self.broken_disks.put_back(org, backup):
                self.restores[org] += 1
                self.count("restored stores" if backup.copy else "lost stores")
                self.on_put_back(org)

        world.at(repaired_at(world.now), put_back)

    # --- hosts ------------------------------------------------------------------------------------

    def do_slow_disk(self, action: Action) -> None:
        self.count("slow disks")
        self.world.ledger.slow.add(action.org)
        self._for_a_while(action, "commit_s", 0.0)

    def do_slow_peer(self, action: Action) -> None:
        self.count("slow peers")
        self._for_a_while(action, "turn_s", 0.0)

    def do_failing_disk(self, action: Action) -> None:
        self.count("failing disks")
        self._for_a_while(action, "every", 0, "fail_every")
        self._keep_starting(action.org, self.world.now + float(str(action.fields["during_s"])))

    def do_clock(self, action: Action) -> None:
        self.count("clock jumps")
        jump_s = action.fields["jump_s"]
        assert isinstance(jump_s, float)
        self.world.set_clock(action.org, jump_s)

    def do_clock_step(self, action: Action) -> None:
        self.count("clock steps")
        world, org = self.world, action.org
        jump_s, during_s = action.fields["jump_s"], action.fields.get("during_s")
        assert isinstance(jump_s, float)
        world.set_clock(org, jump_s)
        if isinstance(during_s, float):
            world.at(world.now + during_s, lambda: world.set_clock(org, -jump_s))

    def do_interrupt(self, action: Action) -> None:
        self.count("interrupted recoveries")
        world, org = self.world, action.org
        down_s = action.fields["down_s"]
        assert isinstance(down_s, float)
        node = world.nodes[org]
        node.die()
        node.interruptions = [int(each) for each in str(action.fields["steps"]).split()]
        world.at(world.now + down_s, lambda: world.start(org))

    def _for_a_while(self, action: Action, field: str, after: float, name: str = "") -> None:
        """Sets an attribute of a host to a field of the action, and later to another value."""
        node, name = self.world.nodes[action.org], name or field
        during_s = action.fields["during_s"]
        assert isinstance(during_s, float)
        setattr(node, name, action.fields[field])
        self.world.at(self.world.now + during_s, lambda: setattr(node, name, after))

    def _keep_starting(self, org: str, until: float) -> None:
        """Starts the host every second, as the process of a real peer opens its store again."""
        self.world.start(org)
        if self.world.now < until:
            self.world.at(self.world.now + 1.0, lambda: self._keep_starting(org, until))
