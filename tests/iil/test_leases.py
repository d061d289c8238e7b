"""Leases end in order, each once, whether the deliveries are in memory or on the disk."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from qns.iil.leases import LONGEST_RUN, Leases
from qns.peer.tables import DeliveryRow

DELIVERIES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.booleans(), st.booleans()), max_size=30
)
"""Each has a subscription, the end of its lease, and whether it is in memory; the last value tells
whether its lease is extended once."""

Key = tuple[str, int]


def row_of(id: str, number: int, end: float) -> DeliveryRow:
    return DeliveryRow(id, number, "P", f"e{number}", end)


def ended(
    leases: Leases, ends: dict[Key, float], extended: set[Key], times: Iterable[int]
) -> list[tuple[float, str, int]]:
    """Ends the leases as the dispatcher does; returns which ended, in order."""
    found: list[tuple[float, str, int]] = []
    for now in times:
        while (run := leases.take(now)) is not None:
            left = []
            for number in range(run.first, run.last + 1):
                key = (run.subscription, number)
                if key in ends and ends[key] <= run.end:
                    found.append((ends[key], *key))
                    if key in extended:
                        extended.discard(key)
                        ends[key] = now + 4
                    else:
                        del ends[key]
                if key in ends:
                    left.append(ends[key])
            if left:
                leases.add_again(run, min(left))
    return found


@given(deliveries=DELIVERIES, step=st.integers(1, 3))
def test_leases_end_in_order_whether_deliveries_are_in_memory_or_on_the_disk(
    deliveries: list[tuple[str, int, bool, bool]], step: int
) -> None:
    results = []
    for all_in_memory in (True, False):
        leases, ends, extended = Leases(), dict[Key, float](), set[Key]()
        numbers = {"a": 0, "b": 0}
        for id, end, is_near, is_extended in deliveries:
            numbers[id] += 1
            key = (id, numbers[id])
            ends[key] = end
            if is_extended:
                extended.add(key)
            leases.add(row_of(*key, end), is_in_memory=all_in_memory or is_near)
        assert leases.next_end() == min(ends.values(), default=float("inf"))
        results.append(ended(leases, ends, extended, range(0, 20, step)))
        assert not ends
        assert len(leases) == 0
    assert results[0] == results[1]


def test_deliveries_on_the_disk_share_entries() -> None:
    leases, count = Leases(), 20 * LONGEST_RUN
    for number in range(1, count + 1):
        leases.add(row_of("s", number, float(number)), is_in_memory=False)
    assert len(leases) == 20
    ends: dict[Key, float] = {("s", number): float(number) for number in range(1, count + 1)}
    found = ended(leases, ends, set(), [count])
    assert found == [(float(number), "s", number) for number in range(1, count + 1)]
