"""Queue rows: the same rows in the same order, however many of them are in memory."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.iil.queue_rows import QueueRows
from qns.peer.row_view import RowView
from qns.peer.tables import DELIVERIES, DeliveryRow
from qns.peer.turn import Transaction
from qns.store.memory import MemoryStore

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 6)),
        st.tuples(st.sampled_from(["remove", "replace"]), st.integers(1, 20)),
        st.tuples(st.just("acknowledge"), st.integers(0, 20)),
        st.tuples(st.sampled_from(["first", "commit", "recover"]), st.just(0)),
    ),
    max_size=25,
)


def row_of(number: int, lease_until: float = inf) -> DeliveryRow:
    return DeliveryRow("s", number, "P", f"e{number % 7}", lease_until)


class Queue:
    """Rows with a limit, in a store whose last turns are not committed yet."""

    def __init__(self, most_in_memory: float) -> None:
        self.most_in_memory = most_in_memory
        self.store = MemoryStore()
        other = Transaction()
        other.put(DELIVERIES, DeliveryRow("t", 1, "P", "e1", inf))
        other.put(DELIVERIES, DeliveryRow("r", 9, "P", "e1", inf))
        self.store.commit(other)
        self.begin()

    def begin(self) -> None:
        """Begins with what the store has, as after a start."""
        self.view = RowView(self.store)
        self.rows = QueueRows(DELIVERIES, "s", self.view, self.most_in_memory)
        for row in self.store.rows(DELIVERIES):
            if row.subscription == "s":
                self.rows.add(row)
        self.transactions: list[Transaction] = []
        self.turn()

    def turn(self) -> None:
        self.transactions.append(Transaction())
        self.view.begin(self.transactions[-1])

    def commit(self) -> None:
        for each in self.transactions:
            self.store.commit(each)
        self.view.committed(len(self.transactions))
        self.transactions.clear()
        self.turn()

    def put(self, row: DeliveryRow) -> None:
        self.transactions[-1].put(DELIVERIES, row)

    def remove(self, row: DeliveryRow) -> None:
        self.rows.remove(row)
        self.transactions[-1].delete(DELIVERIES, "s", row.number)


@given(actions=ACTIONS, most_in_memory=st.sampled_from([0, 1, 2, 3, 100, inf]))
def test_queue_has_the_same_rows_however_many_are_in_memory(
    actions: list[tuple[str, int]], most_in_memory: float
) -> None:
    queue, expected, count = Queue(most_in_memory), dict[int, DeliveryRow](), 0
    for action, number in actions:
        queue.turn()
        match action:
            case "add":
                for _ in range(number):
                    count += 1
                    expected[count] = row_of(count)
                    queue.put(expected[count])
                    queue.rows.add(expected[count])
            case "remove":
                row = queue.rows.get(number)
                assert row == expected.pop(number, None)
                if row is not None:
                    queue.remove(row)
            case "replace" if number in expected:
                expected[number] = row_of(number, 5.0)
                queue.put(expected[number])
                queue.rows.replace(expected[number])
            case "acknowledge":
                found = []
                for row in queue.rows.upto(number):
                    queue.remove(row)
                    found.append(row)
                assert found == [expected.pop(each) for each in sorted(expected) if each <= number]
            case "first":
                assert queue.rows.first() == next(iter(expected.values()), None)
            case "commit":
                queue.commit()
            case "recover":
                queue.commit()
                queue.begin()
        rows = list(expected.values())
        assert len(queue.rows) == len(rows)
        assert queue.rows.in_memory <= max(most_in_memory, 1)
        for after in (0, 1, number):
            assert list(queue.rows.after(after, 2)) == [row for row in rows if row.number > after]
        for event in ("e1", "e2"):
            expected_row = next((row for row in rows if row.event == event), None)
            assert queue.rows.find("P", event) == expected_row
            assert queue.rows.find("Q", event) is None


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_rows_can_be_removed_while_they_are_read(number: int) -> None:
    queue = Queue(2)
    for each in range(1, 6):
        queue.put(row_of(each))
        queue.rows.add(row_of(each))
    for row in queue.rows.after(0, number):
        queue.remove(row)
    assert len(queue.rows) == 0
    assert queue.rows.first() is None
