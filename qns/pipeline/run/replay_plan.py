"""Replay plan: the work of `qns savings --from`.

The history is computed with its own mapping and with others, to compare their savings.
"""

from __future__ import annotations

from collections.abc import Sequence

from qns.pipeline.notifications.notification_job import check_fan_outs
from qns.pipeline.replay.real_workload import RealWorkload
from qns.pipeline.replay.replay_job import (
    replay_beyond_job,
    replay_merge_job,
    replay_notification_job,
)
from qns.pipeline.run.work import Work
from qns.pipeline.spark.tasks import Task


def replay_work(
    workload: RealWorkload,
    mappings: Sequence[str] = (),
    fan_outs: tuple[int, ...] = (),
    exact_merging: bool = False,
) -> Work:
    """The work for the workload as it was read, and with each of these mappings (`hosts_in`)."""
    check_fan_outs(fan_outs)
    workloads = {workload.id: workload}
    for mapping in mappings:
        other = workload.mapped(mapping)
        workloads.setdefault(other.id, other)
    asked = {
        "replayed": workload.digest,
        "mappings": [each.mapping for each in workloads.values()],
        "fan_outs": list(fan_outs),
        "exact_merging": exact_merging,
        "scenarios": list(workloads),
    }
    groups = {id: _tasks(each, fan_outs, exact_merging) for id, each in workloads.items()}
    return Work(asked, [each.described() for each in workloads.values()], groups)


def _tasks(workload: RealWorkload, fan_outs: tuple[int, ...], exact_merging: bool) -> list[Task]:
    """One task for the merging of each organisation, and one for all notifications."""
    label = f"replay with mapping {workload.mapping}"
    many = len(workload.hosts)
    tasks = [
        Task(replay_merge_job, (workload, name), f"{name}, {label}", float(many * (1 + arrivals)))
        for name, arrivals in ((name, workload.arrivals[name]) for name in workload.organisations)
    ]
    if exact_merging:
        tasks += [
            Task(
                replay_beyond_job, (workload, name), f"{name}, exact merging, {label}", 50.0 * many
            )
            for name in workload.organisations
        ]
    if workload.publications:
        work = float(many * len(workload.changes) + len(workload.publications))
        job = (workload, fan_outs)
        tasks.append(Task(replay_notification_job, job, f"notifications, {label}", work))
    return tasks
