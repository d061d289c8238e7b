"""Membership: the newest word wins, whatever way it came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qns.edl.membership import Membership
from qns.edl.messages import ReachabilityRow

NAMES = ["A", "B", "C"]


def rows() -> st.SearchStrategy[list[ReachabilityRow]]:
    """Each organisation says one thing under one number."""
    row = st.builds(
        lambda name, epoch, version: ReachabilityRow(
            name, epoch, version, tuple(n for n in NAMES if (ord(n) + 3 * epoch + version) % 2)
        ),
        st.sampled_from(NAMES),
        st.integers(1, 3),
        st.integers(0, 3),
    )
    return st.lists(row, max_size=12)


@given(rows(), st.randoms(use_true_random=False))
def test_the_newest_word_wins_in_any_order(said: list[ReachabilityRow], chance: object) -> None:
    newest: dict[str, ReachabilityRow] = {}
    for row in said:
        known = newest.get(row.organisation)
        if known is None or known[1:3] < row[1:3]:
            newest[row.organisation] = row
    shuffled = list(said)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    membership = Membership("Me", 1)
    for row in shuffled:
        membership.heard([row], NAMES)
    mine = ReachabilityRow("Me", 1, 0, ())
    assert membership.rows() == [newest[name] for name in sorted(newest)] + [mine]


@given(rows(), rows())
def test_what_was_told_once_is_not_told_again_unless_it_was_missed(
    first: list[ReachabilityRow], second: list[ReachabilityRow]
) -> None:
    membership, other = Membership("Me", 1), Membership("Other", 1)
    for said in (first, second):
        membership.heard(said, NAMES)
        other.heard(membership.news_for("Other"), [*NAMES, "Me"])
        assert membership.news_for("Other") == ()
    heard = [row for row in other.rows() if row.organisation != "Other"]
    assert heard == membership.rows()
    membership.missed("Other")
    assert sorted(membership.news_for("Other")) == membership.rows()


def test_nobody_is_told_by_others_whom_it_reaches_itself() -> None:
    membership = Membership("Me", 1)
    membership.heard([ReachabilityRow("Me", 9, 9, ("A",))], NAMES)
    assert membership.reachable("A")
    assert membership.saw("A", reachable=False)
    assert not membership.saw("A", reachable=False)
    assert not membership.reachable("A")
    assert membership.saw("A", reachable=True)
    assert membership.reachable("A")
