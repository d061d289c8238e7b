"""Tests with a model: its history breaks no rule, and a damaged history breaks the right one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qns.history.judge import judge
from qns.history.records import FIELDS, Record, new_record
from qns.history.verdict import Rule
from tests.history.model import Model
from tests.history.state import AVAILABILITIES_S, CONTENTS, TEXTS, subscription

NAMES = ("A", "B", "C")
FEWER = settings(max_examples=max(10, settings.default.max_examples // 10))
"""Damage is found in few examples, and a history of 60 steps takes long to judge."""
STEADY = {
    "subscribe": lambda m, a, b, n: m.subscribe(
        a, TEXTS[n % len(TEXTS)], "g" if n % 3 == 0 else ""
    ),
    "unsubscribe": lambda m, a, b, n: m.unsubscribe(a, n),
    "pause": lambda m, a, b, n: m.pause(a, n),
    "resume": lambda m, a, b, n: m.resume(a, n),
    "lapse": lambda m, a, b, n: m.lapse(a, n),
    "publish": lambda m, a, b, n: m.publish(a, n, AVAILABILITIES_S[n // len(CONTENTS) % 3]),
    "carry": lambda m, a, b, n: m.carry(a, b),
    "entrust": lambda m, a, b, n: m.entrust(a, b, n),
    "forward": lambda m, a, b, n: m.forward(a),
    "lull": lambda m, a, b, n: m.lull(a if n % 2 else ""),
    "calm": lambda m, a, b, n: m.calm(),
}
OFTEN = (*["subscribe"] * 2, *["publish"] * 6, *["carry"] * 2, *["entrust"] * 4)
DISTURBING: dict[str, Callable[[Model, str, str, int], Any]] = {
    "drop": lambda m, a, b, n: m.drop(a, b, n),
    "discard": lambda m, a, b, n: m.discard(a, b, n),
    "withhold": lambda m, a, b, n: m.drop(a, b, n, "withhold"),
    "read": lambda m, a, b, n: m.read(a, n),
    "overflow": lambda m, a, b, n: m.overflow(a, n),
    "backup": lambda m, a, b, n: m.backup(a),
    "restore": lambda m, a, b, n: m.restore(a, n),
    "leave": lambda m, a, b, n: m.leave(a),
    "join": lambda m, a, b, n: [m.join(x) for x in NAMES if x not in m.incarnations],
}


@st.composite
def models(draw: st.DrawFn, *, disturbed: bool) -> Model:
    what = {**STEADY, **(DISTURBING if disturbed else {})}
    place = st.integers(0, 2)
    step = st.tuples(st.sampled_from([*what, *OFTEN]), place, place, st.integers(0, 35))
    model = Model(NAMES)
    for do, a, b, number in draw(st.lists(step, min_size=20, max_size=60)):
        model.now += 1
        members = list(model.incarnations)
        if members or do == "join":
            ends = [members[each % len(members)] if members else "" for each in (a, b)]
            what[do](model, *ends, number)
    model.now += 1
    model.calm()
    return model


def broken(records: list[Record]) -> set[Rule]:
    return {rule for rule, number in judge(records).broken.items() if number}


@given(models(disturbed=True))
def test_history_of_a_correct_federation_breaks_no_rule(model: Model) -> None:
    verdict = judge(model.records)
    assert verdict.holds, verdict.violations[0].explain()


# -- damage: each test takes a correct history and breaks it in one way ----------------------------


def pick(data: st.DataObject, places: list[int]) -> int:
    assume(places)
    return data.draw(st.sampled_from(places))


def having(records: list[Record], do: str, **fields: object) -> list[int]:
    return [
        place
        for place, record in enumerate(records)
        if record["do"] == do and all(record[name] == value for name, value in fields.items())
    ]


def is_steady(records: list[Record], place: int) -> bool:
    """True if the subscription notified here is neither ended nor paused before the next calm."""
    record = records[place]
    for later in records[place + 1 :]:
        if later["do"] == "calm":
            return True
        if later["do"] in ("usub", "pause") and later["sub"] == record["sub"]:
            return False
    return False


@FEWER
@given(models(disturbed=False), st.data())
def test_missing_notification_breaks_liveness(model: Model, data: st.DataObject) -> None:
    records = model.records
    place = pick(data, [each for each in model.certainly_owed if is_steady(records, each)])
    assert broken(records[:place] + records[place + 1 :]) == {Rule.LIVENESS}


@FEWER
@given(models(disturbed=False), st.data())
def test_missing_notification_of_a_backlog_breaks_completeness(
    model: Model, data: st.DataObject
) -> None:
    """Removes the notification of an event that was published before the subscription began."""
    records = model.records
    begun = {r["sub"]: n for n, r in enumerate(records) if r["do"] == "sub"}
    published = {r["event"]["id"]: n for n, r in enumerate(records) if r["do"] == "pub"}
    late = [
        place
        for place in having(records, "ntfy", group="")
        if published[records[place]["event"]] < begun[records[place]["sub"]]
        and records[published[records[place]["event"]]]["event"].get("available") == "INF"
        and is_steady(records, place)
    ]
    place = pick(data, late)
    assert broken(records[:place] + records[place + 1 :]) == {Rule.COMPLETENESS}


@FEWER
@given(models(disturbed=False), st.data())
def test_duplicate_notification_breaks_minimality(model: Model, data: st.DataObject) -> None:
    records = model.records
    place = pick(data, having(records, "ntfy"))
    assert broken([*records[:place], records[place], *records[place:]]) == {Rule.MINIMALITY}


@FEWER
@given(models(disturbed=False), st.data())
def test_duplicate_crossing_breaks_minimality(model: Model, data: st.DataObject) -> None:
    records = model.records
    place = pick(data, having(records, "cross"))
    assert broken([*records[:place], records[place], *records[place:]]) == {Rule.MINIMALITY}


@FEWER
@given(models(disturbed=False), st.data())
def test_notifications_in_wrong_order_break_fifo(model: Model, data: st.DataObject) -> None:
    records = [*model.records]
    published = {r["event"]["id"]: n for n, r in enumerate(records) if r["do"] == "pub"}
    notified = having(records, "ntfy", group="")
    pairs = [
        (one, other)
        for one in notified
        for other in notified
        if one < other
        and published[records[other]["event"]] < one
        and all(records[one][name] == records[other][name] for name in ("org", "sub", "source"))
    ]
    assume(pairs)
    one, other = data.draw(st.sampled_from(pairs))
    records[one], records[other] = (
        {**records[one], "event": records[other]["event"]},
        {**records[other], "event": records[one]["event"]},
    )
    assert Rule.FIFO in broken(records)


@FEWER
@given(models(disturbed=False), st.data())
def test_notification_of_an_event_that_does_not_match_breaks_legality(
    model: Model, data: st.DataObject
) -> None:
    records = model.records
    known = [each for state in model.states.values() for each in state.published]
    wrong = [
        new_record(
            "ntfy", model.now, name, sub=user.id, group=user.group, source=source, event=event
        )
        for name, state in model.states.items()
        for user in state.users.values()
        if user.is_active and not user.paused
        for published in known
        if not subscription(user.text).matches(published.event)
        for source, event in [published.key]
    ]
    assume(wrong)
    found = broken([*records, data.draw(st.sampled_from(wrong))])
    assert Rule.LEGALITY in found
    assert found <= {Rule.LEGALITY, Rule.FIFO, Rule.MINIMALITY}


@FEWER
@given(models(disturbed=False), st.data())
def test_notification_during_a_pause_breaks_legality(model: Model, data: st.DataObject) -> None:
    records = model.records
    place = pick(data, having(records, "ntfy"))
    record = records[place]
    pause, resume = (
        new_record(do, record["t"], record["org"], sub=record["sub"]) for do in ("pause", "resume")
    )
    damaged = [*records[:place], pause, record, resume, *records[place + 1 :]]
    assert broken(damaged) == {Rule.LEGALITY}


@FEWER
@given(models(disturbed=False), st.data())
def test_notification_after_the_end_of_a_subscription_breaks_legality(
    model: Model, data: st.DataObject
) -> None:
    records = model.records
    place = pick(data, having(records, "ntfy"))
    org, sub = records[place]["org"], records[place]["sub"]
    assume(not having(records, "usub", org=org, sub=sub))
    end = new_record("usub", records[place]["t"], org, sub=sub, why="expired")
    found = broken([*records[:place], end, *records[place:]])
    assert Rule.LEGALITY in found
    assert found <= {Rule.LEGALITY, Rule.ECONOMY}


@FEWER
@given(models(disturbed=False), st.data())
def test_notification_of_an_unpublished_event_breaks_validity(
    model: Model, data: st.DataObject
) -> None:
    records = model.records
    place = pick(data, having(records, "ntfy"))
    invented = {**records[place], "event": "invented"}
    assert broken([*records[: place + 1], invented, *records[place + 1 :]]) == {Rule.VALIDITY}


@FEWER
@given(models(disturbed=False), st.data())
def test_missing_take_breaks_no_gap(model: Model, data: st.DataObject) -> None:
    records = model.records
    takes = having(records, "take")
    stream = ("org", "source", "joined")
    not_last = [
        place
        for place in takes
        if any(
            later > place and all(records[later][f] == records[place][f] for f in stream)
            for later in takes
        )
    ]
    place = pick(data, not_last)
    found = broken(records[:place] + records[place + 1 :])
    assert found - {Rule.CUSTODY} == {Rule.NO_GAP}  # the event may also have been in custody


@FEWER
@given(models(disturbed=False), st.sampled_from(NAMES))
def test_missing_overflow_breaks_no_gap_when_the_reader_acknowledges(
    model: Model, name: str
) -> None:
    model.subscribe(name, "Thing", "")
    user = [*model.states[name].users.values()][-1]
    model.publish(name, 0, 0.0)
    model.publish(name, 1, 0.0)
    which = len([each for each in model.states[name].users.values() if each.is_active]) - 1
    model.overflow(name, which)
    assert model.records[-1]["sub"] == user.id
    read = {"sub": user.id, "upto": user.delivered, "count": len(user.unread)}
    records = [*model.records, new_record("ack", model.now, name, **read)]
    assert broken(records) == set()
    assert broken([*records[:-2], records[-1]]) == {Rule.NO_GAP}


@FEWER
@given(models(disturbed=False), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_needless_crossing_breaks_economy(model: Model, producer: str, consumer: str) -> None:
    """Adds a crossing after all subscriptions have ended."""
    assume(producer != consumer)
    for name, state in model.states.items():
        for user in state.users.values():
            if user.is_active:
                user.is_active = False
                model.records.append(
                    new_record("usub", model.now, name, sub=user.id, why="unsubscribed")
                )
    model.calm()
    model.publish(producer, 0, 0.0)
    event = model.records[-1]["event"]["id"]
    number = len(model.states[producer].streams[consumer]) + 1
    crossing = {
        "to": consumer,
        "joined": model.incarnations[consumer],
        "epoch": 0,
        "number": number,
    }
    model.records.append(new_record("cross", model.now, producer, **crossing, event=event))
    assert broken(model.records) == {Rule.ECONOMY}


@FEWER
@given(models(disturbed=False), st.permutations(NAMES))
def test_promise_that_is_not_kept_breaks_custody(model: Model, names: list[str]) -> None:
    """Removes the arrival of an event in custody while the publisher is absent."""
    publisher, forwarder, receiver = names
    for name in (forwarder, receiver):
        model.subscribe(name, "Thing", "")
    model.calm()
    model.publish(publisher, 0, 0.0)
    while model.carry(publisher, forwarder):
        pass
    model.entrust(forwarder, receiver, 0)
    kept = len(model.records)
    model.lull(publisher)
    assert not broken(model.records)
    assert broken([*model.records[:kept], model.records[-1]]) == {Rule.CUSTODY}


@pytest.mark.parametrize("do", [do for do in FIELDS if do not in ("host", "rights")])
def test_model_writes_every_kind_of_record(do: str) -> None:
    """A fixed run contains each kind of record, so that the other tests cover all kinds."""
    chance = Random(19)
    model, every = Model(NAMES), {**STEADY, **DISTURBING}
    for _ in range(800):
        model.now += 1
        name, other = (chance.choice(list(model.incarnations) or [""]) for _ in range(2))
        what = chance.choice([*every, *OFTEN]) if name else "join"
        every[what](model, name, other, chance.randrange(36))
    model.calm()
    assert judge(model.records).holds
    assert having(model.records, do)
