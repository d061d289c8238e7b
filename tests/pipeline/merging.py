"""The counts of the merging code without Spark, for any partition of a history."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from qns.pipeline.merging.merge_frame import counted, new_prefilter, setting_of
from qns.pipeline.merging.parts import Counting
from qns.pipeline.merging.rows import limits_of, moments_of_ends, rows_of_block
from qns.pipeline.workload.generator import BLOCK, Generator
from qns.pipeline.workload.scenario import Scenario

Row = dict[str, object]


def merge(scenario: Scenario, organisation: str, cuts: tuple[int, ...] = ()) -> list[Row]:
    """The organisation's rows of SUBSCRIPTIONS, with its cost; its history is cut into parts."""
    own, many = scenario.organisations.index(organisation), scenario.subscriptions
    assert many <= BLOCK, "the parts of longer histories are whole blocks"
    setting, limits = setting_of(scenario), limits_of(scenario.checkpoints)
    generator = Generator(scenario)
    ends = moments_of_ends(generator.victims(organisation, many))
    rows = rows_of_block(generator.block(organisation, 0, many), 1, ends)
    batches: list[pa.RecordBatch] = []
    for first, stop in pairwise((0, *cuts, many)):
        counting = Counting(own, new_prefilter(setting, own, limits), limits)
        batches += counting.passing(rows.taken(np.arange(first, stop)))
        batches.append(counting.counted())
    in_order = pa.Table.from_batches(batches).sort_by("moment")
    (found,) = counted(setting, iter(in_order.to_batches()))
    listed: list[Row] = found.to_pylist()
    return listed
