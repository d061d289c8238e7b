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
from qns.pipeline.spark.calls import calls
from qns.pipeline.spark.queries import Query


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
    groups = {id: _queries(each, fan_outs, exact_merging) for id, each in workloads.items()}
    return Work(asked, [each.described() for each in workloads.values()], groups)


def _queries(workload: RealWorkload, fan_outs: tuple[int, ...], exact_merging: bool) -> list[Query]:
    """The merging of each organisation, and all notifications."""
    label = f"replay with mapping {workload.mapping}"
    many, names = len(workload.hosts), [(workload, name) for name in workload.organisations]
    work = float(many * (many + len(workload.changes)))
    queries = [calls(f"merging, {label}", replay_merge_job, names, work)]
    if exact_merging:
        queries.append(
            calls(f"exact merging, {label}", replay_beyond_job, names, 50.0 * many * many)
        )
    if workload.publications:
        work = float(many * len(workload.changes) + len(workload.publications))
        job = (workload, fan_outs)
        queries.append(calls(f"notifications, {label}", replay_notification_job, [job], work))
    return queries
