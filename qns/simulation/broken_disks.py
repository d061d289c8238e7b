"""Broken disks: performs the faults of disks of real files, and the repairs of operators.

A host with a damaged store serves nothing until its operator has put the newest backup back, or has
started it with an empty store if there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from qns.federation.document_xml import write_federation
from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.findings import Findings
from qns.simulation.node import Backup
from qns.simulation.world import World
from qns.store.losing_disk import EMPTY, LosingDisk

DAMAGE: Final = "Damage"
RULES: Final = (DAMAGE,)
_REPAIRED_AFTER_S: Final = 2.0


@dataclass(slots=True, eq=False)
class BrokenDisks:
    """Performs these faults; the operator's part too."""

    world: World
    findings: Findings = field(default_factory=Findings)
    damaged: set[str] = field(default_factory=set)
    """Organisations whose operator is about to repair the store."""

    def fail_syncs(self, action: Action) -> None:
        fields, until_cut = action.fields, action.fields.get("operations_until_cut", -1)
        times = fields["times"]
        assert isinstance(times, int)
        assert isinstance(until_cut, int)
        self.world.ledger.slow.add(action.org)  # records of a failed commit may come later
        self._disk(action.org).fail_syncs(
            times, is_kept=bool(fields["kept"]), operations_until_cut=until_cut
        )

    def cut_power(self, action: Action) -> None:
        world, org = self.world, action.org
        world.nodes[org].die()
        self._disk(org).cut_power()
        world.at(world.now + float(str(action.fields["down_s"])), lambda: world.start(org))

    def rot(self, action: Action) -> bool:
        """Changes bits; returns False if there is no store in which any could change."""
        world, org, fields = self.world, action.org, action.fields
        down_s = fields.get("down_s")
        if down_s is not None:
            world.nodes[org].die()
            world.at(world.now + float(str(down_s)), lambda: world.start(org))
        bits, pages = fields["bits"], fields["pages"]
        assert isinstance(bits, int)
        assert isinstance(pages, int)
        if fields.get("in_log"):
            return self._disk(org).change_bit_of_log()
        return all(self._disk(org).change_bits(bits) for _ in range(pages))

    def check_everything(self) -> None:
        """Makes every host find what is damaged, before all is calm."""
        for node in list(self.world.nodes.values()):
            disk = node.disk
            if isinstance(disk, LosingDisk) and node.is_up:
                self.world.look_after(node, disk.check)
                if node.is_up and disk.is_changed:
                    pages = disk.overlooked()
                    self.findings.judge(
                        DAMAGE,
                        not pages,
                        f"{node.name} runs on a store with changed bits in its pages {pages}.",
                    )

    def repair(self, org: str) -> Backup | None:
        """Returns what the operator puts back, unless that is about to happen already."""
        node = self.world.nodes[org]
        self.findings.judge(
            DAMAGE,
            self._disk(org).is_changed,
            f"{org} reports that its store is damaged, but no bit has changed.",
        )
        if org in self.damaged:
            return None
        self.damaged.add(org)
        return node.backups[-1] if node.backups else Backup(0.0, EMPTY)

    def put_back(self, org: str, backup: Backup) -> bool:
        """Repairs the store, unless something else has repaired it meanwhile."""
        world, node = self.world, self.world.nodes[org]
        self.damaged.discard(org)
        if node.is_up or not self._disk(org).is_changed:
            return False
        if backup.copy == EMPTY:
            node.document = write_federation(world.federation)
        world.put_back(org, backup)
        return True

    def _disk(self, org: str) -> LosingDisk:
        disk = self.world.nodes[org].disk
        assert isinstance(disk, LosingDisk)
        return disk


def repaired_at(now: float) -> float:
    """Returns when the operator repairs a store: before all is calm."""
    return min(now + _REPAIRED_AFTER_S, max(now, CHAOS_S))
