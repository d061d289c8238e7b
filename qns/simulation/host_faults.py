"""Faults of hosts: slow disks and programs, wrong clocks, failing I/O, interrupted recoveries.

Each kind has draws of its own, so that the rest of a plan does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Final

from qns.simulation.actions import CHAOS_S, Action

RECOVERY_STEPS: Final = 5
"""The places in a recovery at which a host can die: see `qns/simulation/recovery.py`."""


def draw_host_faults(seed: int, names: list[str], faults: Iterable[str]) -> list[Action]:
    """Draws the faults of hosts that were chosen."""
    found = []
    for fault, draw in _DRAWS.items():
        if fault in faults:
            found += draw(Random(f"{fault} {seed}"), names)  # noqa: S311
    return found


def draw_repeats(actions: Iterable[Action]) -> list[Action]:
    """Draws factories that publish events again after their peers were put back.

    They do so when the faults are over, so that no consumer starts again before it gets the event.
    """
    setbacks = [
        each.org for each in actions if each.kind in ("restore", "rollback", "lose-log", "rot")
    ]
    return [Action(CHAOS_S + 6.0, "repeat", org) for org in dict.fromkeys(setbacks)]


def with_certain_availability(actions: Iterable[Action]) -> list[Action]:
    """Returns the actions with events that are available always or never.

    Availability runs on the producer's clock from the turn that publishes (semantics §8). The judge
    reads another clock, and the time of the commit, so it could not say how long an event was
    available if that clock jumps or commits take seconds.
    """
    found = list(actions)
    if any(each.kind in ("clock", "clock-step", "slow-disk", "fail-syncs") for each in found):
        for at, each in enumerate(found):
            available = each.fields.get("available")
            if each.kind == "publish" and available not in (0, "INF"):
                certain = "INF" if available == 60 else 0
                found[at] = replace(each, fields={**each.fields, "available": certain})
    return found


def _time(chance: Random) -> float:
    return chance.uniform(1.0, CHAOS_S * 0.95)


def _slow_disks(chance: Random, names: list[str]) -> list[Action]:
    return [
        Action(
            _time(chance),
            "slow-disk",
            chance.choice(names),
            {"commit_s": chance.choice((0.3, 1.5, 5.0)), "during_s": chance.choice((3.0, 12.0))},
        )
        for _ in range(chance.choice((0, 1, 2, 3)))
    ]


def _slow_peers(chance: Random, names: list[str]) -> list[Action]:
    return [
        Action(
            _time(chance),
            "slow-peer",
            chance.choice(names),
            {"turn_s": chance.choice((0.5, 1.5, 4.0)), "during_s": chance.choice((3.0, 12.0))},
        )
        for _ in range(chance.choice((0, 1, 2)))
    ]


def _clocks(chance: Random, names: list[str]) -> list[Action]:
    return [
        Action(
            _time(chance),
            "clock",
            chance.choice(names),
            {"jump_s": round(chance.choice((-1.0, 1.0)) * chance.choice((0.5, 5.0, 60.0)), 3)},
        )
        for _ in range(chance.choice((0, 1, 2, 4)))
    ]


def _clock_steps(chance: Random, names: list[str]) -> list[Action]:
    """Draws clocks that are wrong by a day or an hour, most of them for some seconds only."""
    found = []
    for _ in range(chance.choice((0, 1, 2))):
        jump_s = chance.choice((86_400.0, 86_400.0, 3_600.0, -86_400.0))
        fields: dict[str, object] = {"jump_s": jump_s}
        if chance.random() < 0.7:
            fields["during_s"] = chance.choice((0.5, 3.0, 10.0))
        found.append(Action(_time(chance), "clock-step", chance.choice(names), fields))
    return found


def _interrupted(chance: Random, names: list[str]) -> list[Action]:
    """Draws crashes after which the recovery is interrupted too, up to three times."""
    found = []
    for _ in range(chance.choice((0, 1, 2))):
        steps = [str(chance.randrange(RECOVERY_STEPS)) for _ in range(chance.choice((1, 1, 2, 3)))]
        fields: dict[str, object] = {"steps": " ".join(steps), "down_s": chance.choice((0.2, 2.0))}
        found.append(Action(_time(chance), "interrupt", chance.choice(names), fields))
    return found


def _restored_together(chance: Random, names: list[str]) -> list[Action]:
    """Draws the loss of a data centre: several hosts are restored at once."""
    if chance.random() > 0.3:
        return []
    restored = chance.uniform(15.0, CHAOS_S * 0.95)
    found = []
    for name in chance.sample(names, min(len(names), chance.choice((2, 2, 3, 5)))):
        found += [
            Action(restored - chance.uniform(0.5, 12.0), "backup", name),
            Action(restored, "restore", name, {"down_s": chance.choice((0.1, 1.0))}),
        ]
    return found


def _snapshots(chance: Random, names: list[str]) -> list[Action]:
    """Draws whole hosts that go back to a snapshot: neither store nor lineage shows it."""
    found = []
    for _ in range(chance.choice((0, 0, 1, 2))):
        name, back = chance.choice(names), chance.uniform(10.0, CHAOS_S * 0.95)
        taken = back - chance.choice((0.5, 3.0, 9.0))
        down = {"down_s": chance.choice((0.1, 1.0, 4.0))}
        found += [Action(taken, "snapshot", name), Action(back, "rollback", name, dict(down))]
    return found


def _lost_logs(chance: Random, names: list[str]) -> list[Action]:
    """Draws hosts that lose the write-ahead log of their store, and with it all commits since the
    last checkpoint; some of them had started just before the checkpoint."""
    found = []
    for _ in range(chance.choice((0, 0, 1, 2))):
        name, lost = chance.choice(names), chance.uniform(10.0, CHAOS_S * 0.95)
        checkpoint = lost - chance.choice((0.5, 3.0, 9.0))
        if chance.random() < 0.5:
            fields: dict[str, object] = {"point": "now", "down_s": 0.2}
            found.append(Action(checkpoint - 0.25, "crash", name, fields))
        found += [
            Action(checkpoint, "checkpoint", name),
            Action(lost, "lose-log", name, {"down_s": chance.choice((0.1, 1.0, 4.0))}),
        ]
    return found


def _failing_disks(chance: Random, names: list[str]) -> list[Action]:
    return [
        Action(
            _time(chance),
            "failing-disk",
            chance.choice(names),
            {"every": chance.choice((2, 3, 7, 20)), "during_s": chance.choice((2.0, 10.0))},
        )
        for _ in range(chance.choice((0, 0, 1, 2)))
    ]


_DRAWS: Final[dict[str, Callable[[Random, list[str]], list[Action]]]] = {
    "slow-disk": _slow_disks,
    "slow-peer": _slow_peers,
    "clock": _clocks,
    "clock-step": _clock_steps,
    "recovery": _interrupted,
    "restores": _restored_together,
    "failing-disk": _failing_disks,
    "snapshot": _snapshots,
    "lose-log": _lost_logs,
}
HOST_FAULTS: Final = tuple(_DRAWS)
