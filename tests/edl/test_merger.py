"""The Merger's ChangeSubs keep the producer's External Merge Table equal to the view."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from qns.cbr.event import Event
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.index import DictionaryIndex
from qns.cbr.oracle import producer_view
from qns.cbr.subscription import Subscription
from qns.d2q.shipped import WEATHER
from qns.d2q.subscription_xml import read_subscription
from qns.edl.external_matcher import ExternalMatcher
from qns.edl.external_merge_table import ExternalMergeTable
from qns.edl.merge_subscriptions_table import VIEW, Digest, View, ViewEvent, ViewState
from qns.edl.merger import Merger
from qns.edl.messages import ChangeSub
from qns.federation.document import Federation
from qns.iil.interpreter import interpret
from qns.peer.tables import EXTERNAL, ExternalRow
from qns.peer.turn import Turn
from tests.strategies import ALL_TYPES, chains, events, subscriptions

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


@given(st.lists(st.sampled_from("abcdef")), st.randoms(use_true_random=False))
def test_digest_depends_only_on_the_set_of_elements(steps: list[str], chance: object) -> None:
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


def seen(merger: Merger, hosts: Iterable[str]) -> set[Subscription | None]:
    """Returns the elements of the view for P, as P sees them."""
    return {each.projected("P", hosts) for each in merger.table["P"].texts}


class ChangeSubMachine(RuleBasedStateMachine):
    """A Merger sends ChangeSubs to a producer's table; requests and replies may be lost."""

    is_exact = False

    @initialize()
    def begin(self) -> None:
        self.turn = Turn(0.0)
        self.merger = Merger("C", WEATHER, self.is_exact)
        self.hosts = HOSTS[1]
        self.merger.apply_document(self.turn, document(self.hosts), document(self.hosts))
        self.table = ExternalMergeTable(WEATHER, ExternalMatcher(DictionaryIndex()))
        self.version = 0
        self.wanted: dict[str, Subscription] = {}
        self.names = 0

    @rule(text=st.sampled_from(TEXTS))
    def subscribe(self, text: str) -> None:
        self.names += 1
        wanted = self.wanted[str(self.names)] = interpret(text, WEATHER)
        self.merger.subscribe(self.turn, str(self.names), wanted)

    @rule(chain=chains(subscriptions(WEATHER, 1), WEATHER))
    def subscribe_chain(self, chain: list[Subscription]) -> None:
        """Adds three subscriptions that contain one another, the narrowest one first."""
        for wanted in reversed(chain):
            self.names += 1
            self.wanted[str(self.names)] = wanted
            self.merger.subscribe(self.turn, str(self.names), wanted)

    @rule(chosen=st.integers(0, 100))
    def unsubscribe(self, chosen: int) -> None:
        if self.wanted:
            id = sorted(self.wanted)[chosen % len(self.wanted)]
            del self.wanted[id]
            self.merger.unsubscribe(self.turn, id)

    @rule(hosts=st.sampled_from(HOSTS))
    def host(self, hosts: tuple[str, ...]) -> None:
        old, self.hosts = self.hosts, hosts
        self.merger.apply_document(self.turn, document(old), document(hosts))

    @rule()
    def hello(self) -> None:
        self.view.compare(self.version, self.table.digest("C"))

    @rule()
    def restore(self) -> None:
        """The producer is restored: nothing is sent until a hello has compared the views."""
        self.view.lose()

    @rule(fate=st.sampled_from(["arrives", "arrives", "request lost", "answer lost"]))
    def send_change(self, fate: str) -> None:
        before = self.view.state
        if before is not ViewState.STALE:
            return
        change = self.merger.change_sub("P", 1, 1, 1)
        assert self.view.state is ViewState.SENDING, "one call at a time"
        fits = fate != "request lost" and self._apply(change)
        if fate != "arrives":
            self.view.fail()
        elif fits:
            self.view.confirm(change.version)
        else:
            self.view.send_all()

    @property
    def view(self) -> View:
        return self.merger.table["P"]

    def expected_view(self) -> set[Subscription]:
        """Returns the view, computed anew from all subscriptions."""
        return producer_view(self.wanted.values(), "P", self.hosts)

    def _apply(self, change: ChangeSub) -> bool:
        """Applies the change as a producer does."""
        if change.base is not None and change.base != self.version:
            return self.version == change.version and self.table.digest("C") == change.digest
        if self.table.apply(self.turn, "C", change) is None:
            return False
        self.version = change.version
        return True

    @rule()
    def settle(self) -> None:
        """Without losses the producer has the right view after a hello and two calls at most."""
        self.view.compare(self.version, self.table.digest("C"))
        for _ in range(2):
            self.send_change("arrives")
        view = self.view
        assert view.state is ViewState.IN_FORCE
        assert self.version == view.version
        assert self.table.digest("C") == str(view.digest)
        assert set(self.table.view("C")) == set(view.texts.values())
        projected = {
            each.projected("P", frozenset(self.hosts)) for each in self.table.view("C").values()
        }
        assert projected == self.expected_view()

    @invariant()
    def view_equals_the_recomputed_view(self) -> None:
        if not hasattr(self, "merger"):
            return
        view = self.view
        assert seen(self.merger, self.hosts) == self.expected_view()
        assert str(view.digest) == str(Digest(view.texts.values()))
        if view.state is ViewState.IN_FORCE:
            assert set(self.table.view("C")) == set(view.texts.values())

    @invariant()
    def stored_rows_equal_the_table_in_memory(self) -> None:
        if not hasattr(self, "table"):
            return
        rows: dict[object, object] = {}
        for table, changes in self.turn.transaction.changes():
            if table is EXTERNAL:
                rows = {key: row for key, row in changes.items() if row is not None}
        assert set(rows) == {("C", text) for text in self.table.view("C")}


