"""Many histories become one: nothing before its cause, whatever the clocks say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qns.history.gathering import EventKey, gathered
from qns.history.records import Record


def pub(org: str, id: str, t: float) -> Record:
    return {"t": t, "org": org, "do": "pub", "event": {"id": id}}


def take(org: str, source: str, id: str, t: float) -> Record:
    return {"t": t, "org": org, "do": "take", "source": source, "event": id}


PEERS = "ABC"


@given(
    st.lists(st.tuples(st.sampled_from(PEERS), st.sampled_from(PEERS)), max_size=30),
    st.tuples(*[st.floats(-5, 5) for _ in PEERS]),
)
def test_any_story_is_told_in_an_order_that_can_have_been(
    story: list[tuple[str, str]], ahead_s: tuple[float, float, float]
) -> None:
    """Each step: one publishes, and another takes it."""
    clock = dict(zip(PEERS, ahead_s, strict=True))
    histories: dict[str, list[Record]] = {name: [] for name in PEERS}
    published: set[EventKey] = set()
    for nth, (source, consumer) in enumerate(story):
        id = f"e{nth}"
        histories[source].append(pub(source, id, nth + clock[source]))
        histories[consumer].append(take(consumer, source, id, nth + 0.5 + clock[consumer]))
        published.add((source, id))
    told = [record for _, record in gathered(histories.values(), published)]
    for name, history in histories.items():
        assert [each for each in told if each["org"] == name] == history
    seen: set[EventKey] = set()
    for record in told:
        if record["do"] == "pub":
            seen.add((record["org"], record["event"]["id"]))
        else:
            assert (record["source"], record["event"]) in seen


def test_clocks_that_agree_decide() -> None:
    histories = [[pub("A", "a", 1.0), pub("A", "b", 3.0)], [pub("B", "c", 2.0)]]
    published = {("A", "a"), ("A", "b"), ("B", "c")}
    assert [t for t, _ in gathered(histories, published)] == [1.0, 2.0, 3.0]


def test_a_publication_that_is_not_there_is_not_waited_for() -> None:
    """That of a restored peer, or of one whose history was not given."""
    histories = [[take("B", "A", "lost", 1.0), take("B", "A", "a", 2.0)], [pub("A", "a", 3.0)]]
    told = [record["t"] for _, record in gathered(histories, {("A", "a")})]
    assert told == [1.0, 3.0, 2.0]


def test_histories_that_wait_for_each_other_are_told_all_the_same() -> None:
    histories = [
        [take("A", "B", "b", 1.0), pub("A", "a", 2.0)],
        [take("B", "A", "a", 1.5), pub("B", "b", 2.5)],
    ]
    told = [record["t"] for _, record in gathered(histories, {("A", "a"), ("B", "b")})]
    assert told == [1.0, 1.5, 2.0, 2.5]
