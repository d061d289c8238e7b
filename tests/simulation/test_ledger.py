"""The ledger of the simulator: what the world did to the state of a peer, and when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qns.simulation.ledger import Ledger
from qns.simulation.world import TUNING
from tests.edl.peers import federation
from tests.simulation.test_audit import play


def ledger_of(*names: str) -> Ledger:
    ledger = Ledger(TUNING)
    ledger.document_changed(0.0, federation(*names))
    return ledger


def test_setback_undoes_what_came_after_the_copy() -> None:
    ledger = ledger_of("P")
    ledger.restored(20.0, "P", 10.0)
    assert not ledger.undid("P", 9.0)
    assert ledger.undid("P", 15.0)
    assert not ledger.undid("P", 15.0, until=19.0)
    assert not ledger.undid("P", 21.0)


def test_setback_to_a_later_copy_brings_back_what_an_earlier_one_undid() -> None:
    ledger = ledger_of("P")
    ledger.restored(30.0, "P", 14.0)
    ledger.restored(32.0, "P", 19.0)  # a copy of before the first setback
    assert ledger.undid("P", 16.0, until=31.0)
    assert not ledger.undid("P", 16.0)
    assert ledger.undid("P", 25.0)
    assert ledger.undid("P", 31.0)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 8)), max_size=5, unique_by=lambda x: x[0]),
    st.integers(0, 20),
)
def test_state_after_setbacks_has_what_the_copied_states_had(
    setbacks: list[tuple[int, int]], when: int
) -> None:
    """Compares with states that are copied step by step."""
    ledger, states, state = ledger_of("P"), {0: frozenset[int]()}, frozenset[int]()
    by_time = {2 * at: 2 * since for at, since in setbacks if since < at}
    for time in range(21):  # something is done at odd times, setbacks come at even ones
        if time % 2:
            state = state | {time}
        elif time in by_time:
            state = states[by_time[time]]
            ledger.restored(float(time), "P", float(by_time[time]))
        states[time] = state
    if when % 2:
        assert ledger.undid("P", float(when)) is (when not in state)


def test_publisher_that_learns_late_that_it_left_and_came_back_owes_nothing_of_before() -> None:
    ledger = ledger_of("P")
    ledger.calms.append(5.0)
    ledger.moves["P"] += [(10.0, "leave"), (11.0, "join")]
    assert ledger.may_move_after("P", 12.0)
    ledger.calms.append(20.0)
    assert not ledger.may_move_after("P", 21.0)
    assert not ledger.may_move_after("Q", 12.0)


def test_seeds_with_these_setbacks_keep_every_rule() -> None:
    for seed in (19_006, 19_256):
        assert play(seed).violations == []