def test_every_view_state_can_be_reached_and_left() -> None:
    assert {state for state, _ in VIEW} == set(ViewState)
    assert set(VIEW.values()) == set(ViewState)
    assert {event for _, event in VIEW} == set(ViewEvent)


TestChangeSub = ChangeSubMachine.TestCase
TestChangeSub.settings = settings(stateful_step_count=30)


class ExactChangeSubMachine(ChangeSubMachine):
    """The Merger also merges elements beyond containment."""

    is_exact = True

    def expected_view(self) -> set[Subscription]:
        return set(ExactMerge(super().expected_view()).subscriptions)


TestExactChangeSub = ExactChangeSubMachine.TestCase
TestExactChangeSub.settings = settings(stateful_step_count=30)


CHANGES = st.lists(
    st.tuples(st.integers(0, 9), st.one_of(st.none(), subscriptions(max_constraints=2))),
    max_size=20,
)


@given(CHANGES, st.lists(events(), min_size=1, max_size=10))
def test_exact_view_accepts_all_and_only_what_some_user_wants(
    steps: list[tuple[int, Subscription | None]], happened: list[Event]
) -> None:
    """The oracle is naive: an event is wanted if it matches any user's own subscription."""
    hosts = tuple(ALL_TYPES.classes)
    federation = Federation.of("all", ALL_TYPES, {"INPS": hosts, "C": hosts})
    turn = Turn(0.0)
    merger = Merger("C", ALL_TYPES, is_exact=True)
    merger.apply_document(turn, federation, federation)
    wanted: dict[str, Subscription] = {}
    for user, subscription in steps:
        if str(user) in wanted:
            merger.unsubscribe(turn, str(user))
            del wanted[str(user)]
        if subscription is not None:
            merger.subscribe(turn, str(user), subscription)
            wanted[str(user)] = subscription
        view = merger.table["INPS"]
        # What the producer reads from the wire is what counts.
        received = [read_subscription(text, ALL_TYPES) for text in view.texts.values()]
        for event in happened:
            published = event._replace(source="INPS")
            is_wanted = any(each.matches(published) for each in wanted.values())
            assert any(each.matches(published) for each in received) == is_wanted


def test_unsubscription_undoes_an_exact_merge() -> None:
    merger = Merger("C", WEATHER, is_exact=True)
    merger.apply_document(Turn(0.0), document(HOSTS[1]), document(HOSTS[1]))
    north, south = (interpret(f'Report where Region = "{r}"', WEATHER) for r in ("north", "south"))
    both = interpret('Report where Region in {"north", "south"}', WEATHER)
    merger.subscribe(Turn(0.0), "a", north)
    merger.subscribe(Turn(0.0), "b", south)
    merger.subscribe(Turn(0.0), "c", south)
    hosts = frozenset(HOSTS[1])
    assert seen(merger, hosts) == {both.projected("P", hosts)}
    merger.unsubscribe(Turn(0.0), "b")  # another user still wants it
    assert seen(merger, hosts) == {both.projected("P", hosts)}
    merger.unsubscribe(Turn(0.0), "c")
    assert seen(merger, hosts) == {north.projected("P", hosts)}


def elements_of(*chosen: str) -> tuple[str, ...]:
    """Returns the elements as a Merger writes them; one Merger each, so that none is covered."""
    found: list[str] = []
    for text in chosen:
        merger = Merger("C", WEATHER)
        merger.apply_document(Turn(0.0), document(HOSTS[1]), document(HOSTS[1]))
        merger.subscribe(Turn(0.0), "s", interpret(text, WEATHER))
        found += merger.table["P"].texts.values()
    return tuple(found)


ELEMENTS = elements_of(
    'Report where Region = "north"', 'Report where Region = "south"', "Report/Wind"
)
some = st.lists(st.sampled_from(ELEMENTS), unique=True).map(tuple)


@given(
    st.lists(
        st.tuples(st.booleans(), some, some, st.booleans(), st.sampled_from(["C", "D"])),
        max_size=8,
    )
)
def test_change_with_a_wrong_base_or_digest_leaves_the_table_unchanged(
    changes: list[tuple[bool, tuple[str, ...], tuple[str, ...], bool, str]],
) -> None:
    table = ExternalMergeTable(WEATHER, ExternalMatcher(DictionaryIndex()))
    turn = Turn(0.0)
    model: dict[str, set[str]] = {"C": set(), "D": set()}
    for whole, added, removed, is_right, consumer in changes:
        before = model[consumer]
        after = set(added) if whole else (before - set(removed)) | (set(added) - before)
        digest = str(Digest(after)) if is_right else str(Digest([*after, "x"]))
        change = ChangeSub(1, 1, 1, None if whole else 1, 2, added, removed, digest)
        fresh = table.apply(turn, consumer, change)
        fits = is_right and (whole or set(removed) <= before)
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
