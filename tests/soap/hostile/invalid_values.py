"""Well-formed messages with values that are invalid or contradict each other."""

from __future__ import annotations

from tests.soap.hostile.case import Answer, Case, local, peer
from tests.soap.hostile.wire import (
    ask_local,
    ask_peer,
    base64,
    change_sub,
    element,
    elements,
    entry,
    notification,
    notify,
    publish,
    pull,
    standing,
    subscribe,
)


def _nested(levels: int) -> bytes:
    """Returns a notification whose subtree has this many levels."""
    opening = f"<child>{entry(receiver='CoC')}" * levels
    return notify(notification(entry=entry() + opening + "</child>" * levels))


def _child(name: str, below: str = "") -> str:
    return element("child", entry(receiver=name) + below)


def _deliver(**changed: object) -> bytes:
    return notify(notification(**changed))


def _placed(**changed: object) -> bytes:
    return _deliver(entry=entry(**changed))


_D2Q_START = "&lt;?xml version='1.0'?>&lt;subscription xmlns='urn:qns:d2q:1'>"


def _swapped() -> bytes:
    return notify(notification().replace("<source>INAIL</source>", "") + "<source>INAIL</source>")


def _below(*names: str) -> bytes:
    return notify(notification(entry=entry() + "".join(map(_child, names))))


def _data(name: str) -> str:
    return elements(property=name, value="A")


def _quality(value: str, **changed: object) -> str:
    sound: dict[str, object] = {"property": "Name", "dimension": "accuracy"}
    return elements(**sound | changed, value=value)


