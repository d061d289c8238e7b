"""Samples: the workload of a generated scenario as files, as examples for replay and matching."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from qns.pipeline.notifications.notification_job import check_publications
from qns.pipeline.replay.workload_files import (
    Change,
    Publication,
    write_changes,
    write_publications,
)
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario

NAMES: Final = ("SUBS.parquet", "EVENTS.parquet")


def write_sample(scenario: Scenario, publications: int, folder: Path) -> tuple[Path, Path]:
    """Writes SUBS.parquet and EVENTS.parquet; every event comes after all subscriptions."""
    check_publications((publications,))
    subs, events = (folder / name for name in NAMES)
    write_changes(subs, sample_changes(scenario), scenario.schema)
    first = 3 * scenario.subscriptions
    published = (
        Publication(first + number, event)
        for number, event in enumerate(Generator(scenario).events(publications))
    )
    write_publications(events, published, scenario.schema)
    return subs, events


def sample_changes(scenario: Scenario) -> Iterator[Change]:
    """The changes of one organisation after the other; `at` interleaves them."""
    generator = Generator(scenario)
    for name in scenario.organisations:
        operations = generator.operations(name, scenario.subscriptions)
        for arrived, id, subscription in operations:
            yield Change(2 * arrived + (subscription is None), name, id, subscription)
