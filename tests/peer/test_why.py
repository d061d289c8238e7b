"""Why: what a peer says of an event in each place where the event can be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qns.cbr.index import DictionaryIndex
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Entry, Notify
from qns.errors import NameNotKnown, QnsError, ValueRefused
from qns.federation.document_xml import write_federation
from qns.iil.requests import AcknowledgeDeliveries, Pause, Publish, Subscribe, Unsubscribe
from qns.peer.gateway import Gateway
from qns.peer.history_search import search_history
from qns.peer.recovery import Settings
from qns.peer.tables import HISTORY, HistoryRow
from qns.peer.turn import Transaction
from qns.peer.why import Question, Why
from qns.simulation.world import TUNING, World
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore
from tests.edl.peers import (
    OWNER,
    federation,
    notification,
    peer_of,
    publish,
    send,
    subscribe,
    world_of,
    world_with_custody,
)
from tests.peer.test_dead_letters import world_with_letter


def why(world: World, name: str, event: str, **more: Any) -> Why:
    return peer_of(world, name).status.why(Question(event, **more))


def kinds(found: Why) -> list[str]:
    return [fact.kind for fact in found.facts]


def delivering_world() -> World:
    world = world_of("P", "C", "D")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1", available=100)
    world.run_for(3.0)
    return world


def test_delivered_event_has_its_number_and_time_and_the_conditions_that_hold() -> None:
    world = delivering_world()
    found = why(world, "C", "e1", subscription="s")
    assert (found.verdict, found.source, found.data_class) == ("delivered", "P", "Report")
    (fact,) = found.facts
    assert (fact.kind, fact.number) == ("delivered", 1)
    assert fact.at is not None
    (explained,) = found.explained
    assert explained.matches
    assert [condition.holds for condition in explained.conditions] == [True]


def test_why_names_the_condition_that_the_event_does_not_fulfil() -> None:
    world = delivering_world()
    subscribe(world, "C", "other", "Report where Station = 'LIRF'")
    world.run_for(3.0)
    found = why(world, "C", "e1", subscription="other")
    assert (found.verdict, found.facts) == ("does not match", ())
    (failing,) = (each for each in found.explained[0].conditions if not each.holds)
    assert (failing.text, failing.actual) == ('Station = "LIRF"', None)


def test_event_of_a_paused_subscription_waits() -> None:
    world = delivering_world()
    world.do("C", Pause(OWNER, "s"))
    publish(world, "P", "e2")
    world.run_for(3.0)
    found = why(world, "C", "e2", subscription="s")
    assert (found.verdict, kinds(found)) == ("on its way", ["paused"])
    assert "qns resume s" in found.facts[0].words


def test_event_of_a_pending_subscription_waits() -> None:
    world = world_of("P", "C", "D")
    subscribe(world, "C", "narrow", "only Report/Wind")
    world.run_for(2.0)
    world.network.cut("C", "P")  # so that the wider view cannot be sent
    subscribe(world, "C", "wide", "Report")
    fields = {"id": "e1", "class": "Report/Wind", "source": "P"}
    world.do("P", Publish(EventReader(WEATHER).from_fields(fields)))
    world.run_for(1.0)
    assert why(world, "C", "e1", subscription="narrow").verdict == "delivered"
    found = why(world, "C", "e1", subscription="wide")
    assert (found.verdict, kinds(found)) == ("on its way", ["pending"])


def test_early_event_names_the_missing_numbers() -> None:
    world = world_of("P", "C", "D")
    item = notification("P", "e5", Entry("C", 1, 1, 5, 0), path=("P", "D"))
    send(world, "D", "C", Notify((item,)))
    world.run_for(0.1)
    found = why(world, "C", "e5")
    assert kinds(found) == ["early"]
    assert "numbers 1 to 4 of P are missing" in found.facts[0].words


def test_member_of_a_group_that_got_the_event_is_named() -> None:
    world = world_of("P", "C")
    for id in ("a", "b"):
        world.do("C", Subscribe(OWNER, "Report", id=id, group="g"))
    world.run_for(2.0)
    publish(world, "P", "e1")
    world.run_for(3.0)
    for id in ("a", "b"):
        assert why(world, "C", "e1", subscription=id).verdict == "delivered"
    texts = [why(world, "C", "e1", subscription=id).facts[0].words for id in ("a", "b")]
    assert sum("of the group g" in text for text in texts) == 1


def test_why_at_the_producer_shows_whether_an_event_is_owed_or_acknowledged() -> None:
    world = delivering_world()
    world.kill("C")
    publish(world, "P", "e2")
    world.run_for(5.0)
    owed = why(world, "P", "e2", to="C")
    assert (owed.verdict, kinds(owed)) == ("on its way", ["published", "owed"])
    assert "as number 2 and is not acknowledged; the last call failed" in owed.facts[1].words
    acknowledged = why(world, "P", "e1", to="C")
    assert (acknowledged.verdict, acknowledged.facts[1].number) == ("delivered", 1)
    every = why(world, "P", "e1")
    assert [(fact.kind, fact.organisation) for fact in every.facts] == [
        ("published", ""),
        ("acknowledged", "C"),
        ("not wanted", "D"),
    ]


def test_producer_explains_why_a_view_does_not_match() -> None:
    world = delivering_world()
    subscribe(world, "D", text="Report where Station = 'LIRF'")
    world.run_for(3.0)
    found = why(world, "P", "e1", to="D")
    assert found.verdict == "does not match"
    assert found.explained[0].text == 'Report where Station = "LIRF"'
    assert "no stream" in kinds(why(world, "P", "e1", to="X"))


def test_why_at_the_producer_shows_that_a_consumer_has_rejected_the_event() -> None:
    world = world_with_letter()
    found = why(world, "P", "e1", to="C")
    assert (found.verdict, kinds(found)) == ("rejected", ["published", "dead letter"])


def test_producer_leaves_out_dead_letters_of_other_consumers() -> None:
    world = world_with_letter("D")
    found = why(world, "P", "e1", to="D")
    assert (found.verdict, kinds(found)) == ("not wanted", ["published", "not wanted"])


def test_absence_of_an_event_of_unknown_source_also_covers_this_peer_as_its_source() -> None:
    world = delivering_world()
    publish(world, "P", "e2")
    world.run_for(3.0)
    world.do("C", AcknowledgeDeliveries(OWNER, "s", 2))
    world.run_for(3.0)
    (fact,) = why(world, "P", "e2").facts[-1:]
    assert fact.kind == "absent"
    assert "if its source is P, every consumer and user may have acknowledged it" in fact.words


def test_why_at_a_forwarder_shows_the_receivers_in_its_custody() -> None:
    world = world_with_custody()
    custody = [fact for fact in why(world, "F", "e1").facts if fact.kind == "custody"]
    assert [(fact.organisation, fact.number) for fact in custody] == [("Z", 1)]


def test_event_that_is_gone_is_reported_with_what_that_means() -> None:
    world = delivering_world()
    publish(world, "P", "e2")
    world.run_for(3.0)
    world.do("C", AcknowledgeDeliveries(OWNER, "s", 2))
    world.run_for(3.0)
    gone = why(world, "C", "e2", source="P", subscription="s")
    assert (gone.verdict, gone.is_here, kinds(gone)) == ("unknown", False, ["absent"])
    assert "ask at the peer of P with qns why e2 --to C" in gone.facts[0].words
    assert "its availability is over" in why(world, "P", "e2", source="P").facts[0].words
    past = why(world, "C", "e1", subscription="s")  # acknowledged and still available
    assert (past.verdict, kinds(past)) == ("matches", ["past"])


def test_given_event_is_explained_although_the_peer_has_forgotten_it() -> None:
    world = delivering_world()
    fields = {"id": "old", "class": "Report/Wind", "source": "P"}
    found = why(world, "C", "old", subscription="s", given=fields)
    assert (found.verdict, found.is_here, found.source) == ("matches", False, "P")
    with pytest.raises(ValueRefused, match="the file has event old, not e9"):
        why(world, "C", "e9", subscription="s", given=fields)
    with pytest.raises(QnsError):
        why(world, "C", "old", given="<event/>")


def test_unknown_and_ended_subscriptions_and_unclear_sources_are_refused() -> None:
    world = delivering_world()
    with pytest.raises(NameNotKnown, match="unknown subscription 'S'"):
        why(world, "C", "e1", subscription="S")
    world.do("C", Unsubscribe(OWNER, "s"))
    with pytest.raises(NameNotKnown, match="subscription s has ended"):
        why(world, "C", "e1", subscription="s")
    subscribe(world, "C", "t")
    world.run_for(3.0)
    publish(world, "D", "e1")
    world.run_for(3.0)
    with pytest.raises(ValueRefused, match="D, P have all published an event e1"):
        why(world, "C", "e1")
    assert why(world, "C", "e1", source="D").source == "D"


def test_why_finds_an_event_in_the_history_after_the_peer_has_deleted_it() -> None:
    store = MemoryStore()
    gateway = Gateway.open(
        Settings("P", TUNING, DictionaryIndex, recording=True),
        store,
        MemoryLineage(),
        document=write_federation(federation("P", "C")),
        nonce="1",
        now=0.0,
    )
    gateway.run([Subscribe(OWNER, "Report", id="s")], 1.0)
    for id in ("e1", "e2"):
        fields = {"id": id, "class": "Report", "source": "P"}
        gateway.run([Publish(EventReader(WEATHER).from_fields(fields))], 2.0)
    gateway.run([AcknowledgeDeliveries(OWNER, "s", 2)], 3.0)
    assert gateway.status.why(Question("e1", "P", "s")).verdict == "unknown"
    found = search_history(store, 1, "P", "P", "e1")
    assert [(each["t"], each["do"], each["words"]) for each in found.records] == [
        (2.0, "pub", "published as number 1 of its epoch"),
        (2.0, "ntfy", "delivered to subscription s as number 1"),
    ]
    assert found.is_complete
    assert search_history(store, 1, "P", "", "e1") == found
    assert search_history(store, 1, "P", "C", "e1").records == []


def history_of(*epochs: int, records: int = 1) -> MemoryStore:
    store, transaction = MemoryStore(), Transaction()
    for epoch in epochs:
        for number in range(1, records + 1):
            fields = {"t": float(epoch), "do": "promise", "event": "e1", "to": f"{epoch}"}
            transaction.put(HISTORY, HistoryRow(epoch, number, json.dumps(fields)))
    store.commit(transaction)
    return store


def test_history_search_reads_only_the_epochs_that_exist() -> None:
    epochs = (1, 70_003, 1_086_765)
    store = history_of(*epochs)
    calls: list[int] = []
    scan = store.scan
    store.scan = lambda *given: (calls.append(given[1][0]), scan(*given))[1]  # type: ignore[method-assign,assignment,misc]
    found = search_history(store, epochs[-1], "P", "", "e1")
    assert [each["t"] for each in found.records] == [1.0, 70_003.0, 1_086_765.0]
    assert found.is_complete
    assert sorted(set(calls)) == list(epochs)
    assert len(calls) == 6  # each epoch until nothing is left


def test_history_search_says_that_it_left_out_the_oldest_records() -> None:
    assert search_history(history_of(1, records=100), 1, "P", "", "e1").is_complete
    found = search_history(history_of(1, 9, records=60), 9, "P", "", "e1")
    assert len(found.records) == 100
    assert found.records[-1]["t"] == 9.0
    assert not found.is_complete