CASES: list[Case] = [
    peer("remaining NaN", lambda: _deliver(remaining="NaN")),
    peer("remaining -INF", lambda: _deliver(remaining="-INF")),
    peer("remaining -1", lambda: _deliver(remaining="-1")),
    peer("remaining in words", lambda: _deliver(remaining="a while")),
    peer("remaining 0x10", lambda: _deliver(remaining="0x10")),
    peer("remaining of 100,000 digits", lambda: _deliver(remaining="-" + "9" * 100_000)),
    peer("a negative number", lambda: _placed(number="-1")),
    peer("a number of 31 digits", lambda: _placed(number="1" + "0" * 30)),
    peer("a number of 500,000 digits", lambda: _placed(number="1" * 500_000)),
    peer("a number with a fraction", lambda: _placed(number="2.0")),
    peer("a number with an exponent", lambda: _placed(number="2e0")),
    peer("a number with underscores", lambda: _placed(number="1_0")),
    peer("a number in other digits", lambda: _placed(number="٢")),
    peer("a number after 5,000 zeros", lambda: _placed(number="0" * 5_000 + "2")),
    peer("NaN as a number", lambda: _placed(number="NaN")),
    peer("an empty number", lambda: _placed(number="")),
    peer("a number with an element in it", lambda: _placed(number="<a/>")),
    peer("a truth that is none", lambda: _deliver(entry="maybe")),
    peer("base64 with spaces and stars", lambda: _deliver(xml=" PGV2* ZW50Lz4="), Answer.NOT_TAKEN),
    peer("base64 with é", lambda: _deliver(xml="PGV2é")),
    peer("base64 of an odd length", lambda: _deliver(xml="PGV2Z")),
    peer("base64 with = in the middle", lambda: _deliver(xml="PG==V2Z=")),
    peer("base64 for URLs", lambda: _deliver(xml="-_-_"), Answer.NOT_TAKEN),
    peer("no base64 at all", lambda: _deliver(xml=""), Answer.NOT_TAKEN),
    peer("900 KB of base64", lambda: _deliver(xml=base64(bytes(690_000))), Answer.NOT_TAKEN),
    peer("4 MB of base64", lambda: _deliver(xml=base64(bytes(3_000_000))), Answer.NOT_TAKEN),
    peer("5 MB of base64", lambda: _deliver(xml=base64(bytes(3_700_000)))),
    peer("fields in another order", lambda: _swapped()),
    peer("a field missing", lambda: _deliver(sequence=None)),
    peer("a field twice", lambda: _deliver(sequence=["2", "2"])),
    peer("an entry missing", lambda: _deliver(entry=None)),
    peer("two entries", lambda: _deliver(entry=[entry(), entry()])),
    peer("entries 10,000 deep", lambda: _nested(10_000)),
    peer("entries 123 deep", lambda: _nested(123)),
    peer("entries 100 deep", lambda: _nested(100), Answer.REFUSED),
    peer("entries 50 deep, all the same", lambda: _nested(50), Answer.NOT_TAKEN),
    peer("an entry below itself", lambda: _below("INPS"), Answer.NOT_TAKEN),
    peer("the producer below the receiver", lambda: _below("INAIL"), Answer.NOT_TAKEN),
    peer("the same receiver twice", lambda: _below("CoC", "CoC"), Answer.NOT_TAKEN),
    peer("3,000 children", lambda: _below(*["CoC"] * 3_000), Answer.NOT_TAKEN),
    peer("a path of 100,000", lambda: _deliver(path=["A"] * 100_000)),
    peer("a path of 15,000", lambda: _deliver(path=["A"] * 15_000), Answer.NOT_TAKEN),
    peer("no path", lambda: _deliver(path=None), Answer.NOT_TAKEN),
    peer("a path in a circle", lambda: _deliver(path=["INAIL", "INPS", "INAIL"]), Answer.NOT_TAKEN),
    peer("empty names", lambda: _deliver(source="", path=""), Answer.NOT_TAKEN),
    peer("20,000 fences", lambda: _placed(fence=[elements(epoch=1, first=1)] * 19_000)),
    peer("a standing with a hole", lambda: ask_peer("pullGap", standing(last=None))),
    peer("50,000 removed elements", lambda: change_sub(removed=["x"] * 50_000)),
    local("a lifetime NaN", lambda: subscribe("Enterprise", lifetime="NaN")),
    local("a lifetime 0", lambda: subscribe("Enterprise", lifetime="0")),
    local("a lifetime -1", lambda: subscribe("Enterprise", lifetime="-1")),
    local("a limit -1", lambda: pull(limit="-1")),
    local("a limit of 10^30", lambda: pull(limit="1" + "0" * 30)),
    local("a wait of 10^9", lambda: pull(wait="1000000000")),
    local("a wait for ever", lambda: pull(wait="INF")),
    local("a wait NaN", lambda: pull(wait="NaN")),
    local("a wait -1", lambda: pull(wait="-1")),
    local("acknowledging -1", lambda: ask_local("acknowledge", id="s1", upto="-1")),
    local("acknowledging 2^63", lambda: ask_local("acknowledge", id="s1", upto=2**63)),
    local("a published time that is none", lambda: publish(published="yesterday")),
    local("an availability NaN", lambda: publish(available="NaN")),
    local("an availability -1", lambda: publish(available="-1")),
    local("a quality of 2", lambda: publish(quality=_quality("2"))),
    local("a quality NaN", lambda: publish(quality=_quality("NaN"))),
    local("a quality in no label", lambda: publish(quality=_quality("splendid"))),
    local("a quality of 100,000 digits", lambda: publish(quality=_quality("0." + "1" * 100_000))),
    local("an unknown dimension", lambda: publish(quality=_quality("1", dimension="beauty"))),
    local("an unknown property", lambda: publish(data=_data("Shoe"))),
    local("a property of 500,000 characters", lambda: publish(data=_data("x" * 500_000))),
    local("a property twice", lambda: publish(data=[_data("Name")] * 2)),
    local("5,000 data", lambda: publish(data=[_data("Name")] * 5_000)),
    local("an unknown class", lambda: publish(class_="Spaceship")),
    local("a class of 100,000 steps", lambda: publish(class_="Enterprise/" * 80_000)),
    local("an event without an id", lambda: publish(id="")),
    local("an id of 100,000 characters", lambda: publish(id="x" * 100_000)),
    local("an empty owner", lambda: subscribe("Enterprise", owner="", id="s1"), Answer.REFUSED),
    local("an owner with control characters", lambda: subscribe("Enterprise", owner="a&#9;b")),
    local("an owner of 100,000 characters", lambda: subscribe("Enterprise", owner="a" * 100_000)),
    local("a subscription's id with a line break", lambda: subscribe("Enterprise", id="a&#10;b")),
    local("an empty subscription", lambda: subscribe("")),
    local("a subscription of 1 MB", lambda: subscribe("Enterprise " * 94_000)),
    local("a subscription of 500 KB of brackets", lambda: subscribe("(" * 500_000)),
    local("a subscription about nothing known", lambda: subscribe("Spaceship where Speed = 3")),
    local("a subscription in SQL", lambda: subscribe("Enterprise'; DROP TABLE subscriptions; --")),
    local("a subscription in bad D2Q XML", lambda: subscribe("&lt;?xml version='1.0'?>&lt;a>")),
    local("D2Q XML of 200,000 elements", lambda: subscribe(_D2Q_START + "&lt;a/>" * 140_000)),
    local("D2Q XML 10,000 deep", lambda: subscribe(_D2Q_START + "&lt;a>" * 10_000)),
]
