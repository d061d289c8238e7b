"""A subtree is served although its forwarder is silent, refuses the event or has left."""

from __future__ import annotations

from collections import Counter

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import ChangeSub, Entry, Notification, Notified, Notify, Outcome, SubChanged
from qns.errors import Busy
from qns.iil.requests import Publish, Subscribe
from qns.simulation.world import TUNING
from tests.edl.lone_peer import TAKEN, LonePeer
from tests.edl.peers import federation, notification
from tests.edl.test_views_at_producers import element

REPORT = element("Report")
NOT_NOW = Outcome(False, "too much to do")
NEVER = Outcome(False, "unreadable", permanent=True)


def producer_of(*consumers: str, capability: int = 1, **tuning: object) -> LonePeer:
    """Returns the peer P, at which all consumers have subscribed to every report."""
    lone = LonePeer("P", federation("P", *consumers, capability=capability), tuning)
    lone.settle()
    for name in consumers:
        change = ChangeSub(1, 1, 1, None, 1, (REPORT,), (), str(Digest([REPORT])))
        assert isinstance(lone.receive(name, change), SubChanged)
    return lone


def publish(lone: LonePeer, id: str = "e1", **fields: object) -> None:
    event = {"id": id, "class": "Report", "source": "P", **fields}
    lone.do(Publish(EventReader(WEATHER).from_fields(event)))


def forwarder_of(*children: Entry, members: tuple[str, ...] = ("G", "C", "D", "E")) -> LonePeer:
    """Returns the peer F, which has accepted an event of P with this subtree."""
    lone = LonePeer("F", federation("P", "F", *members))
    lone.settle()
    item = notification("P", "e1", Entry("F", 1, 1, 1, 0, (), children))
    reply = lone.receive("P", Notify((item,)))
    assert isinstance(reply, Notified)
    assert reply.outcomes == (TAKEN,)
    return lone


def child(name: str, *children: Entry) -> Entry:
    return Entry(name, 1, 1, 1, 0, (), children)


def receivers(lone: LonePeer, to: str) -> list[tuple[str, tuple[str, ...]]]:
    """Returns the receivers in the notify under way, each with the receivers below it."""
    request = lone.request(to)
    assert isinstance(request, Notify)
    return [
        (item.entry.receiver, tuple(each.receiver for each in item.entry.children))
        for item in request.items
        if isinstance(item, Notification)
    ]


# --- a silent child -------------------------------------------------------------------------------


def test_producer_sends_directly_to_every_child_of_a_silent_receiver() -> None:
    lone = producer_of("C", "D", "E", capability=1)
    lone.peer.edl.producer.trees._capabilities = {"P": 1, "C": 2}
    publish(lone)
    assert receivers(lone, "C") == [("C", ("D", "E"))]
    lone.answer("C", None)
    assert ("D", ()) in receivers(lone, "D")
    assert ("E", ()) in receivers(lone, "E")


def test_forwarder_adopts_every_child_of_a_silent_receiver() -> None:
    lone = forwarder_of(child("G", child("C"), child("D"), child("E")))
    assert lone.custody == {"G": ("C", "D", "E")}
    lone.answer("G", None)
    assert lone.custody == {"G": (), "C": (), "D": (), "E": ()}
    for name in ("C", "D", "E"):
        assert receivers(lone, name) == [(name, ())]


def test_adopted_children_are_served_after_a_crash() -> None:
    lone = forwarder_of(child("G", child("C"), child("D")))
    lone.answer("G", None)
    lone.start()
    assert lone.custody == {"G": (), "C": (), "D": ()}


def test_forwarder_adopts_at_once_below_a_receiver_that_it_does_not_reach() -> None:
    lone = LonePeer("F", federation("P", "F", "G", "C"))
    lone.answer("G", None)
    lone.settle()
    item = notification("P", "e1", Entry("F", 1, 1, 1, 0, (), (child("G", child("C")),)))
    lone.receive("P", Notify((item,)))
    assert lone.custody == {"G": (), "C": ()}
    assert receivers(lone, "C") == [("C", ())]


# --- a child that does not take the event ---------------------------------------------------------


def test_parcel_that_its_receiver_cannot_take_now_is_sent_again() -> None:
    lone = forwarder_of(child("C"))
    lone.answer("C", Notified((NOT_NOW,), None))
    assert lone.custody == {"C": ()}
    lone.wait(3.0)
    assert receivers(lone, "C") == [("C", ())]
    lone.answer("C", Notified((TAKEN,), None))
    assert lone.custody == {}


