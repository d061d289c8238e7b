"""Merkle trees: each leaf has a proof, and nothing else has one."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from qns.edl.merkle import root_of, tree_of

leaves = st.lists(st.binary(max_size=8), min_size=1, max_size=40)


def naive_root(leaves: list[bytes]) -> bytes:
    """The definition: empty leaves up to a power of two, then pairs until one node is left."""
    level = [sha256(b"\x00" + leaf).digest() for leaf in leaves]
    while len(level) & (len(level) - 1):
        level.append(bytes(32))
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
    return level[0]


@given(leaves)
def test_every_proof_leads_to_the_root(leaves: list[bytes]) -> None:
    root, proofs = tree_of(leaves)
    assert len(proofs) == len(leaves)
    for leaf, proof in zip(leaves, proofs, strict=True):
        assert root_of(leaf, proof) == root


@given(
    st.integers(0, 5).flatmap(
        lambda bits: st.lists(st.binary(), min_size=2**bits, max_size=2**bits)
    )
)
def test_root_of_a_full_tree_is_that_of_the_definition(leaves: list[bytes]) -> None:
    assert tree_of(leaves)[0] == naive_root(leaves)


@given(leaves, st.data())
def test_other_leaf_does_not_lead_to_the_root(leaves: list[bytes], data: st.DataObject) -> None:
    root, proofs = tree_of(leaves)
    at = data.draw(st.integers(0, len(leaves) - 1))
    other = data.draw(st.binary(max_size=8).filter(lambda leaf: leaf != leaves[at]))
    assert root_of(other, proofs[at]) != root


@given(leaves, st.data())
def test_altered_proof_does_not_lead_to_the_root(leaves: list[bytes], data: st.DataObject) -> None:
    root, proofs = tree_of(leaves)
    at = data.draw(st.integers(0, len(leaves) - 1))
    bit = data.draw(st.integers(0, 8 * len(proofs[at]) - 1))
    altered = bytearray(proofs[at])
    altered[bit // 8] ^= 1 << bit % 8
    assert root_of(leaves[at], bytes(altered)) != root


@given(st.binary(max_size=80).filter(lambda proof: (len(proof) - 4) % 32 or len(proof) < 4))
def test_text_of_a_wrong_length_is_no_proof(proof: bytes) -> None:
    assert root_of(b"leaf", proof) is None


def test_proof_with_an_index_beyond_its_levels_is_no_proof() -> None:
    _, (proof,) = tree_of([b"leaf"])
    assert root_of(b"leaf", b"\x00\x00\x00\x01" + proof[4:]) is None


def test_inner_node_does_not_pass_for_a_leaf() -> None:
    root, _ = tree_of([b"a", b"b"])
    pair = sha256(b"\x00a").digest() + sha256(b"\x00b").digest()
    assert root_of(pair, bytes(4)) != root
