"""Value sets compared with enumeration: membership, containment, operations, witnesses."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import DECIMAL, QUALITY, STRING, decimal_key, decimal_value
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings

SMALL = range(-1, 9)


def small_sets() -> st.SearchStrategy[Intervals]:
    return st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=4).map(Intervals.of)


def members(values: Intervals) -> set[int]:
    return {key for key in SMALL if values.holds(key)}


@given(small_sets(), small_sets())
def test_intervals_behave_as_the_sets_of_their_keys(a: Intervals, b: Intervals) -> None:
    assert members(a.intersect(b)) == members(a) & members(b)
    assert members(a.union(b)) == members(a) | members(b)
    assert a.contains(b) == (members(b) <= members(a))
    assert (a == b) == (members(a) == members(b))
    assert a.is_empty == (not members(a))
    witness = b.outside(a)
    assert (witness is None) == a.contains(b)
    assert witness is None or (b.holds(witness) and not a.holds(witness))


# Strings over a two-letter alphabet up to length 5, and a letter that occurs in no pattern.
WORDS = ["".join(letters) for n in range(6) for letters in product("abz", repeat=n)]


def short() -> st.SearchStrategy[str]:
    return st.text("ab", max_size=2)


@st.composite
def small_string_sets(draw: st.DrawFn) -> Strings:
    if draw(st.booleans()):
        return Strings.of(draw(st.lists(short(), max_size=3)))
    return Strings.described(
        draw(short()),
        draw(short()),
        draw(st.lists(short().filter(bool), max_size=2)),
        draw(st.lists(short(), max_size=2)),
    )


def words(values: Strings) -> set[str]:
    return {word for word in WORDS if values.holds(word)}


@given(small_string_sets(), small_string_sets())
def test_string_sets_behave_as_the_sets_of_their_strings(a: Strings, b: Strings) -> None:
    assert words(a.intersect(b)) == words(a) & words(b)
    union = a.union(b)
    assert union is None or words(union) == words(a) | words(b)
    if a.contains(b):
        assert words(b) <= words(a)
        assert b.outside(a) is None
    else:  # containment is complete as well: a witness exists and is found
        witness = b.outside(a)
        assert witness is not None
        assert b.holds(witness)
        assert not a.holds(witness)
    assert (a.contains(b) and b.contains(a)) == (a == b)


def test_witness_is_found_for_patterns_with_any_characters() -> None:
    ideographs = "".join(map(chr, range(0x4E00, 0x9FFF)))
    everything = "".join(map(chr, range(0x20, 0xD800)))
    for text in (f"{ideographs}-~*#+%", everything):
        found = Strings.described(prefix=text).outside(Strings.described(suffix="a"))
        assert found is not None
        assert found.startswith(text)
        assert STRING.key(found) == found


def test_fragment_that_another_pattern_implies_is_left_out() -> None:
    described = Strings.described("ab", "yz", ["b", "y", "aa", "aaa", "bc", "by", ""])
    assert described.fragments == {"aaa", "bc", "by"}
    assert described.characters == 2 + 2 + 3 + 2 + 2
    assert Strings.of(["a", "bcd"]).characters == 4
    assert Strings.described(excluded=["abc", ""]).characters == 3


def test_containment_of_patterns_is_as_in_the_examples_of_the_semantics() -> None:
    assert Strings.described(prefix="a").contains(Strings.described(prefix="ab"))
    assert not Strings.described(prefix="ab").contains(Strings.described(prefix="a"))
    assert Strings.described(fragments=["b"]).contains(Strings.of(["abc"]))
    assert Strings.described(fragments=["b"]).contains(Strings.described(prefix="ab"))
    assert Strings.described(fragments=[""]) == Strings()


STEP = QUALITY.hi // 4
GRID = [step * STEP for step in range(5)]


@st.composite
def grid_regions(draw: st.DrawFn) -> Region:
    """Draws regions whose bounds lie on a grid of five values, which distinguish them."""
    kind = draw(st.integers(0, 3))
    spans = st.lists(
        st.tuples(st.sampled_from(GRID), st.sampled_from(GRID)), min_size=1, max_size=2
    ).map(Intervals.of)
    new = draw(spans)
    if kind == 0:
        return Region.of(new)
    return Region.of(new, draw(spans), draw(st.sampled_from(GRID)) if kind == 2 else 0)


def pairs(region: Region) -> set[tuple[int, int | None]]:
    return {
        (new, previous) for new in FINE for previous in [None, *FINE] if region.holds(new, previous)
    }


# The keys on either side of each grid value are samples as well.
FINE = sorted({key + d for key in GRID for d in (-1, 0, 1) if 0 <= key + d <= QUALITY.hi})


@given(grid_regions(), grid_regions())
def test_regions_behave_as_the_sets_of_their_pairs(a: Region, b: Region) -> None:
    assert pairs(a.intersect(b)) == pairs(a) & pairs(b)
    union = a.union(b)
    assert union is None or pairs(union) == pairs(a) | pairs(b)
    assert a.is_empty == (not pairs(a))
    assert a.contains(b) == (pairs(b) <= pairs(a))
    assert (pairs(a) == pairs(b)) == (a == b)
    if not a.contains(b):
        witness = b.outside(a)
        assert witness is not None
        assert b.holds(*witness)
        assert not a.holds(*witness)


def test_threshold_contains_its_transition_but_not_the_reverse() -> None:
    threshold = QUALITY.key(0.6)
    below = Region.of(Intervals.of([(0, threshold - 1)]))
    above = Region.of(Intervals.of([(threshold + 1, QUALITY.hi)]))
    assert below.contains(Region.falls_below(threshold))
    assert above.contains(Region.rises_above(threshold))
    assert not Region.falls_below(threshold).contains(below)
    assert not Region.rises_above(threshold).contains(above)


@pytest.mark.parametrize(("previous", "new"), [(0.7, 0.4), (0.4, 0.7), (0.9, 0.6), (0.3, 0.0)])
def test_changes_by_is_exact_in_decimal_arithmetic(previous: float, new: float) -> None:
    region = Region.changes_by(QUALITY.key(0.3))
    assert region.holds(QUALITY.key(new), QUALITY.key(previous))
    assert not region.holds(QUALITY.key(new), None)


def test_intersection_of_two_falls_has_the_lower_new_and_higher_previous_bound() -> None:
    both = Region.falls_below(600).intersect(Region.falls_below(800))
    assert both.holds(599, 800)
    assert not both.holds(599, 799)
    assert not both.holds(600, 800)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None).map(lambda d: +d))
def test_decimal_keys_keep_the_order_and_convert_back(number: object) -> None:
    value = float(f"{number:.14e}")
    if value and not 1e-290 <= abs(value) < 1e290:
        return
    key = decimal_key(value)
    assert decimal_value(key) == value
    for neighbour in (key - 1, key + 1):
        if DECIMAL.lo <= neighbour <= DECIMAL.hi:
            assert decimal_key(decimal_value(neighbour)) == neighbour
            assert (decimal_value(neighbour) < value) == (neighbour < key)


def test_neighbouring_decimal_keys_differ_in_the_fifteenth_digit() -> None:
    assert decimal_key(1.00000000000001) == decimal_key(1.0) + 1
    assert decimal_key(1.0) == decimal_key(0.999999999999999) + 1
    assert decimal_key(-0.1) == -decimal_key(0.1)
    with pytest.raises(ValueError, match="15 significant digits"):
        decimal_key(0.1 + 0.2)
