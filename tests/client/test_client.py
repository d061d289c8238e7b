"""Tests of every method of `Client` with a real peer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf
from threading import Thread
from typing import Any

import pytest

from qns.cbr.event import Event
from qns.client import Client, CursorAhead, PeerUnreachable
from qns.d2q.event_json import EventReader
from qns.d2q.schema_files import load_schema
from qns.errors import NotAllowed, QnsError, SchemaError, ValueRefused
from qns.iil.cursor import Cursor
from qns.iil.requests import Published
from tests.client.peers import LossyWire, PeerProcess, holder

HOLDERS = "Enterprise/Holder where FiscalCode = '{}'"


def marked(id: object, mark: str, **more: Any) -> dict[str, Any]:
    return holder(f"{id}-{mark}", data={"Name": "M. Mecalla", "FiscalCode": mark}, **more)


def test_every_request_about_a_subscription_works(client: Client, mark: str) -> None:
    made = client.subscribe(HOLDERS.format(mark), id=f"s-{mark}", lifetime_s=3_600)
    assert made.id == f"s-{mark}"
    assert made.pending == ()
    assert made.expires_at < time.time() + 3_700
    (listed,) = client.subscriptions()
    assert (listed.id, listed.text, listed.paused) == (made.id, HOLDERS.format(mark), False)
    assert made.ends is not None
    assert made.ends.timestamp() == pytest.approx(made.expires_at, abs=0.001)
    assert listed.ends == made.ends
    renewed = client.renew(made.id)
    assert (renewed.expires_at, renewed.ends) == (inf, None)

    assert client.publish(marked("e1", mark)).again is False
    assert client.publish(marked("e1", mark)).again is True
    (first,) = client.pull(made.id)
    assert (first.number, first.source, first.id) == (1, "INPS", f"e1-{mark}")
    assert client.pull(made.id) == [first], "pulling changes nothing"

    client.pause(made.id)
    client.publish(marked("e2", mark))
    assert client.pull(made.id, after=1) == []
    client.resume(made.id)
    (second,) = client.pull(made.id, after=1)
    assert second.number == 2

    client.acknowledge(made.id, 1)
    assert client.pull(made.id) == [second]
    assert client.unsubscribe(made.id).dropped == 1
    assert client.subscriptions() == ()


def test_event_is_delivered_as_fields_object_and_bytes(peer: str, owner: str, mark: str) -> None:
    with Client(peer, owner, schema="agencies") as client:
        id = client.subscribe(HOLDERS.format(mark)).id
        event = marked("e1", mark, previous={"name.ACCURACY": "high"}, available=60)
        client.publish(event)
        (found,) = client.pull(id)
        assert isinstance(found.event, Event)
        assert found.fields["quality"] == {"Enterprise/Holder.Name.accuracy": 0.3}
        assert found.fields["previous"] == {"Enterprise/Holder.Name.accuracy": 0.9}
        assert found.fields["data"]["Enterprise/Holder.Name"] == "M. Mecalla"
        assert found.fields["available"] == 60
        assert found.data_class == "Enterprise/Holder"
        assert dict(found.data) == found.fields["data"]
        assert found.data["Name"] == "M. Mecalla"
        assert found.quality["Name.accuracy"] == 0.3
        assert found.previous["Name.accuracy"] == 0.9
        assert found.xml.startswith(b"<?xml")
        typed = found.fields
        again = EventReader(load_schema("agencies")).from_fields({**typed, "id": f"e2-{mark}"})
        assert client.publish(again).again is False
    with Client(peer, owner) as plain:
        first, second = plain.pull(id)
        assert first.fields == typed, "strings and numbers are the same without the schema"
        assert second.fields == {**typed, "id": f"e2-{mark}"}
        with pytest.raises(SchemaError, match="without its schema"):
            _ = first.event
        with pytest.raises(SchemaError, match="without its schema"):
            _ = first.data
        with pytest.raises(SchemaError, match="without its schema"):
            plain.publish(again)


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ({**holder(1), "clas": "x"}, "unknown field 'clas'.*did you mean class"),
        ({**holder(1), "id": None}, "'id' is missing"),
        ({**holder(1), "data": ["Name"]}, "'data' is not a JSON object"),
        ({**holder(1), "quality": {"accuracy": 1}}, "names no quality dimension"),
        ({**holder(1), "data": {"Name": None}}, "data 'Name': None is no value"),
        ({**holder(1), "data": {"Nmae": "x"}}, "no property 'Nmae'.*did you mean"),
        ({**holder(1), "quality": {"Name.accuracy": 3}}, "3"),
        ({**holder(1), "available": -1}, "'available' is -1"),
        ({**holder(1), "available": float("nan")}, "'available' is nan"),
    ],
)
def test_wrong_event_is_rejected_with_the_reason(
    event: dict[str, Any], problem: str, client: Client
) -> None:
    with pytest.raises(QnsError, match=problem):
        client.publish(event)


def test_fault_of_the_peer_is_raised(client: Client, mark: str) -> None:
    with pytest.raises(ValueRefused, match=r"no property 'Nmae' \(did you mean Name"):
        client.subscribe("Enterprise/Holder where Nmae = 'x'")
    with pytest.raises(ValueRefused, match="unknown subscription 'nothing'"):
        client.pull("nothing")
    with pytest.raises(NotAllowed, match="cannot publish for CoC"):
        client.publish({**holder(1), "source": "CoC"})
    id = client.subscribe("Enterprise").id
    client.pause(id)
    with pytest.raises(NotAllowed, match="paused already"):
        client.pause(id)


def test_subscription_is_invisible_to_other_owners(peer: str, client: Client) -> None:
    id = client.subscribe("Enterprise").id
    with Client(peer, "somebody-else") as other:
        assert other.subscriptions() == ()
        with pytest.raises(ValueRefused, match="unknown subscription"):
            other.unsubscribe(id)


def test_pull_waits_for_the_first_delivery(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    found: list[str] = []

    def wait() -> None:
        found.extend(each.id for each in client.pull(id, wait_s=60))

    waiting = Thread(target=wait)
    waiting.start()
    client.publish(marked("e1", mark))  # not held up by the pull: threads share a client
    waiting.join(timeout=30)
    assert found == [f"e1-{mark}"]


def test_close_ends_a_waiting_pull(peer: str, owner: str) -> None:
    client = Client(peer, owner)
    id = client.subscribe("Enterprise").id
    problems: list[QnsError] = []
    started = threading.Event()

    def wait() -> None:
        started.set()
        try:
            while True:
                client.pull(id, wait_s=60)
        except QnsError as problem:
            problems.append(problem)

    waiting = Thread(target=wait)
    waiting.start()
    started.wait()
    client.close()
    waiting.join(timeout=30)
    assert [type(problem) for problem in problems] == [PeerUnreachable]
    with pytest.raises(PeerUnreachable, match="closed"):
        client.subscriptions()


def test_deliveries_are_in_order_and_acknowledged(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    for number in range(5):
        client.publish(marked(number, mark))
    with client.deliveries(id, limit=2) as stream:
        seen = [next(stream).id for _ in range(3)]
        assert Cursor.of(stream.cursor).number == 3
    assert seen == [f"{number}-{mark}" for number in range(3)]
    assert [each.number for each in client.pull(id)] == [4, 5]


def test_delivery_comes_again_after_an_exception(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    for number in range(3):
        client.publish(marked(number, mark))

    def read() -> None:
        with client.deliveries(id) as stream:
            for delivered in stream:
                if delivered.number == 2:
                    raise RuntimeError("the second")

    with pytest.raises(RuntimeError, match="the second"):
        read()
    assert [each.number for each in client.pull(id)] == [2, 3]
    assert next(client.deliveries(id, after=2)).number == 3, "the caller's own cursor counts"


def test_cursor_ahead_of_a_restored_peer_is_reported(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    client.publish(marked("e1", mark))
    with pytest.raises(CursorAhead, match="has had 1 deliveries, the cursor is at 7"):
        client.deliveries(id, after=7).take()
    assert len(client.pull(id)) == 1, "nothing was acknowledged"


def test_large_events_are_pulled(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    for number in range(40):
        data = {"Name": "x" * 60_000, "FiscalCode": mark}
        client.publish({**marked(number, mark), "data": data})
    stream = client.deliveries(id)
    assert [next(stream).id for _ in range(40)] == [f"{number}-{mark}" for number in range(40)]


# --- lost answers and restarts ----------------------------------------------------------------


@pytest.fixture
def far(wire: LossyWire, owner: str) -> Any:
    with Client(wire.url, owner) as made:
        yield made


def test_publish_is_repeated_after_a_lost_answer(far: Client, wire: LossyWire) -> None:
    wire.answers_to_lose = 1
    published = far.publish(holder(f"lost-{wire.url}"))
    assert (published.again, wire.lost) == (True, 1), "the first attempt had done it"


def test_repeated_subscribe_makes_one_subscription(far: Client, wire: LossyWire) -> None:
    wire.answers_to_lose = 2
    made = far.subscribe("Enterprise")
    assert wire.lost == 2
    assert [each.id for each in far.subscriptions()] == [made.id]


@pytest.mark.parametrize("method", ["unsubscribe", "pause"])
def test_request_that_is_not_idempotent_is_not_repeated(
    method: str, far: Client, wire: LossyWire
) -> None:
    id = far.subscribe("Enterprise").id
    wire.answers_to_lose = 1
    call: Callable[[str], object] = getattr(far, method)
    with pytest.raises(PeerUnreachable) as raised:
        call(id)
    assert raised.value.may_be_done
    assert [each.id for each in far.subscriptions() if not each.paused] == [], "it was done"


def test_unreachable_peer_is_reported_with_a_remedy() -> None:
    with (
        Client("http://127.0.0.1:1/", "maria", patience_s=0) as client,
        pytest.raises(PeerUnreachable, match=r"Connection refused \(start it with qns peer run"),
    ):
        client.subscriptions()


def test_server_that_is_no_peer_is_reported(peer: str) -> None:
    with (
        Client(f"{peer}elsewhere/", "maria") as client,
        pytest.raises(ValueRefused, match="answers 404 to a SOAP request: it is no peer"),
    ):
        client.subscriptions()


def test_request_waits_for_a_peer_that_restarts(own_peer: PeerProcess) -> None:
    with Client(own_peer.url, "maria") as client:
        id = client.subscribe("Enterprise/Holder").id
        assert client.publish(holder("before")).again is False
        own_peer.kill()
        answers: list[Published] = []
        asking = Thread(target=lambda: answers.append(client.publish(holder("after"))))
        asking.start()
        assert not answers, "nobody is there to answer"
        own_peer.start()
        asking.join(timeout=60)
        assert [answer.again for answer in answers] == [False]
        assert [each.id for each in client.pull(id)] == ["before", "after"]


def test_connection_that_the_peer_has_closed_is_not_used(own_peer: PeerProcess) -> None:
    with Client(own_peer.url, "maria", patience_s=0) as client:
        client.subscribe("Enterprise", id="s1")
        own_peer.stop()
        own_peer.start()
        assert [each.id for each in client.subscriptions()] == ["s1"], "at the first attempt"


def test_unsubscribe_is_repeated_if_the_peer_cannot_have_received_it(own_peer: PeerProcess) -> None:
    with Client(own_peer.url, "maria") as client:
        id = client.subscribe("Enterprise/Holder").id
        own_peer.kill()
        asking = Thread(target=client.unsubscribe, args=(id,))
        asking.start()
        own_peer.start()
        asking.join(timeout=60)
        assert client.subscriptions() == ()
