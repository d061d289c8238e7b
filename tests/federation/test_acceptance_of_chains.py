"""Random chains of root sets, signatures and rollbacks, judged by sets of numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import event, example, given
from hypothesis import strategies as st

from qns.errors import QnsError
from qns.federation.acceptance import may_accept
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.roots import Anchor, RootSet
from qns.federation.shipped import AGENCIES_FEDERATION
from qns.federation.signatures import document_bytes, root_set_bytes
from tests.federation.signing import at, key, root_set

NOW = 500.0
KEYS = range(1, 6)


@dataclass(frozen=True)
class Link:
    """A root set of the plan: its keys by number, and who signs it."""

    threshold: int
    keys: frozenset[int]
    signers: frozenset[int]

    @property
    def content(self) -> tuple[int, frozenset[int]]:
        return self.threshold, self.keys


@dataclass(frozen=True)
class Plan:
    version: int
    chain: tuple[Link, ...]
    signers: frozenset[int]
    is_altered: bool
    expires_s: float


def some_keys() -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.sampled_from(KEYS))


def mostly(value: bool) -> st.SearchStrategy[bool]:
    return st.sampled_from((value, value, value, value, not value))


@st.composite
def links(draw: st.DrawFn, before: Link | None, *, honest: bool) -> Link:
    keys = draw(st.frozensets(st.sampled_from(KEYS), min_size=1, max_size=3))
    signers = draw(some_keys())
    if honest or draw(mostly(True)):
        signers = keys | (before.keys if before else frozenset())
    return Link(draw(st.integers(1, len(keys))), keys, signers)


@st.composite
def chains(
    draw: st.DrawFn, start: tuple[Link, ...], least: int, most: int, *, honest: bool = False
) -> tuple[Link, ...]:
    chain = start
    for _ in range(draw(st.integers(least, most))):
        chain = (*chain, draw(links(chain[-1] if chain else None, honest=honest)))
    return chain


def is_proved(chain: tuple[Link, ...], trusted: int) -> bool:
    """True if each root set after the trusted ones is signed by the one before and by itself."""
    return all(
        len(after.signers & each.keys) >= each.threshold
        for before, after in zip(chain[trusted - 1 :], chain[trusted:], strict=False)
        for each in (before, after)
    )


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, Plan, int]:
    """Draws a document in force, one that is to replace it, and the root set of the anchor."""
    chain = draw(chains((), 1, 3, honest=True))
    last = chain[-1]
    old = Plan(5, chain, last.keys, is_altered=False, expires_s=1000.0)
    kept = chain if draw(mostly(True)) else chain[: len(chain) - 1]
    new_chain = draw(chains(kept, 0 if kept else 1, 2))
    signs_all = draw(mostly(True))
    new = Plan(
        draw(st.sampled_from((6, 6, 7, 8, 5, 4))),
        new_chain,
        new_chain[-1].keys if signs_all else draw(some_keys()),
        is_altered=draw(mostly(False)),
        expires_s=1000.0 if draw(mostly(True)) else draw(st.sampled_from((NOW, 100.0))),
    )
    return old, new, draw(st.integers(1, len(chain)))


def expected(old: Plan, new: Plan) -> bool:
    """The oracle: whether the new document has to be accepted."""
    known, last = len(old.chain), new.chain[-1]
    return (
        new.version > old.version
        and [each.content for each in new.chain[:known]] == [each.content for each in old.chain]
        and is_proved(new.chain, known)
        and len(new.signers & last.keys) >= last.threshold
        and not new.is_altered
        and new.expires_s > NOW
    )


def built(plan: Plan) -> Federation:
    sets: list[RootSet] = []
    for number, link in enumerate(plan.chain, 1):
        bare = root_set(number, link.threshold, *sorted(link.keys))
        message = root_set_bytes(AGENCIES_FEDERATION.name, bare)
        signatures = tuple(key(each).sign(message) for each in sorted(link.signers))
        sets.append(replace(bare, signatures=signatures))
    document = replace(
        AGENCIES_FEDERATION,
        version=plan.version,
        roots=tuple(sets),
        expires=at(plan.expires_s),
    )
    message = document_bytes(document)
    signatures = tuple(key(each).sign(message) for each in sorted(plan.signers))
    document = replace(document, signatures=signatures)
    if plan.is_altered:
        inps = replace(document["INPS"], capability=9)
        document = replace(document, organisations={**document.organisations, "INPS": inps})
    return document


_ONE = Link(1, frozenset((1,)), frozenset())
_TWO = Link(2, frozenset((2, 3)), frozenset((1, 2, 3)))


@given(plans())
@example(
    (
        Plan(5, (_ONE,), frozenset((1,)), is_altered=False, expires_s=1000.0),
        Plan(6, (_ONE, _TWO), frozenset((2, 3)), is_altered=False, expires_s=1000.0),
        1,
    )
)
def test_document_is_accepted_exactly_if_the_oracle_says_so(
    drawn: tuple[Plan, Plan, int],
) -> None:
    old, new, anchored = drawn
    in_force, document = built(old), read_federation(write_federation(built(new)))
    anchor = Anchor(in_force.name, in_force.roots[anchored - 1])
    try:
        may_accept(document, in_force, "a stranger", now=NOW, anchor=anchor)
        accepted = True
    except QnsError:
        accepted = False
    event(f"accepted: {accepted}, rotations: {len(new.chain) - len(old.chain)}")
    assert accepted is expected(old, new)
