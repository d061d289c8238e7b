"""Every matching index gives the oracle's answers after any insertions and deletions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from qns.cbr import oracle
from qns.cbr.event import Event
from qns.cbr.index.compiled import CompiledIndex
from qns.cbr.index.dictionary import DictionaryIndex
from qns.cbr.subscription import Subscription
from qns.errors import DuplicateId, NameNotKnown
from tests.strategies import events, subscriptions

INDEXES = [CompiledIndex, DictionaryIndex]


class IndexMachine(RuleBasedStateMachine):
    """Inserts, deletes and matches in any order, on every index at once."""

    @initialize(first=st.lists(subscriptions(), max_size=12))
    def build(self, first: list[Subscription]) -> None:
        self.truth = {f"b{number}": each for number, each in enumerate(first)}
        self.indexes = [make(self.truth) for make in INDEXES]
        self.number = 0

    @rule(subscription=subscriptions())
    def insert(self, subscription: Subscription) -> None:
        self.number += 1
        self.truth[f"s{self.number}"] = subscription
        for index in self.indexes:
            index.insert(f"s{self.number}", subscription)

    @rule(many=st.lists(subscriptions(), max_size=10))
    def insert_many(self, many: list[Subscription]) -> None:
        items = []
        for each in many:
            self.number += 1
            items.append((f"s{self.number}", each))
        self.truth.update(items)
        for index in self.indexes:
            index.insert_all(items)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.truth:
            id = data.draw(st.sampled_from(sorted(self.truth)))
            del self.truth[id]
            for index in self.indexes:
                index.delete(id)

    @rule(event=events())
    def match(self, event: Event) -> None:
        truth = oracle.match(self.truth, event)
        for index in self.indexes:
            assert sorted(index.match(event)) == truth

    @rule(batch=st.lists(events(), max_size=6))
    def match_all(self, batch: list[Event]) -> None:
        truth = [oracle.match(self.truth, event) for event in batch]
        for index in self.indexes:
            assert [sorted(ids) for ids in index.match_all(batch)] == truth

    @invariant()
    def length_equals_the_number_of_subscriptions(self) -> None:
        for index in getattr(self, "indexes", ()):
            assert len(index) == len(self.truth)


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(  # 30 steps on two indexes: a quarter of the examples
    max_examples=max(20, settings.default.max_examples // 4), stateful_step_count=30
)


@given(st.lists(subscriptions(), min_size=1, max_size=40), st.lists(events(), max_size=10))
def test_bulk_built_index_gives_the_oracles_answers(
    wanted: list[Subscription], happened: list[Event]
) -> None:
    truth = {str(number): each for number, each in enumerate(wanted)}
    for make in INDEXES:
        index = make(truth)
        for event in happened:
            assert sorted(index.match(event)) == oracle.match(truth, event)


@pytest.mark.parametrize("make", INDEXES)
def test_duplicate_or_unknown_id_is_rejected_and_nothing_is_inserted(make: type) -> None:
    everything = Subscription(frozenset({"Other"}), None, {}, "Other")
    index = make({"s1": everything})
    with pytest.raises(DuplicateId):
        index.insert_all([("s2", everything), ("s1", everything)])
    with pytest.raises(DuplicateId):
        index.insert_all([("s3", everything), ("s3", everything)])
    with pytest.raises(NameNotKnown):
        index.delete("s2")
    assert len(index) == 1
    assert index.match(Event("e", "Other", "CoC", {})) == ["s1"]
