"""Reachability: the newest report of each organisation wins, whichever way it came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qns.edl.messages import ReachabilityRow
from qns.edl.reachability import Reachability

NAMES = ["A", "B", "C"]


def rows() -> st.SearchStrategy[list[ReachabilityRow]]:
    """Draws reports; equal organisation, epoch and version always have equal content."""
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
def test_newest_report_of_an_organisation_wins_in_any_order_of_arrival(
    reports: list[ReachabilityRow], chance: object
) -> None:
    newest: dict[str, ReachabilityRow] = {}
    for row in reports:
        before = newest.get(row.organisation)
        if before is None or before[1:3] < row[1:3]:
            newest[row.organisation] = row
    shuffled = list(reports)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    reachability = Reachability("Me", 1)
    for row in shuffled:
        reachability.update("X", [row], NAMES)
    mine = ReachabilityRow("Me", 1, 0, ())
    assert reachability.rows() == [newest[name] for name in sorted(newest)] + [mine]


@given(rows(), rows())
def test_rows_are_sent_once_and_again_only_after_a_possible_loss(
    first: list[ReachabilityRow], second: list[ReachabilityRow]
) -> None:
    reachability, other = Reachability("Me", 1), Reachability("Other", 1)
    for reports in (first, second):
        reachability.update("X", reports, NAMES)
        other.update("Me", reachability.news_for("Other"), [*NAMES, "Me"])
        assert reachability.news_for("Other") == ()
    received = [row for row in other.rows() if row.organisation != "Other"]
    assert received == reachability.rows()
    reachability.forget_sent("Other")
    assert sorted(reachability.news_for("Other")) == reachability.rows()


def test_rows_in_a_reply_are_sent_again_because_the_reply_may_be_lost() -> None:
    reachability = Reachability("Me", 1)
    reachability.observe("A", reachable=False)
    news = reachability.news_for("Other", is_reply=True)
    assert news == (ReachabilityRow("Me", 1, 1, ("A",)),)
    assert reachability.news_for("Other", is_reply=True) == news
    assert reachability.news_for("Other") == news
    assert reachability.news_for("Other", is_reply=True) == ()


def test_reports_of_others_do_not_change_whom_this_peer_reaches() -> None:
    reachability = Reachability("Me", 1)
    reachability.update("X", [ReachabilityRow("Me", 9, 9, ("A",))], NAMES)
    assert reachability.reachable("A")
    assert reachability.observe("A", reachable=False)
    assert not reachability.observe("A", reachable=False)
    assert not reachability.reachable("A")
    assert reachability.observe("A", reachable=True)
    assert reachability.reachable("A")


def test_report_through_another_peer_counts_when_its_organisation_becomes_unreachable() -> None:
    reachability = Reachability("Me", 1)
    own = ReachabilityRow("A", 1, 1, ("B",))
    later = ReachabilityRow("A", 1, 2, ("C",))
    reachability.update("A", [own], NAMES)
    reachability.update("B", [later], NAMES)
    assert own in reachability.rows(), "A can be reached, so only its own report counts"
    reachability.observe("A", reachable=False)
    assert later in reachability.rows()
    reachability.observe("A", reachable=True)
    assert own in reachability.rows()
