"""The Bloom filter contains every key that was added, and few others."""

from __future__ import annotations

from qns.peer.bloom_filter import BloomFilter


def test_every_added_key_is_contained_while_the_filter_grows() -> None:
    found = BloomFilter()
    keys = [("P", f"e{number}") for number in range(100_000)]
    assert keys[0] not in found
    for key in keys:
        found.add(key)
    assert all(key in found for key in keys)


def test_few_absent_keys_seem_to_be_contained() -> None:
    found = BloomFilter()
    for number in range(50_000):
        found.add(("P", f"e{number}"))
    wrong = sum(("P", f"x{number}") in found for number in range(10_000))
    assert wrong < 300


def test_cleared_filter_contains_nothing() -> None:
    found = BloomFilter()
    found.add("a")
    found.clear()
    assert "a" not in found