def test_parcel_that_its_receiver_never_takes_now_delays_nothing_else_on_the_link() -> None:
    lone = forwarder_of(child("C"))
    for _ in range(6):
        assert receivers(lone, "C") == [("C", ())]
        lone.answer("C", Notified((NOT_NOW,), None))
        lone.wait(TUNING.longest_pause_s)
    lone.answer("C", Notified((NOT_NOW,), None))
    lone.do(Subscribe("user", "Report", id="s"))
    assert isinstance(lone.request("C"), ChangeSub)
    assert lone.custody == {"C": ()}


def test_parcels_that_were_refused_are_sent_again_one_call_at_a_time() -> None:
    lone = LonePeer("F", federation("P", "F", "C"), {"notifications_per_call": 2})
    lone.settle()
    for number in range(1, 6):
        entry = Entry("F", 1, 1, number, 0, (), (Entry("C", 1, 1, number, 0),))
        lone.receive("P", Notify((notification("P", f"e{number}", entry),)))
    refused: list[str] = []
    while len(refused) < 20:
        request = lone.request("C")
        if isinstance(request, Notify):
            assert len(request.items) <= 2
            refused += [item.event for item in request.items if isinstance(item, Notification)]
            lone.answer("C", Notified((NOT_NOW,) * len(request.items), None))
        elif request is not None:
            lone.answer("C", lone.polite_reply("C"))
        else:
            lone.wait(TUNING.longest_pause_s)
    assert min(Counter(refused).values()) >= 3
    while not isinstance(lone.request("C"), Notify):
        lone.wait(TUNING.longest_pause_s)
    for _ in range(3):  # as soon as one is taken, the others follow without a pause
        lone.answer("C", Notified((TAKEN,) * len(receivers(lone, "C")), None))
    assert lone.custody == {}


def test_children_of_a_receiver_that_cannot_take_an_event_are_served_at_once() -> None:
    lone = forwarder_of(child("C", child("D")))
    lone.answer("C", Notified((NOT_NOW,), None))
    assert lone.custody == {"C": (), "D": ()}
    assert receivers(lone, "D") == [("D", ())]


def test_parcel_that_its_receiver_rejects_becomes_a_dead_letter() -> None:
    lone = forwarder_of(child("C", child("D")))
    lone.answer("C", Notified((NEVER,), None))
    assert lone.custody == {"D": ()}
    custody = lone.peer.edl.forwarder.custody
    assert [(each.receiver, each.reason) for each in custody.dead_letters.values()] == [
        ("C", "unreadable")
    ]
    lone.start()
    custody = lone.peer.edl.forwarder.custody
    assert [each.receiver for each in custody.dead_letters.values()] == ["C"]


# --- organisations that leave ---------------------------------------------------------------------


def test_producer_sends_again_what_a_leaving_forwarder_had_in_custody() -> None:
    lone = producer_of("C", "D", "E", capability=1)
    lone.peer.edl.producer.trees._capabilities = {"P": 1, "C": 2}
    publish(lone)
    lone.answer("C", Notified((TAKEN,), lone.standing_of("C", 1)))
    assert lone.request("D") is None
    lone.install(lone.document.without("C"))
    assert receivers(lone, "D") == [("D", ())]
    assert receivers(lone, "E") == [("E", ())]


def test_forwarder_serves_the_children_of_a_receiver_that_left() -> None:
    lone = forwarder_of(child("G", child("C"), child("D")))
    lone.install(lone.document.without("G"))
    assert lone.custody == {"C": (), "D": ()}
    lone.start()
    assert lone.custody == {"C": (), "D": ()}


def test_forwarder_serves_the_receivers_below_one_that_has_left_already() -> None:
    document = federation("P", "F", "G", "C", "D").without("G")
    lone = LonePeer("F", document)
    lone.settle()
    subtree = child("G", child("C"), child("D"))
    item = notification("P", "e1", Entry("F", 1, 1, 1, 0, (), (subtree,)))
    lone.receive("P", Notify((item,)))
    assert lone.custody == {"C": (), "D": ()}


def test_custody_for_a_receiver_that_came_back_ends() -> None:
    lone = forwarder_of(child("C"))
    lone.answer("C", None)
    returned = lone.document.without("C").with_organisation(lone.document["C"])
    lone.install(returned)
    assert lone.custody == {}


def test_organisation_that_owes_events_does_not_join_again() -> None:
    lone = producer_of("C")
    publish(lone)
    document = lone.document
    returned = document.without("P").with_organisation(document["P"])
    (answer,) = lone.install(returned)
    assert isinstance(answer, Busy)
    lone.document = document
    lone.acknowledge("C", 1)
    (answer,) = lone.install(returned)
    assert not isinstance(answer, Exception)
