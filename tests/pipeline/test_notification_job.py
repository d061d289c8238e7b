"""The notification job against a naive count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.cbr.event import Event
from qns.cbr.oracle import match, producer_view
from qns.cbr.subscription import Subscription
from qns.d2q.event_xml import write_event
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.edl.messages import Entry, Envelope, Notification, Notify
from qns.edl.reachability import Reachability
from qns.edl.tree_builder import diffusion_tree
from qns.errors import ValueRefused
from qns.pipeline.notifications.diffusion import Diffusion, external_rows
from qns.pipeline.notifications.multicast import shape_of
from qns.pipeline.notifications.notification_job import notification_job
from qns.pipeline.tables import COST, NOTIFICATIONS, TREES
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import HARD, Hosts, Scenario, Workload, hosts_of
from qns.soap.peer_client import write_call
from tests import strategies

FEWER = settings(max_examples=max(5, settings.default.max_examples // 20))  # whole federations
WORKLOADS = (
    Workload(constrained=0.2, quality_constrained=0.05),
    Workload(sources_given=0.7, constrained=0.2, values=4, quality_values=2),
    Workload(only=0.5, constrained=0.1, quality_constrained=0.0),
    HARD,
)
Row = dict[str, object]


def scenario_of(
    organisations: int = 4,
    mapping: str = "partial",
    seed: int = 1,
    workload: Workload = WORKLOADS[0],
    churn: float = 0.0,
) -> Scenario:
    hosts = hosts_of(WEATHER, organisations, mapping)
    return Scenario(WEATHER, hosts, mapping, seed, (10,), churn, workload)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    schema = draw(st.sampled_from([WEATHER, AGENCIES]))
    mapping = draw(st.sampled_from(["partial", "full"]))
    hosts = hosts_of(schema, draw(st.integers(2, 7)), mapping)
    churn = draw(st.sampled_from([0.0, 0.4]))
    workload = draw(st.sampled_from(WORKLOADS))
    return Scenario(schema, hosts, mapping, draw(st.integers(0, 99)), (10,), churn, workload)


def users_of(scenario: Scenario, subscriptions: int) -> dict[str, dict[str, Subscription]]:
    """The live subscriptions at the end, from the operations of the generator."""
    users: dict[str, dict[str, Subscription]] = {}
    for name in scenario.organisations:
        live = users[name] = {}
        for operation in Generator(scenario).operations(name, subscriptions):
            if operation.subscription is None:
                del live[operation.id]
            else:
                live[operation.id] = operation.subscription
    return users


class Naive:
    """Sends each event separately and encodes every message."""

    def __init__(self, scenario: Scenario, fan_out: int) -> None:
        self.scenario = scenario
        self.fan_out = fan_out
        self.counts: Counter[tuple[str, str]] = Counter()
        self.sequences: Counter[str] = Counter()
        self.numbers: Counter[tuple[str, str]] = Counter()
        self.tree: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.connected: dict[str, set[str]] = defaultdict(set)

    def publish(self, event: Event, users: dict[str, dict[str, Subscription]]) -> None:
        publisher = event.source
        matched = {name: len(match(each, event)) for name, each in users.items()}
        receivers = [name for name, many in matched.items() if many and name != publisher]
        xml = write_event(event._replace(published_us=1_700_000_000_123_456), self.scenario.schema)
        self.sequences[publisher] += 1
        remote = sum(matched.values()) - matched[publisher]
        for column, many in (
            ("delivered", sum(matched.values())),
            ("delivered_remote", remote),
            ("sent", len(receivers)),
            ("bytes_trivial", remote * len(xml)),
            ("bytes_sent", len(receivers) * len(xml)),
        ):
            self.counts[publisher, column] += many
        if receivers:
            self.multicast(event, xml, sorted(receivers))

    def multicast(self, event: Event, xml: bytes, receivers: list[str]) -> None:
        publisher = event.source
        capabilities = dict.fromkeys(
            self.scenario.organisations, self.fan_out or len(self.scenario.organisations)
        )
        tree = diffusion_tree(publisher, receivers, capabilities, Reachability(publisher, 1))
        for name in receivers:
            self.numbers[publisher, name] += 1
        self.tree["multicasts"] += 1

        def entry(name: str) -> Entry:
            below = tuple(entry(child) for child in tree[name])
            return Entry(name, 1, 1, self.numbers[publisher, name], 1, (), below)

        def send(sender: str, path: tuple[str, ...]) -> None:
            children = tree[sender]
            self.most["most_children"] = max(self.most["most_children"], len(children))
            for child in children:
                notification = Notification(
                    *(publisher, 1, 1, self.sequences[publisher], event.id, xml),
                    *(0.0, entry(child), path),
                )
                body, _ = write_call(Envelope(sender, 1, (), Notify((notification,))))
                self.tree.update(sent=1, bytes=len(body), depth_sum=len(path))
                self.most["most_depth"] = max(self.most["most_depth"], len(path))
                self.connected[sender].add(child)
                send(child, (*path, child))

        send(publisher, (publisher,))

    def tree_row(self) -> Row:
        connections = [len(others) for others in self.connected.values()]
        names = ("sent", "bytes", "depth_sum", "multicasts")
        return {
            **{name: self.tree[name] for name in names},
            **{name: self.most[name] for name in ("most_children", "most_depth")},
            "connections_sum": sum(connections),
            "most_connections": max(connections, default=0),
        }


def rows_of(table: object, **wanted: object) -> Iterator[Row]:
    for row in table.to_pylist():  # type: ignore[attr-defined]
        if all(row[name] == value for name, value in wanted.items()):
            yield row


@FEWER
@given(scenarios(), st.integers(1, 12), st.integers(1, 25), st.sampled_from([0, 1, 2, 3]))
def test_all_counts_equal_those_of_a_naive_sender(
    scenario: Scenario, subscriptions: int, published: int, fan_out: int
) -> None:
    users = users_of(scenario, subscriptions)
    publications = tuple(sorted({(published + 1) // 2, published}))
    tables = notification_job(scenario, publications, (fan_out,), subscriptions)
    naive = Naive(scenario, fan_out)
    for number, event in enumerate(Generator(scenario).events(published), start=1):
        naive.publish(event, users)
        if number in publications:
            for row in rows_of(tables["notifications"], published=number):
                for column in ("delivered", "delivered_remote", "sent", "bytes_trivial"):
                    assert row[column] == naive.counts[str(row["publisher"]), column]
                assert row["bytes_sent"] == naive.counts[str(row["publisher"]), "bytes_sent"]
            (tree,) = rows_of(tables["trees"], published=number)
            assert {name: tree[name] for name in naive.tree_row()} == naive.tree_row()


@given(
    st.lists(strategies.subscriptions(), max_size=8),
    st.dictionaries(
        st.sampled_from(strategies.ORGANISATIONS),
        st.sets(st.sampled_from(strategies.ALL_TYPES.classes), min_size=1).map(tuple),
        min_size=2,
    ),
)
def test_every_producer_holds_exactly_its_view_of_the_consumer(
    wanted: list[Subscription], hosts: Hosts
) -> None:
    consumer = next(iter(hosts))
    merged = [
        each
        for nth, each in enumerate(wanted)
        if not any(
            other.contains(each) and (not each.contains(other) or before < nth)
            for before, other in enumerate(wanted)
            if before != nth
        )
    ]
    rows = external_rows(merged, consumer, hosts)
    for producer in hosts:
        held = {row for row, holders in rows.items() if producer in holders}
        expected = (
            set() if producer == consumer else set(producer_view(wanted, producer, hosts[producer]))
        )
        assert held == expected


def test_missing_table_row_is_detected() -> None:
    scenario = scenario_of()
    diffusion = Diffusion(scenario.organisations)
    (subscription,) = [
        operation.subscription
        for operation in Generator(scenario_of(workload=Workload(constrained=0.1))).operations(
            "Met01", 1
        )
        if operation.subscription
    ]
    diffusion.add_users("Met01", [subscription])
    event = next(
        event
        for event in Generator(scenario).events(10_000)
        if event.source != "Met01" and subscription.matches(event)
    )
    with pytest.raises(AssertionError, match=f"table of {event.source} is wrong about Met01"):
        diffusion.audience([event])


def test_tables_have_their_columns_and_a_row_for_each_publisher_and_fan_out() -> None:
    tables = notification_job(scenario_of(), (5, 10), (0, 2), 10)
    assert tables["notifications"].schema == NOTIFICATIONS
    assert tables["trees"].schema == TREES
    assert tables["cost"].schema == COST
    assert tables["notifications"].num_rows == 2 * 4
    assert tables["trees"]["fan_out"].to_pylist() == [0, 2, 0, 2]
    assert tables["cost"]["arrived"].to_pylist() == [5, 10]
    assert set(tables["trees"]["subscriptions"].to_pylist()) == {10}


def test_without_fan_outs_there_are_no_trees_and_other_tables_are_the_same() -> None:
    without = notification_job(scenario_of(), (20,), (), 10)
    assert without["trees"].num_rows == 0
    assert (
        without["notifications"]
        == notification_job(scenario_of(), (20,), (0, 3), 10)["notifications"]
    )


def test_longer_run_begins_like_a_shorter_one() -> None:
    long, short = (
        notification_job(scenario_of(), publications, (2,), 10)
        for publications in ((10, 40), (10,))
    )
    for name in ("notifications", "trees"):
        assert list(rows_of(long[name], published=10)) == short[name].to_pylist()


@pytest.mark.parametrize("receivers", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("fan_out", [1, 2, 4, 100])
def test_tree_has_the_shape_that_peers_build(receivers: int, fan_out: int) -> None:
    names = [f"Org{number:03}" for number in range(receivers)]
    tree = diffusion_tree(
        "Producer", names, dict.fromkeys(("Producer", *names), fan_out), Reachability("Producer", 1)
    )
    shape = shape_of(receivers, fan_out)
    for place, name in enumerate(names):
        assert name in tree[[*names, "Producer"][shape.parents[place]]]
        assert shape.children[place] == len(tree[name])
    assert shape.descendants[-1] == receivers


@pytest.mark.parametrize(
    ("publications", "fan_outs", "subscriptions"),
    [
        ((), (), 1),
        ((0,), (), 1),
        ((5, 5), (), 1),
        ((10**9,), (), 1),
        ((5,), (-1,), 1),
        ((5,), (10_001,), 1),
        ((5,), (), 0),
    ],
)
def test_impossible_numbers_are_refused(
    publications: tuple[int, ...], fan_outs: tuple[int, ...], subscriptions: int
) -> None:
    with pytest.raises(ValueRefused):
        notification_job(scenario_of(), publications, fan_outs, subscriptions)
