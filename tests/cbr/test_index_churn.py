"""The compiled index under churn: buckets become large, become empty and are used again."""

from __future__ import annotations

import random
import threading

import pytest

from qns.cbr import oracle
from qns.cbr.domains import QUALITY, STRING
from qns.cbr.event import Event
from qns.cbr.index.compiled import CompiledIndex
from qns.cbr.index.layout import BUCKET_LENGTH, BUCKET_STRIDE, LARGE
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.d2q.schema import Attribute
from tests.strategies import ALL_TYPES, ORGANISATIONS, POOLS


def value_set(rng: random.Random, attribute: Attribute) -> ValueSet:
    domain = attribute.domain
    some = rng.choices(POOLS[domain], k=rng.choice([1, 1, 2, 3]))
    if domain is STRING:
        texts = [str(text) for text in some]
        match rng.randint(0, 5):
            case 0:
                return Strings.described(excluded=texts)
            case 1:
                return Strings.described(prefix=texts[0], suffix=texts[-1])
        return Strings.of(texts)
    ends = sorted(key for key in some if isinstance(key, int))
    match rng.randint(0, 3):
        case 0:
            values = Intervals.of((key, key) for key in ends)
        case 1:
            values = Intervals.of([(domain.lo, ends[0])])
        case 2:
            values = Intervals.of([(ends[0], domain.hi)])
        case _:
            values = Intervals.of([(ends[0], ends[-1]), (domain.hi, domain.hi)])
    if domain is not QUALITY:
        return values
    if rng.random() < 0.3:
        changed = Region.changes_by(ends[0]).intersect(Region.of(values))
        return Region.of(values) if changed.is_empty else changed
    return Region.of(values)


def subscription(rng: random.Random) -> Subscription:
    """Returns mostly subscriptions to few attributes of one class, so that buckets grow large."""
    path = rng.choices(ALL_TYPES.classes, weights=[1, 12, 1, 1])[0]
    attributes = ALL_TYPES.attributes(path)
    if rng.random() < 0.8:
        attributes = attributes[1:7]
    chosen = rng.sample(attributes, min(len(attributes), rng.choice([0, 1, 1, 2, 2, 3])))
    only = any(each.dimension for each in chosen) or rng.random() < 0.9
    sources = frozenset(rng.sample(ORGANISATIONS, 2)) if rng.random() < 0.2 else None
    constraints = {each.name: value_set(rng, each) for each in chosen}
    return Subscription(ALL_TYPES.scope(path, only), sources, constraints, path, only)


def event(rng: random.Random) -> Event:
    path = rng.choices(ALL_TYPES.classes, weights=[1, 12, 1, 1])[0]
    carried = [each for each in ALL_TYPES.attributes(path) if rng.random() < 0.6]
    values = {each.name: rng.choice(POOLS[each.domain]) for each in carried}
    previous = {
        each.name: int(rng.choice(POOLS[QUALITY]))
        for each in carried
        if each.dimension and rng.random() < 0.5
    }
    return Event("e", path, rng.choice(ORGANISATIONS), values, previous)


@pytest.mark.parametrize("seed", range(4))
def test_index_gives_the_oracles_answers_after_mass_deletions_and_insertions(seed: int) -> None:
    rng = random.Random(seed)
    index: CompiledIndex[int] = CompiledIndex()
    truth: dict[int, Subscription] = {}
    number = 0
    for size in (600, 60, 4_000, 0, 2_000, 5, 300):
        while len(truth) > size:
            id = rng.choice(list(truth))
            del truth[id]
            index.delete(id)
        newcomers = {}
        while len(truth) + len(newcomers) < size:
            number += 1
            newcomers[number] = subscription(rng)
        if rng.random() < 0.5:
            index.insert_all(newcomers.items())
        else:
            for id, each in newcomers.items():
                index.insert(id, each)
        truth |= newcomers
        if size == 4_000:
            buckets = index._tables.buckets
            large = (buckets[:, BUCKET_STRIDE] == 0) & (buckets[:, BUCKET_LENGTH] > LARGE)
            assert large.sum() >= 3
        for happened in [event(rng) for _ in range(25)]:
            assert sorted(index.match(happened)) == sorted(
                id for id, each in truth.items() if each.matches(happened)
            )


def churn(index: CompiledIndex[int], make, rounds: int, alive: int = 50) -> list[int]:
    """Returns the memory after each of three phases of insertions and deletions."""
    sizes = []
    for number in range(3 * rounds):
        index.insert(number, make(number))
        if number >= alive:
            index.delete(number - alive)
        if (number + 1) % rounds == 0:
            sizes.append(index.memory_bytes)
    return sizes


def test_memory_stays_bounded_under_churn() -> None:
    scope = frozenset(("Other",))

    def unique_string(number: int) -> Subscription:
        return Subscription(scope, None, {"Other.Name": Strings.of([f"s{number}"])}, "Other")

    def unique_sources(number: int) -> Subscription:
        sources = frozenset((f"o{number}", f"o{number + 7}", "o"))
        return Subscription(scope, sources, {}, "Other")

    names = [each.name for each in ALL_TYPES.attributes("Thing/Part") if each.dimension]

    def many_shapes(number: int) -> Subscription:
        chosen = random.Random(number).sample(names, 4)
        high = Region.of(Intervals.of([(number % 1000, QUALITY.hi)]))
        return Subscription(
            frozenset(("Thing/Part",)), None, dict.fromkeys(chosen, high), "Thing/Part", True
        )

    for make, alive in ((unique_string, 50), (unique_sources, 50), (many_shapes, 6 * LARGE)):
        sizes = churn(CompiledIndex(), make, 4_000, alive)
        assert sizes[2] == sizes[1], make


def test_failed_insertion_changes_nothing() -> None:
    wanted = Subscription(frozenset(("Other",)), None, {"Other.Name": Strings.of(["z"])}, "Other")
    index = CompiledIndex({"a": wanted})
    with pytest.raises(AttributeError):
        index.insert_all([("b", wanted), ("c", None)])
    assert len(index) == 1
    assert "b" not in index
    index.insert("b", wanted)
    index.delete("b")
    assert index.match(Event("e", "Other", "o", {"Other.Name": "z"})) == ["a"]


def test_concurrent_matches_and_changes_give_correct_answers() -> None:
    rng = random.Random(5)
    fixed = {number: subscription(rng) for number in range(2_000)}
    index: CompiledIndex[int] = CompiledIndex(fixed)
    happened = [event(rng) for _ in range(40)]
    truth = [set(oracle.match({str(k): v for k, v in fixed.items()}, each)) for each in happened]
    wrong: list[int] = []
    stop = threading.Event()

    def match() -> None:
        for _ in range(15):
            for nth, found in enumerate(index.match_all(happened)):
                if {str(id) for id in found if id >= 0} != truth[nth]:
                    wrong.append(nth)

    def change() -> None:
        own = random.Random(6)
        number = 0
        while not stop.is_set():
            number -= 1
            index.insert(number, subscription(own))
            if number < -200:
                index.delete(number + 200)

    changer = threading.Thread(target=change)
    matchers = [threading.Thread(target=match) for _ in range(3)]
    for thread in (changer, *matchers):
        thread.start()
    for thread in matchers:
        thread.join()
    stop.set()
    changer.join()
    assert not wrong
