"""The Merger's views and the External Merge Table: what is told makes what is held."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from qns.cbr.index import DictionaryIndex
from qns.cbr.oracle import producer_view
from qns.cbr.subscription import Subscription
from qns.d2q.shipped import WEATHER
from qns.edl.external_matcher import ExternalMatcher
from qns.edl.external_table import ExternalMergeTable
from qns.edl.merger import Change, Difference, Digest, Merger
from qns.edl.messages import ChangeSub
from qns.federation.document import Federation
from qns.iil.interpreter import interpret
from qns.tables import EXTERNAL, ExternalRow
from qns.turn import Turn

TEXTS = [
    "Report",
    'Report where Region = "north"',
    'Report where Region = "south"',
    "Report/Wind",
    "Report/Wind where Speed > 10",
    "Report/Wind where Speed > 20",
    "Report from P where Station exists",
    "Report/Wind from Q",
    "only Report",
]
HOSTS = [("Report",), ("Report", "Report/Wind"), ("Report/Wind",)]

texts = st.sets(st.sampled_from("abcdef"))


@given(st.lists(texts, min_size=1, max_size=6))
def test_differences_add_up(sets: list[set[str]]) -> None:
    whole = Difference()
    for before, after in pairwise(sets):
        step = Difference(frozenset(after - before), frozenset(before - after))
        whole = whole.then(step)
    first, last = sets[0], sets[-1]
    assert whole == Difference(frozenset(last - first), frozenset(first - last))


@given(st.lists(st.sampled_from("abcdef")), st.randoms(use_true_random=False))
def test_a_digest_depends_on_the_set_alone(steps: list[str], chance: object) -> None:
    present: set[str] = set()
    digest = Digest()
    for text in steps:
        if text in present:
            present.remove(text)
            digest.remove(text)
        else:
            present.add(text)
            digest.add(text)
    shuffled = sorted(present)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert str(digest) == str(Digest(shuffled))
    assert (str(digest) == str(Digest())) == (not present)


def document(hosts: tuple[str, ...]) -> Federation:
    return Federation.of("weather", WEATHER, {"P": hosts, "C": ("Report",)})


class Telling(RuleBasedStateMachine):
    """A consumer's merger tells a producer's table, over calls that get lost on either way."""

    @initialize()
    def begin(self) -> None:
        self.turn = Turn(0.0)
        self.merger = Merger(WEATHER)
        self.hosts = HOSTS[1]
        self.merger.follow(self.turn, "C", document(self.hosts))
        self.table = ExternalMergeTable(WEATHER, ExternalMatcher(DictionaryIndex()))
        self.version = 0
        self.wanted: dict[str, Subscription] = {}
        self.names = 0

    @rule(text=st.sampled_from(TEXTS))
    def subscribe(self, text: str) -> None:
        self.names += 1
        wanted = self.wanted[str(self.names)] = interpret(text, WEATHER)
        self.merger.subscribe(self.turn, str(self.names), wanted)

    @rule(chosen=st.integers(0, 100))
    def unsubscribe(self, chosen: int) -> None:
        if self.wanted:
            id = sorted(self.wanted)[chosen % len(self.wanted)]
            del self.wanted[id]
            self.merger.unsubscribe(self.turn, id)

    @rule(hosts=st.sampled_from(HOSTS))
    def host(self, hosts: tuple[str, ...]) -> None:
        self.hosts = hosts
        self.merger.follow(self.turn, "C", document(hosts))

    @rule()
    def hello(self) -> None:
        self.merger.compare("P", self.version, self.table.digest("C"))

    @rule(fate=st.sampled_from(["arrives", "arrives", "request lost", "answer lost"]))
    def tell(self, fate: str) -> None:
        change = self.merger.change_sub("P")
        if change is None:
            return
        assert self.merger.change_sub("P") is None, "one call at a time"
        fits = fate != "request lost" and self._apply(change)
        if fate != "arrives":
            self.merger.failed("P")
        elif fits:
            self.merger.told("P", change.version)
        else:
            self.merger.tell_all("P")

    def _apply(self, change: Change) -> bool:
        """As the producer does it."""
        if change.base is not None and change.base != self.version:
            return self.version == change.version and self.table.digest("C") == change.digest
        said = ChangeSub(1, 1, 1, *change)
        if self.table.apply(self.turn, "C", said) is None:
            return False
        self.version = change.version
        return True

    @rule()
    def settle(self) -> None:
        """In quiet times the producer has the right view after a hello and two calls at most."""
        self.merger.compare("P", self.version, self.table.digest("C"))
        for _ in range(2):
            self.tell("arrives")
        view = self.merger.views["P"]
        assert view.is_told
        assert self.version == view.version
        assert self.table.digest("C") == str(view.digest)
        assert set(self.table.view("C")) == set(view.texts.values())
        projected = {
            each.projected("P", frozenset(self.hosts)) for each in self.table.view("C").values()
        }
        assert projected == producer_view(self.wanted.values(), "P", self.hosts)

    @invariant()
    def the_view_is_what_recomputing_it_gives(self) -> None:
        if not hasattr(self, "merger"):
            return
        view = self.merger.views["P"]
        assert set(view.texts) == producer_view(self.wanted.values(), "P", self.hosts)
        assert str(view.digest) == str(Digest(view.texts.values()))
        if view.is_told:
            assert set(self.table.view("C")) == set(view.texts.values())

    @invariant()
    def the_table_is_on_disk_as_in_memory(self) -> None:
        if not hasattr(self, "table"):
            return
        rows: dict[object, object] = {}
        for table, changes in self.turn.transaction.changes():
            if table is EXTERNAL:
                rows = {key: row for key, row in changes.items() if row is not None}
        assert set(rows) == {("C", text) for text in self.table.view("C")}


TestTelling = Telling.TestCase
TestTelling.settings = settings(stateful_step_count=30)


def written(*chosen: str) -> tuple[str, ...]:
    """As a merger writes them, each alone so that none covers another."""
    found: list[str] = []
    for text in chosen:
        merger = Merger(WEATHER)
        merger.follow(Turn(0.0), "C", document(HOSTS[1]))
        merger.subscribe(Turn(0.0), "s", interpret(text, WEATHER))
        found += merger.views["P"].texts.values()
    return tuple(found)


ELEMENTS = written('Report where Region = "north"', 'Report where Region = "south"', "Report/Wind")
some = st.lists(st.sampled_from(ELEMENTS), unique=True).map(tuple)


@given(
    st.lists(
        st.tuples(st.booleans(), some, some, st.booleans(), st.sampled_from(["C", "D"])),
        max_size=8,
    )
)
def test_a_change_that_does_not_fit_changes_nothing(
    changes: list[tuple[bool, tuple[str, ...], tuple[str, ...], bool, str]],
) -> None:
    table = ExternalMergeTable(WEATHER, ExternalMatcher(DictionaryIndex()))
    turn = Turn(0.0)
    model: dict[str, set[str]] = {"C": set(), "D": set()}
    for whole, added, removed, honest, consumer in changes:
        before = model[consumer]
        after = set(added) if whole else (before - set(removed)) | (set(added) - before)
        digest = str(Digest(after)) if honest else str(Digest([*after, "x"]))
        change = ChangeSub(1, 1, 1, None if whole else 1, 2, added, removed, digest)
        fresh = table.apply(turn, consumer, change)
        fits = honest and (whole or set(removed) <= before)
        assert (fresh is not None) == fits
        if fresh is not None:
            assert len(fresh) == len(set(added) - before)
            model[consumer] = after
        for name, texts in model.items():
            assert set(table.view(name)) == texts
            assert table.digest(name) == str(Digest(texts))
    twin = ExternalMergeTable(WEATHER, ExternalMatcher(DictionaryIndex()))
    for _, rows in turn.transaction.changes():
        for row in rows.values():
            if isinstance(row, ExternalRow):
                twin.recover(row)
    for name in model:
        assert twin.digest(name) == table.digest(name)
        table.forget(turn, name)
        assert not table.view(name)
