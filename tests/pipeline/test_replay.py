"""Real workloads are read from files and stores, and counted like generated ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.cbr.oracle import match
from qns.cbr.subscription import Subscription
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import QnsError
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.iil.requests import Publish, Subscribe, Unsubscribe
from qns.peer.tables import DOCUMENT, DocumentRow
from qns.peer.turn import Transaction
from qns.pipeline.notifications.notification_job import notification_job
from qns.pipeline.replay.real_workload import (
    FULL,
    IN_FORCE,
    RealWorkload,
    read,
    steps,
    with_published,
)
from qns.pipeline.replay.replay_job import replay_merge_job, replay_notification_job
from qns.pipeline.replay.samples import write_sample
from qns.pipeline.replay.workload_files import Change, Publication
from qns.pipeline.report.results import Results
from qns.pipeline.run.replay_plan import replay_work
from qns.pipeline.run.savings import compute_savings
from qns.pipeline.tables import SUBSCRIPTIONS
from qns.pipeline.workload.scenario import Scenario, Workload, hosts_of
from qns.store.reading import StoreReader
from qns.store.sqlite import SqliteStore
from tests.cli.commands.test_history import Peers
from tests.pipeline.merging import merge

FEWER = settings(max_examples=max(5, settings.default.max_examples // 20))
LOOSE = Workload(constrained=0.2, quality_constrained=0.05, sources_given=0.4)
XML = write_event(
    EventReader(WEATHER).from_fields({"id": "e1", "class": "Report/Wind", "source": "Met03"}),
    WEATHER,
).decode()


def counts_of(table: pa.Table, *without: str) -> list[dict[str, Any]]:
    """The rows without the columns that name their scenario."""
    left_out = {"scenario", "seed", "churn", "mapping", *without}
    return [{k: v for k, v in row.items() if k not in left_out} for row in table.to_pylist()]


def subs(folder: Path, *rows: dict[str, Any], name: str = "SUBS.parquet") -> Path:
    path = folder / name
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def sub(at: object = 1, **fields: object) -> dict[str, Any]:
    row = {"organisation": "Met01", "id": "s", "at": at, "subscription": "Report"}
    return {**row, "ends": False, **fields}


def published(at: object = 2, **fields: object) -> dict[str, Any]:
    return {"at": at, "event": XML, **fields}


# -- the same counts as the generated scenario ----------------------------------------------------


@pytest.mark.parametrize("churn", [0.0, 0.4])
@pytest.mark.parametrize("mapping", ["full", "partial"])
def test_replayed_sample_gives_the_tables_of_its_scenario(
    tmp_path: Path, mapping: str, churn: float
) -> None:
    scenario = Scenario(
        WEATHER, hosts_of(WEATHER, 10, mapping), mapping, 3, (1, 2, 5, 10, 20), churn, LOOSE
    )
    files = write_sample(scenario, 50, tmp_path)
    workload = read(files, WEATHER, "weather-partial" if mapping == "partial" else None)
    assert dict(workload.hosts) == dict(scenario.hosts)
    assert workload.checkpoints == scenario.checkpoints
    for name in scenario.organisations:
        replayed = replay_merge_job(workload, name)["subscriptions"]
        rows = [{each: row[each] for each in SUBSCRIPTIONS.names} for row in merge(scenario, name)]
        assert counts_of(replayed) == counts_of(pa.Table.from_pylist(rows, SUBSCRIPTIONS))
    replayed = replay_notification_job(workload, (0, 2))
    generated = notification_job(scenario, steps(50), (0, 2), 20)
    for name in ("notifications", "trees"):
        assert counts_of(replayed[name]) == counts_of(generated[name])


TEXTS = ("Report", "Report/Wind", "Report from Met02", "Report/Wind where Speed > 3", "only Report")


@st.composite
def happenings(draw: st.DrawFn) -> tuple[list[Change], list[Publication]]:
    changes, live = [], set[tuple[str, str]]()
    for at in draw(st.lists(st.integers(0, 20), max_size=12).map(sorted)):
        if live and draw(st.booleans()):
            name, id = draw(st.sampled_from(sorted(live)))
            live.remove((name, id))
            changes.append(Change(at, name, id, None))
        else:
            name, id = draw(st.sampled_from(["Met01", "Met02", "Met03"])), f"s{len(changes)}"
            live.add((name, id))
            subscription = parse_subscription(draw(st.sampled_from(TEXTS)), WEATHER)
            changes.append(Change(at, name, id, subscription))
    reader = EventReader(WEATHER)
    publications = []
    for nth, at in enumerate(draw(st.lists(st.integers(0, 20), max_size=8).map(sorted))):
        source = draw(st.sampled_from(["Met01", "Met02", "Met03"]))
        fields = {"id": f"e{nth}", "class": "Report/Wind", "source": source}
        fields["data"] = {"Speed": draw(st.integers(2, 5))}
        publications.append(Publication(at, reader.from_fields(fields)))
    return changes, publications


@FEWER
@given(happenings())
def test_event_goes_to_the_subscriptions_of_its_time(
    happened: tuple[list[Change], list[Publication]],
) -> None:
    changes, publications = happened
    hosts = dict.fromkeys(("Met01", "Met02", "Met03"), WEATHER.classes)
    workload = RealWorkload(WEATHER, hosts, "full", tuple(changes), tuple(publications), "x")
    delivered = sent = 0
    for at, event, _ in publications:
        live: dict[str, dict[str, Subscription]] = {name: {} for name in hosts}
        for change in changes:
            if change.at <= at and change.subscription is not None:
                live[change.organisation][change.id] = change.subscription
            elif change.at <= at:
                del live[change.organisation][change.id]
        matched = {name: len(match(users, event)) for name, users in live.items()}
        delivered += sum(matched.values())
        sent += sum(1 for name, many in matched.items() if many and name != event.source)
    table = replay_notification_job(workload)["notifications"]
    last = [row for row in table.to_pylist() if row["published"] == len(publications)]
    assert sum(row["delivered"] for row in last) == delivered
    assert sum(row["sent"] for row in last) == sent


def test_report_accepts_the_tables_of_a_replay(tmp_path: Path) -> None:
    scenario = Scenario(WEATHER, hosts_of(WEATHER, 3, "full"), "full", 1, (10,), workload=LOOSE)
    workload = read(write_sample(scenario, 20, tmp_path), WEATHER)
    tables = [replay_merge_job(workload, name) for name in workload.organisations]
    merged = {
        "subscriptions": pa.concat_tables(each["subscriptions"] for each in tables),
        **replay_notification_job(workload, (0, 2)),
    }
    results = Results(merged, [workload.described()])
    assert results.mappings == ("full",)
    assert set(results.scenarios) == {workload.id}
    assert max(results.sizes("subscriptions", results.base, "full")) == 10


@pytest.mark.usefixtures("spark")
@pytest.mark.slow
def test_replay_is_run_and_reported_like_generated_scenarios(tmp_path: Path) -> None:
    scenario = Scenario(WEATHER, hosts_of(WEATHER, 10, "partial"), "partial", 1, (5,), 0.2, LOOSE)
    workload = read(write_sample(scenario, 20, tmp_path), WEATHER, "weather-partial")
    work = replay_work(workload, ["full", "weather-partial"], (0, 2))
    assert [each["mapping"] for each in work.scenarios] == ["weather-partial", "full"]
    out = tmp_path / "out"
    result = compute_savings(work, out, None, lambda _stage, _share: None)
    assert (result["computed"], result["resumed"]) == (2, 0)
    assert (out / "report.html").is_file()
    for each in (workload, workload.mapped("full")):
        tables = [replay_merge_job(each, name) for name in each.organisations]
        expected = pa.concat_tables(table["subscriptions"] for table in tables).to_pylist()
        found = pq.read_table(out / "subscriptions.parquet").to_pylist()
        mine = [row for row in found if row["scenario"] == each.id]
        assert sorted(map(repr, mine)) == sorted(map(repr, expected))
    again = compute_savings(work, out, None, lambda _stage, _share: None)
    assert (again["computed"], again["resumed"]) == (0, 2)


def test_organisation_with_fewer_subscriptions_keeps_its_last_counts(tmp_path: Path) -> None:
    file = subs(
        tmp_path, sub(), sub(2, id="t"), sub(3, id="u"), sub(1, organisation="Met02", id="v")
    )
    workload = read([file], WEATHER)
    assert workload.checkpoints == (1, 2, 3)
    rows = replay_merge_job(workload, "Met02")["subscriptions"].to_pylist()
    assert [(row["arrived"], row["changes"]) for row in rows] == [(1, 1), (2, 1), (3, 1)]


# -- files -----------------------------------------------------------------------------------------


def test_times_may_be_timestamps_and_rows_in_any_order(tmp_path: Path) -> None:
    file = subs(
        tmp_path,
        sub(datetime(2026, 3, 2, tzinfo=UTC), ends=True, subscription=None),
        sub(datetime(2026, 3, 1, tzinfo=UTC)),
        sub(datetime(2026, 3, 3, tzinfo=UTC), organisation="Met03"),
    )
    events = subs(tmp_path, published(datetime(2026, 3, 2, 12, tzinfo=UTC)), name="EVENTS.parquet")
    workload = read([events, file], WEATHER)
    assert [change.subscription is None for change in workload.changes] == [False, True, False]
    assert workload.publications[0].at == 1_772_452_800_000_000
    assert workload.churn == 0.5


def test_column_ends_may_be_missing_and_a_folder_may_be_given(tmp_path: Path) -> None:
    for nth in range(2):
        row = sub(nth, id=f"s{nth}", organisation=f"Met0{nth + 1}")
        del row["ends"]
        subs(tmp_path, row, name=f"part-{nth}.parquet")
    workload = read([tmp_path], WEATHER)
    assert [change.id for change in workload.changes] == ["s0", "s1"]


def test_other_mapping_keeps_the_history_and_changes_the_id(tmp_path: Path) -> None:
    file = subs(tmp_path, sub(), sub(organisation="Met02"))
    events = subs(tmp_path, published(), name="EVENTS.parquet")
    workload = read([file, events], WEATHER)
    other = workload.mapped("weather-partial")
    assert other.id != workload.id
    assert other.digest == workload.digest
    assert other.mapping == "weather-partial"
    assert set(other.hosts["Met01"]) == {"Report", "Report/Temperature", "Report/Pressure"}
    document = Federation.of("small", WEATHER, {"Met01": ["Report"], "Met02": [], "Met03": []})
    (tmp_path / "less.xml").write_bytes(write_federation(document))
    with pytest.raises(QnsError, match=r"row 1: Met03 publishes Report/Wind, which it does not"):
        workload.mapped(str(tmp_path / "less.xml"))


def test_equal_histories_have_equal_ids(tmp_path: Path) -> None:
    one = read([subs(tmp_path, sub(), sub(organisation="Met02"))], WEATHER)
    again = read([subs(tmp_path, sub(), sub(organisation="Met02"), name="b.parquet")], WEATHER)
    later = read([subs(tmp_path, sub(2), sub(organisation="Met02"), name="c.parquet")], WEATHER)
    assert one.id == again.id != later.id


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([sub(), sub(subscription="Report/Wnd", id="t")], r"SUBS.parquet: row 2: .*Report/Wnd"),
        ([sub(subscription="Report where")], r"SUBS.parquet: row 1: column \d+"),
        ([sub(subscription=None)], r"row 1: 'subscription' is None"),
        ([sub(organisation="")], r"row 1: 'organisation' is ''"),
        ([sub(None), sub(3)], r"row 1: 'at' is None"),
        ([sub(), sub(2)], r"row 2: s of Met01 begins a second time, after .*row 1"),
        ([sub(), sub(0, ends=True)], r"row 2: s of Met01 ends and has not begun"),
        ([sub("1")], r"SUBS.parquet: the column 'at' has values of type string"),
        ([{"id": "s", "subscription": "Report"}], r"there is no column 'organisation'"),
        ([{"id": "s"}], r"SUBS.parquet: neither subscriptions nor events"),
        ([sub()], r"1 organisations"),
    ],
)
def test_invalid_row_of_subscriptions_is_reported_with_its_number(
    tmp_path: Path, rows: list[dict[str, Any]], problem: str
) -> None:
    with pytest.raises(QnsError, match=problem):
        read([subs(tmp_path, *rows)], WEATHER)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (published(event="<event"), r"EVENTS.parquet: row 1: "),
        (published(event=None), r"row 1: 'event' is None"),
        (published(event=XML.replace("Report/Wind", "Report/Rain")), r"row 1: .*Report/Rain"),
        (published(source="Met04"), r"row 1: 'source' is 'Met04', and the event itself says"),
        ({"event": XML}, r"there is no column 'at'"),
        (published(datetime(2026, 3, 2, tzinfo=UTC)), r"times here, and only an order in"),
    ],
)
def test_invalid_row_of_events_is_reported_with_its_number(
    tmp_path: Path, row: dict[str, Any], problem: str
) -> None:
    file = subs(tmp_path, sub(), sub(organisation="Met02"))
    with pytest.raises(QnsError, match=problem):
        read([file, subs(tmp_path, row, name="EVENTS.parquet")], WEATHER)


def test_files_that_are_no_workload_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1, or so it says")
    file = subs(tmp_path, sub(), sub(organisation="Met02"))
    empty = tmp_path / "empty"
    empty.mkdir()
    for paths, schema, mapping, problem in (
        ([tmp_path / "broken.parquet"], WEATHER, None, "broken.parquet: cannot be read"),
        ([tmp_path / "absent"], WEATHER, None, "absent: there is no such file"),
        ([empty], WEATHER, None, "a folder without"),
        ([], WEATHER, None, "no subscriptions"),
        ([file], None, None, "give --schema"),
        ([file], WEATHER, "partal", "unknown mapping 'partal'"),
        ([file], WEATHER, "absent.xml", "absent.xml: cannot be read"),
        ([file], WEATHER, "agencies", "agencies: the federation agencies has another schema"),
    ):
        with pytest.raises(QnsError, match=problem):
            read(paths, schema, mapping)  # type: ignore[arg-type]


# -- the stores of peers ---------------------------------------------------------------------------


@pytest.fixture
def peers(tmp_path: Path) -> Callable[..., Peers]:
    return lambda **options: Peers(tmp_path, **options)


def _used(peers: Peers) -> None:
    reader = EventReader(WEATHER)

    def publish(id: str) -> None:
        fields = {"id": id, "class": "Report", "source": "Met01"}
        peers.ask("Met01", Publish(reader.from_fields(fields)))

    peers.ask("Met01", Subscribe("user", "Report", id="own"))
    peers.ask("Met02", Subscribe("user", "Report", id="s1"))
    peers.ask("Met02", Subscribe("user", "Report from Met01", id="s2"))
    publish("e1")
    peers.ask("Met02", Unsubscribe("user", "s1"))
    publish("e2")
    peers.ask("Met02", Unsubscribe("user", "s2"))
    publish("e3")


def test_stores_of_peers_give_the_recorded_workload(peers: Callable[..., Peers]) -> None:
    used = peers()
    _used(used)
    workload = read(used.close())
    assert workload.mapping == IN_FORCE
    assert dict(workload.hosts) == {"Met01": ("Report",), "Met02": ("Report",)}
    rows = replay_notification_job(workload)["notifications"].to_pylist()
    (last,) = [row for row in rows if row["published"] == 3 and row["publisher"] == "Met01"]
    assert (last["delivered"], last["delivered_remote"], last["sent"]) == (6, 3, 2)
    (row,) = replay_merge_job(workload, "Met02")["subscriptions"].slice(1).to_pylist()
    assert (row["changes"], row["messages_both"], row["rows_both"]) == (4, 2, 0)
    assert read(list(used.paths.values()), mapping=FULL).mapping == FULL
    with pytest.raises(QnsError, match="another schema"):
        read(list(used.paths.values()), AGENCIES)


def test_reading_does_not_change_a_store(peers: Callable[..., Peers], tmp_path: Path) -> None:
    used = peers()
    _used(used)
    paths = used.close()
    before = {path: path.read_bytes() for path in paths}
    read(paths)
    assert {path: path.read_bytes() for path in paths} == before
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    SqliteStore(paths[0]).close()


def test_store_of_a_crashed_peer_has_all_that_was_committed(
    peers: Callable[..., Peers], tmp_path: Path
) -> None:
    used = peers()
    _used(used)
    copy = tmp_path / "crashed.db"
    for end in ("", "-wal"):  # the files on the disk after the process was killed
        shutil.copy(f"{used.paths['Met01']}{end}", f"{copy}{end}")
    used.close()
    assert len(read([copy]).publications) == 3


def test_peer_that_starts_while_its_store_is_read_is_detected(peers: Callable[..., Peers]) -> None:
    used = peers()
    path, _ = used.close()
    with pytest.raises(QnsError, match="is in use"), StoreReader(path):
        store = SqliteStore(path)
    store.close()


def test_store_of_a_running_peer_is_refused_and_stays_usable(peers: Callable[..., Peers]) -> None:
    used = peers()
    _used(used)
    with pytest.raises(QnsError, match=r"Met01\.db: is in use"):
        read(list(used.paths.values()))
    used.ask("Met01", Subscribe("user", "Report", id="later"))
    used.close()


def test_backup_of_a_running_peer_can_be_read(peers: Callable[..., Peers], tmp_path: Path) -> None:
    used = peers()
    _used(used)
    used.gateways["Met01"].store.backup(tmp_path / "copy")  # type: ignore[attr-defined]
    assert len(read([tmp_path / "copy"]).publications) == 3
    used.close()


def test_unusable_stores_are_reported(peers: Callable[..., Peers], tmp_path: Path) -> None:
    used = peers(recording=False)
    _used(used)
    paths = used.close()
    with pytest.raises(QnsError, match=r"Met01.db: Met01 has recorded nothing \(write history"):
        read(paths)
    with pytest.raises(QnsError, match="a second store of Met01"):
        read([paths[0], paths[0]])
    (tmp_path / "text").write_text("hello")
    with pytest.raises(QnsError, match="text: is no store of QNS"):
        read([tmp_path / "text"])
    with pytest.raises(QnsError, match="files and stores of peers together"):
        read([paths[0], subs(tmp_path, sub())])


def test_subscriptions_from_before_the_first_record_count(peers: Callable[..., Peers]) -> None:
    silent = peers(recording=False)
    silent.ask("Met02", Subscribe("user", "Report", id="old"))
    silent.close()
    used = peers()
    used.ask("Met02", Subscribe("user", "Report", id="new"))
    workload = read(used.close())
    assert [(change.organisation, change.id) for change in workload.changes] == [
        ("Met02", "old"),
        ("Met02", "new"),
    ]


def test_stores_of_two_federations_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first = Peers(tmp_path / "one")
    second = Peers(tmp_path / "two", names=("Met03", "Met04"))
    store = second.gateways["Met03"].store
    transaction = Transaction()
    other = replace(AGENCIES_FEDERATION, version=1)
    transaction.put(DOCUMENT, DocumentRow(1, write_federation(other)))
    store.commit(transaction)
    paths = [first.close()[0], second.close()[0]]
    with pytest.raises(QnsError, match="a store of another federation"):
        read(paths)


def test_published_classes_count_as_hosted_after_hosting_changed() -> None:
    wind = EventReader(WEATHER).from_fields({"id": "e1", "class": "Report/Wind", "source": "Met01"})
    hosts = {"Met01": ("Report",), "Met02": ("Report", "Report/Wind")}
    assert with_published(hosts, [Publication(0, wind, "row 1")]) == {
        "Met01": ("Report", "Report/Wind"),
        "Met02": ("Report", "Report/Wind"),
    }
