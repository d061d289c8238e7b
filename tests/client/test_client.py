"""Client: every method, against a real peer."""

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
from qns.iil.requests import Published
from tests.client.peers import LossyWire, PeerProcess, holder

HOLDERS = "Enterprise/Holder where FiscalCode = '{}'"


def marked(id: object, mark: str, **more: Any) -> dict[str, Any]:
    return holder(f"{id}-{mark}", data={"Name": "M. Mecalla", "FiscalCode": mark}, **more)


def test_a_life_of_a_subscription(client: Client, mark: str) -> None:
    made = client.subscribe(HOLDERS.format(mark), id=f"s-{mark}", lifetime_s=3_600)
    assert made.id == f"s-{mark}"
    assert made.pending == ()
    assert made.expires_at < time.time() + 3_700
    (listed,) = client.subscriptions()
    assert (listed.id, listed.text, listed.paused) == (made.id, HOLDERS.format(mark), False)
    assert client.renew(made.id).expires_at == inf

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


def test_an_event_is_delivered_as_fields_as_an_object_and_as_bytes(
    peer: str, owner: str, mark: str
) -> None:
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
def test_a_wrong_event_is_refused_with_words(
    event: dict[str, Any], problem: str, client: Client
) -> None:
    with pytest.raises(QnsError, match=problem):
        client.publish(event)


def test_what_the_peer_refuses_is_raised(client: Client, mark: str) -> None:
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


def test_others_do_not_see_a_subscription(peer: str, client: Client) -> None:
    id = client.subscribe("Enterprise").id
    with Client(peer, "somebody-else") as other:
        assert other.subscriptions() == ()
        with pytest.raises(ValueRefused, match="unknown subscription"):
            other.unsubscribe(id)


def test_a_pull_waits_for_the_first_delivery(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    found: list[str] = []

    def wait() -> None:
        found.extend(each.id for each in client.pull(id, wait_s=60))

    waiting = Thread(target=wait)
    waiting.start()
    client.publish(marked("e1", mark))  # not held up by the pull: threads share a client
    waiting.join(timeout=30)
    assert found == [f"e1-{mark}"]


def test_closing_a_client_ends_what_waits(peer: str, owner: str) -> None:
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


def test_deliveries_follow_in_order_and_are_acknowledged(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    for number in range(5):
        client.publish(marked(number, mark))
    with client.deliveries(id, limit=2) as stream:
        seen = [next(stream).id for _ in range(3)]
        assert stream.cursor == 3
    assert seen == [f"{number}-{mark}" for number in range(3)]
    assert [each.number for each in client.pull(id)] == [4, 5]


def test_what_an_exception_interrupts_comes_again(client: Client, mark: str) -> None:
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


def test_a_stream_with_a_cursor_from_before_a_restore_says_so(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    client.publish(marked("e1", mark))
    with pytest.raises(CursorAhead, match="has had 1 deliveries, the cursor is at 7"):
        client.deliveries(id, after=7).take()
    assert len(client.pull(id)) == 1, "nothing was acknowledged"


def test_large_events_are_pulled_too(client: Client, mark: str) -> None:
    id = client.subscribe(HOLDERS.format(mark)).id
    for number in range(40):
        data = {"Name": "x" * 60_000, "FiscalCode": mark}
        client.publish({**marked(number, mark), "data": data})
    stream = client.deliveries(id)
    assert [next(stream).id for _ in range(40)] == [f"{number}-{mark}" for number in range(40)]


# --- a bad wire -------------------------------------------------------------------------------


@pytest.fixture
def far(wire: LossyWire, owner: str) -> Any:
    with Client(wire.url, owner) as made:
        yield made


def test_a_lost_answer_to_publishing_is_asked_for_again(far: Client, wire: LossyWire) -> None:
    wire.answers_to_lose = 1
    published = far.publish(holder(f"lost-{wire.url}"))
    assert (published.again, wire.lost) == (True, 1), "the first attempt had done it"


def test_a_lost_answer_to_subscribing_makes_one_subscription(far: Client, wire: LossyWire) -> None:
    wire.answers_to_lose = 2
    made = far.subscribe("Enterprise")
    assert wire.lost == 2
    assert [each.id for each in far.subscriptions()] == [made.id]


@pytest.mark.parametrize("method", ["unsubscribe", "pause"])
def test_what_may_not_be_done_twice_is_not_repeated(
    method: str, far: Client, wire: LossyWire
) -> None:
    id = far.subscribe("Enterprise").id
    wire.answers_to_lose = 1
    call: Callable[[str], object] = getattr(far, method)
    with pytest.raises(PeerUnreachable) as raised:
        call(id)
    assert raised.value.may_be_done
    assert [each.id for each in far.subscriptions() if not each.paused] == [], "it was done"


def test_no_peer_is_told_with_a_remedy() -> None:
    with (
        Client("http://127.0.0.1:1/", "maria", patience_s=0) as client,
        pytest.raises(PeerUnreachable, match=r"Connection refused \(start it with qns peer run"),
    ):
        client.subscriptions()


def test_another_server_is_not_taken_for_a_peer(peer: str) -> None:
    with (
        Client(f"{peer}elsewhere/", "maria") as client,
        pytest.raises(ValueRefused, match="answers 404 to a SOAP request: it is no peer"),
    ):
        client.subscriptions()


def test_a_peer_that_comes_back_is_waited_for(own_peer: PeerProcess) -> None:
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


def test_a_connection_that_was_closed_meanwhile_is_not_used(own_peer: PeerProcess) -> None:
    with Client(own_peer.url, "maria", patience_s=0) as client:
        client.subscribe("Enterprise", id="s1")
        own_peer.stop()
        own_peer.start()
        assert [each.id for each in client.subscriptions()] == ["s1"], "at the first attempt"


def test_unsubscribing_waits_for_the_peer_if_it_cannot_have_heard(own_peer: PeerProcess) -> None:
    with Client(own_peer.url, "maria") as client:
        id = client.subscribe("Enterprise/Holder").id
        own_peer.kill()
        asking = Thread(target=client.unsubscribe, args=(id,))
        asking.start()
        own_peer.start()
        asking.join(timeout=60)
        assert client.subscriptions() == ()
