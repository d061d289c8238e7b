"""Views that are installed in slices are in force as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from qns.cbr.event import Event
from qns.cbr.index import DictionaryIndex, MatchingIndex
from qns.cbr.subscription import Subscription
from qns.d2q.event_json import EventReader
from qns.d2q.normal_form import in_grown_schema
from qns.d2q.schema import Schema
from qns.d2q.shipped import WEATHER
from qns.d2q.subscription_xml import read_subscription, write_subscription
from qns.edl.external_matcher import ExternalMatcher
from qns.edl.external_merge_table import ExternalMergeTable
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import ChangeSub
from qns.edl.view_reader import PAUSE_S
from qns.errors import Busy
from qns.iil.interpreter import interpret
from qns.peer.turn import Turn


def element(text: str) -> str:
    return write_subscription(interpret(text, WEATHER), WEATHER).decode()


GROWN = Schema(
    WEATHER.name,
    {
        **{
            path: {prop.name: prop.domain.name for prop in WEATHER.properties[path]}
            for path in WEATHER.classes
        },
        "Report/Wind/New": {},
    },
    dict(WEATHER.labels),
)
ELEMENTS = [
    element(text)
    for text in (
        "Report",
        "Report/Wind",
        "Report/Temperature",
        "Report/Wind where Speed > 3",
        "Report/Wind where Speed > 20",
        'Report where Station = "s1"',
    )
]
CONSUMERS = ["C", "D"]
SOME = st.lists(st.sampled_from(ELEMENTS), unique=True).map(tuple)


def events(schema: Schema) -> list[Event]:
    reader = EventReader(schema)
    found = []
    for data_class in schema.classes:
        for data in ({}, {"Station": "s1"}, {"Speed": 10}, {"Speed": 30}):
            if "Speed" not in data or "Wind" in data_class:
                fields = {"id": "e", "class": data_class, "source": "P", "data": data}
                found.append(reader.from_fields(fields))
    return found


class Views(RuleBasedStateMachine):
    """Compares a table that works in slices of one element with what is in force."""

    index: type = DictionaryIndex

    def __init__(self) -> None:
        super().__init__()
        self.schema = WEATHER
        self.events = events(WEATHER)
        self.matcher = ExternalMatcher(self.index())
        self.table = ExternalMergeTable(WEATHER, self.matcher, slice_characters=1)
        self.in_force: dict[str, dict[str, Subscription]] = {name: {} for name in CONSUMERS}
        self.now = 0.0

    @rule(
        consumer=st.sampled_from(CONSUMERS),
        whole=st.booleans(),
        added=SOME,
        removed=SOME,
        is_right=st.integers(0, 4).map(bool),
        patience=st.integers(0, 8),
    )
    def change(
        self,
        consumer: str,
        whole: bool,
        added: tuple[str, ...],
        removed: tuple[str, ...],
        is_right: bool,
        patience: int,
    ) -> None:
        before = self.in_force[consumer]
        after = set(added) if whole else (before.keys() - set(removed)) | set(added)
        digest = str(Digest(after if is_right else [*after, "x"]))
        change = ChangeSub(1, 1, 1, None if whole else 1, 2, added, removed, digest)
        for _ in range(patience + 1):
            try:
                fresh = self.table.apply(self._turn(), consumer, change)
            except Busy:
                assert self.table.has_work
                self.table.go_on(self._turn())
                continue
            if fresh is not None:
                assert is_right
                self.in_force[consumer] = {
                    text: read_subscription(text, self.schema) for text in after
                }
            return

    @rule()
    def go_on(self) -> None:
        self.table.go_on(self._turn())

    @rule(consumer=st.sampled_from(CONSUMERS))
    def forget(self, consumer: str) -> None:
        self.table.forget(Turn(0.0), consumer)
        self.in_force[consumer] = {}

    @rule()
    def grow(self) -> None:
        self.schema = GROWN
        self.events = events(GROWN)
        self.table.apply_schema(GROWN)
        for elements in self.in_force.values():
            for text, subscription in elements.items():
                elements[text] = in_grown_schema(subscription, GROWN)

    @rule()
    def finish(self) -> None:
        while self.table.has_work:
            self.table.go_on(self._turn())
        prepared = {
            (consumer, text)
            for consumer, found in self.table.reader._read.items()
            for text in found
        }
        assert self.matcher._idle.keys() == prepared
        held = {(name, text) for name, found in self.in_force.items() for text in found}
        assert len(self.matcher._index) == len(held | prepared)  # type: ignore[arg-type]

    @invariant()
    def what_is_in_force_is_matched(self) -> None:
        for event in self.events:
            assert self.matcher.interested(event) == list(self._interested(event))

    @invariant()
    def views_are_what_is_in_force(self) -> None:
        for consumer, elements in self.in_force.items():
            assert self.table.view(consumer) == elements
            assert self.table.digest(consumer) == str(Digest(elements))

    def _turn(self) -> Turn:
        self.now += PAUSE_S
        return Turn(self.now)

    def _interested(self, event: Event) -> Iterable[str]:
        for consumer, elements in self.in_force.items():
            if any(each.matches(event) for each in elements.values()):
                yield consumer


class ViewsInCompiledIndex(Views):
    index = MatchingIndex


TestViews = Views.TestCase
TestViewsInCompiledIndex = ViewsInCompiledIndex.TestCase


def test_elements_that_have_ended_leave_the_index_in_slices() -> None:
    matcher = ExternalMatcher(DictionaryIndex())
    table = ExternalMergeTable(WEATHER, matcher, slice_characters=1)
    for text in ELEMENTS:
        matcher.insert("C", text, read_subscription(text, WEATHER))
        table.views.setdefault("C", {})[text] = read_subscription(text, WEATHER)
    table.forget(Turn(0.0), "C")
    assert all(matcher.interested(event) == [] for event in events(WEATHER))
    for left in range(len(ELEMENTS) - 1, -1, -1):
        assert table.has_work
        table.go_on(Turn(0.0))
        assert len(matcher._idle) == left
    assert not table.has_work
