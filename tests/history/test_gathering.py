"""Tests that gathering puts no record before its cause, whatever the clocks show."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qns.history.gathering import EventKey, gathered
from qns.history.records import Record


def pub(org: str, id: str, t: float) -> Record:
    return {"t": t, "org": org, "do": "pub", "event": {"id": id}}


def take(org: str, source: str, id: str, t: float, epoch: int = 1) -> Record:
    return {"t": t, "org": org, "do": "take", "source": source, "event": id, "epoch": epoch}


PEERS = "ABC"


@given(
    st.lists(st.tuples(st.sampled_from(PEERS), st.sampled_from(PEERS)), max_size=30),
    st.tuples(*[st.floats(-5, 5) for _ in PEERS]),
)
def test_gathered_history_has_a_causally_possible_order(
    story: list[tuple[str, str]], ahead_s: tuple[float, float, float]
) -> None:
    """In each step of a story one organisation publishes an event and another takes it."""
    clock = dict(zip(PEERS, ahead_s, strict=True))
    histories: dict[str, list[Record]] = {name: [] for name in PEERS}
    published: dict[EventKey, int] = {}
    for nth, (source, consumer) in enumerate(story):
        id = f"e{nth}"
        histories[source].append(pub(source, id, nth + clock[source]))
        histories[consumer].append(take(consumer, source, id, nth + 0.5 + clock[consumer]))
        published[source, id] = 1
    merged = [record for _, record in gathered(histories.values(), published)]
    for name, history in histories.items():
        assert [each for each in merged if each["org"] == name] == history
    seen: set[EventKey] = set()
    for record in merged:
        if record["do"] == "pub":
            seen.add((record["org"], record["event"]["id"]))
        else:
            assert (record["source"], record["event"]) in seen


def test_records_without_causal_order_are_sorted_by_time() -> None:
    histories = [[pub("A", "a", 1.0), pub("A", "b", 3.0)], [pub("B", "c", 2.0)]]
    published = {("A", "a"): 1, ("A", "b"): 1, ("B", "c"): 1}
    assert [t for t, _ in gathered(histories, published)] == [1.0, 2.0, 3.0]


def test_record_does_not_wait_for_a_missing_publication() -> None:
    """A publication is missing if its peer was restored or its history was not given."""
    histories = [[take("B", "A", "lost", 1.0), take("B", "A", "a", 2.0)], [pub("A", "a", 3.0)]]
    times = [record["t"] for _, record in gathered(histories, {("A", "a"): 1})]
    assert times == [1.0, 3.0, 2.0]


def test_histories_that_wait_for_each_other_are_gathered_by_time() -> None:
    histories = [
        [take("A", "B", "b", 1.0), pub("A", "a", 2.0)],
        [take("B", "A", "a", 1.5), pub("B", "b", 2.5)],
    ]
    times = [record["t"] for _, record in gathered(histories, {("A", "a"): 1, ("B", "b"): 1})]
    assert times == [1.0, 1.5, 2.0, 2.5]


def test_event_taken_before_its_producer_forgot_it_does_not_wait_for_the_new_publication() -> None:
    """A restored producer publishes the event again, after it took something of the consumer."""
    histories = [
        [take("A", "B", "b", 5.0), pub("A", "a", 6.0)],
        [
            take("B", "A", "a", 1.0),
            {"t": 2.0, "org": "B", "do": "ntfy", "source": "A", "event": "a"},
            pub("B", "b", 3.0),
        ],
    ]
    merged = gathered(histories, {("A", "a"): 2, ("B", "b"): 1})
    assert [record["t"] for _, record in merged] == [1.0, 2.0, 3.0, 5.0, 6.0]
