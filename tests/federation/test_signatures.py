"""Attacks on signed federation documents: each is refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.errors import FederationError, NotAllowed, QnsError
from qns.federation.acceptance import Freshness, freshness, may_accept
from qns.federation.document import Federation
from qns.federation.document_xml import MAX_FEDERATION_BYTES, read_federation, write_federation
from qns.federation.roots import MOST_KEYS, MOST_ROOT_SETS, Anchor, RootSet, Signature
from qns.federation.roots_xml import read_anchor, write_anchor
from qns.federation.shipped import AGENCIES_FEDERATION as PLAIN
from qns.federation.signatures import (
    check_signed,
    document_bytes,
    progress,
    root_set_bytes,
    signed,
)
from tests.federation.signing import anchor_of, at, key, root_set, rooted, sign

FIRST = root_set(1, 2, 1, 2, 3)
OLD = sign(rooted(PLAIN, FIRST), 1, 2)
ANCHOR = anchor_of(OLD)
NEXT = sign(OLD.without("CoC"), 2, 3)
ROTATED = sign(OLD.with_roots(root_set(2, 2, 3, 4, 5), at(1000)), 1, 3, 4)
SIGNED_XML = write_federation(OLD)


def accept(new: Federation, old: Federation | None = OLD, sender: str = "", now: float = 0) -> None:
    """Accepts the document as it arrives, from its bytes."""
    may_accept(read_federation(write_federation(new)), old, sender, now=now, anchor=ANCHOR)


@pytest.mark.parametrize("sender", ["", "INPS", "a stranger"])
def test_signed_document_is_accepted_from_anybody(sender: str) -> None:
    accept(OLD, None, sender)
    accept(NEXT, OLD, sender)
    accept(ROTATED, OLD, sender)
    accept(NEXT, PLAIN, sender)


def test_stranger_cannot_bring_the_first_root_keys_without_an_anchor() -> None:
    may_accept(NEXT, PLAIN, "INPS", now=0)
    may_accept(NEXT, OLD, "a stranger", now=0)
    with pytest.raises(NotAllowed, match="a stranger is not a member in version 1"):
        may_accept(NEXT, PLAIN, "a stranger", now=0)


def test_chain_is_followed_over_many_missed_rotations() -> None:
    document = OLD
    for number in range(2, 40):
        document = document.with_roots(root_set(number, 2, number, number + 1), at(1000))
        document = sign(document, *((1, 2) if number == 2 else (number - 1, number)), number + 1)
    accept(document, OLD)
    accept(document, None)
    last = document.root_set
    assert last is not None
    check_signed(document, Anchor(document.name, last))
    with pytest.raises(FederationError, match="goes back to root set 1; the anchor has root set"):
        check_signed(OLD, Anchor(document.name, last))


def test_canonical_bytes_leave_out_every_signature() -> None:
    bare = replace(ROTATED, signatures=(), roots=(FIRST, replace(ROTATED.roots[1], signatures=())))
    assert document_bytes(bare) == document_bytes(ROTATED)
    assert document_bytes(bare).startswith(b"urn:qns:federation-document:1\n<?xml")
    assert root_set_bytes("x", FIRST) != root_set_bytes("y", FIRST)
    numbers = {root_set_bytes("x", replace(FIRST, number=each)) for each in (1, 2)}
    assert len(numbers) == 2


def test_documents_with_different_signatures_are_equal() -> None:
    assert sign(rooted(PLAIN, FIRST), 2, 3) == OLD


def test_anchor_is_read_as_it_was_written() -> None:
    data = write_anchor(Anchor(PLAIN.name, ROTATED.roots[1]))
    assert read_anchor(data) == Anchor(PLAIN.name, ROTATED.roots[1])
    assert b"signature" not in data
    with pytest.raises(QnsError, match="root element is 'federation'"):
        read_anchor(SIGNED_XML)


def signature_of_a_root_set() -> Federation:
    """Returns a document whose signatures are over its root set, not over the document."""
    message = root_set_bytes(OLD.name, FIRST)
    return replace(NEXT, signatures=(key(1).sign(message), key(2).sign(message)))


def forged_rotation() -> Federation:
    """Returns a rotation that only the new keys have signed."""
    return sign(OLD.with_roots(root_set(2, 1, 6, 7), at(1000)), 6)


def unproved_rotation() -> Federation:
    """Returns a rotation whose new keys have signed the document and not their root set."""
    document = sign(OLD.with_roots(root_set(2, 2, 4, 5), at(1000)), 1, 2, 4, 5)
    newest = document.roots[1]
    own = {each.public.fingerprint for each in (key(1), key(2))}
    kept = tuple(each for each in newest.signatures if each.key in own)
    return replace(document, roots=(FIRST, replace(newest, signatures=kept)))


def former_keys_sign() -> Federation:
    document = replace(ROTATED.without("CoC"), signatures=())
    message = document_bytes(document)
    return replace(document, signatures=(key(1).sign(message), key(2).sign(message)))


OTHER_CHAIN = sign(rooted(PLAIN, root_set(1, 1, 8)), 8)
ATTACKS = {
    "unsigned": (PLAIN.without("CoC"), OLD, "is not signed, and the anchor has root keys"),
    "signatures removed": (OLD.without("CoC"), OLD, "is signed by 0 of 2 keys of root set 1"),
    "under-signed": (sign(OLD.without("CoC"), 2), OLD, "is signed by 1 of 2 keys of root set 1"),
    "altered, with the old signatures": (
        replace(OLD.without("CoC"), signatures=OLD.signatures),
        OLD,
        "it is not the signature of this content",
    ),
    "signature of a root set": (signature_of_a_root_set(), OLD, "is signed by 0 of 2 keys"),
    "rollback of the version": (OLD, NEXT, "another document of version|is not later than"),
    "rollback of the root set": (
        replace(sign(OLD.without("CoC"), 1, 2), version=9),
        ROTATED,
        "goes back to root set 1; version 2 in force has root set 2",
    ),
    "freeze": (sign(OLD.expiring(at(0)), 1, 2), OLD, "expired at 1970-01-01T00:00:00Z, and it is"),
    "another name": (
        sign(replace(NEXT, name="others"), 1, 2),
        None,
        "is not of agencies, the federation of the anchor",
    ),
    "another chain with the same number": (
        OTHER_CHAIN,
        None,
        "has another root set 1 than the anchor",
    ),
    "another chain, in a later version": (
        sign(OTHER_CHAIN.without("CoC"), 8),
        OLD,
        "has another root set 1 than the anchor",
    ),
    "keys of a former set": (former_keys_sign(), ROTATED, "only in another root set"),
    "root set not signed by its predecessor": (
        forged_rotation(),
        OLD,
        "root set 2 is signed by 0 of 2 keys of root set 1",
    ),
    "root set not signed by itself": (
        unproved_rotation(),
        OLD,
        "root set 2 is signed by 0 of 2 keys of root set 2",
    ),
    "version 2^52": (sign(replace(NEXT, version=2**52), 1, 2), OLD, "more than 1,000,000 ahead"),
}


@pytest.mark.parametrize(("new", "old", "said"), ATTACKS.values(), ids=ATTACKS)
def test_attack_is_refused_with_a_reason(
    new: Federation, old: Federation | None, said: str
) -> None:
    with pytest.raises(FederationError, match=said) as caught:
        accept(new, old)
    assert caught.value.remedy


def test_unsigned_document_is_refused_for_ever_once_a_signed_one_is_in_force() -> None:
    for sender in ("", "INPS"):
        with pytest.raises(FederationError, match="is not signed, and version 1 in force"):
            may_accept(PLAIN.without("CoC"), OLD, sender, now=0)
    may_accept(NEXT, OLD, now=0)


def test_document_with_root_keys_is_refused_unsigned_even_without_an_anchor() -> None:
    with pytest.raises(FederationError, match="is signed by 0 of 2 keys"):
        may_accept(rooted(PLAIN, FIRST), None, now=0)
    may_accept(OLD, None, now=0)


def edited(old: str, new: str) -> bytes:
    text = SIGNED_XML.decode()
    assert old in text
    return text.replace(old, new).encode()


KEY_LINE = next(line for line in SIGNED_XML.decode().splitlines() if "<key " in line)
SIGNATURE_LINE = next(line for line in SIGNED_XML.decode().splitlines() if "<signature " in line)
BAD_FILES = {
    "signed twice by one key": (
        edited(SIGNATURE_LINE, SIGNATURE_LINE + SIGNATURE_LINE),
        "signs twice",
    ),
    "threshold 0": (edited('threshold="2"', 'threshold="0"'), "a threshold of 0 with 3 root keys"),
    "threshold above the keys": (edited('threshold="2"', 'threshold="4"'), "a threshold of 4 with"),
    "one key twice": (edited(KEY_LINE, KEY_LINE + KEY_LINE), "a root key is named twice"),
    "unknown algorithm": (edited('"ed25519"', '"rsa"'), "a root key of the algorithm 'rsa'"),
    "short key": (edited(KEY_LINE, '<key algorithm="ed25519">QUJD</key>'), "root key of 3 bytes"),
    "key not base64": (edited(KEY_LINE, '<key algorithm="ed25519">!</key>'), "is not base64"),
    "short signature": (
        edited(SIGNATURE_LINE, f'<signature key="{"0" * 64}">QUJD</signature>'),
        "a signature of 3 bytes",
    ),
    "odd fingerprint": (
        edited(SIGNATURE_LINE, '<signature key="x">QUJD</signature>'),
        "'x' is not the fingerprint",
    ),
    "number 2 first": (edited('number="1"', 'number="2"'), "root set 2 stands where root set 1"),
    "expires without a zone": (edited('40Z"', '40"'), "not a dateTime with a zone"),
    "no expiry": (edited(' expires="1970-01-01T00:16:40Z"', ""), "root keys and without expires"),
    "16 MiB": (SIGNED_XML + b" " * (2**24 - len(SIGNED_XML)), "bytes of XML"),
    "entities": (
        SIGNED_XML.replace(b"<federation", b'<!DOCTYPE x [<!ENTITY a "b">]><federation', 1),
        "DOCTYPE",
    ),
    "no root set any more": (
        SIGNED_XML[: SIGNED_XML.index(b"  <roots")] + b"</federation>",
        "expires and without root keys",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "said"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_file_is_refused_with_a_reason(data: bytes, said: str) -> None:
    with pytest.raises(QnsError, match=said):
        read_federation(data)


def test_more_keys_signatures_and_root_sets_than_the_bounds_are_refused() -> None:
    with pytest.raises(QnsError, match=f"at most {MOST_KEYS}"):
        root_set(1, 1, *range(MOST_KEYS + 1))
    many = tuple(Signature(f"{each:064x}", bytes(64)) for each in range(2 * MOST_KEYS + 1))
    with pytest.raises(QnsError, match=f"at most {2 * MOST_KEYS}"):
        replace(OLD, signatures=many)
    with pytest.raises(QnsError, match=f"1 to {MOST_ROOT_SETS}"):
        root_set(MOST_ROOT_SETS + 1, 1, 1)


def test_longest_chain_fits_into_a_document() -> None:
    chain: list[RootSet] = [root_set(1, 1, 1)]
    while len(chain) < MOST_ROOT_SETS:
        bare = root_set(len(chain) + 1, 2, 1, 2, 3)
        message = root_set_bytes(PLAIN.name, bare)
        chain.append(replace(bare, signatures=(key(1).sign(message), key(2).sign(message))))
    document = sign(replace(PLAIN, roots=tuple(chain), expires=at(9)), 1, 2)
    assert len(write_federation(document)) < MAX_FEDERATION_BYTES
    check_signed(document)


def test_progress_says_what_is_missing_during_a_rotation() -> None:
    document = OLD.with_roots(root_set(2, 2, 3, 4), at(1000))

    def missing() -> list[int]:
        return [each.missing for each in progress(document)]

    assert missing() == [2, 2, 2]
    document = sign(document, 1)
    assert missing() == [1, 2, 2]
    document = sign(document, 3)
    assert missing() == [0, 1, 1]
    document = sign(document, 4)
    assert missing() == [0, 0, 0]
    accept(document)


def test_key_of_no_root_set_cannot_sign() -> None:
    with pytest.raises(FederationError, match="is no key of root set 1"):
        signed(OLD, key(9))
    with pytest.raises(FederationError, match="has no root keys"):
        signed(PLAIN, key(1))


def test_every_change_drops_the_signatures() -> None:
    for changed in (
        OLD.without("CoC"),
        OLD.hosting("CoC", []),
        OLD.with_endpoints({"CoC": "http://127.0.0.1:9/"}),
        OLD.with_capability("CoC", 9),
        OLD.with_schema(OLD.schema),
        OLD.with_roots(root_set(2, 1, 4), at(9)),
        OLD.expiring(at(9)),
    ):
        assert (changed.version, changed.signatures) == (2, ())


def test_document_becomes_stale_and_after_the_grace_closed() -> None:
    found = [freshness(OLD, now, 10.0) for now in (999.9, 1000.0, 1009.9, 1010.0)]
    stale, closed = Freshness.STALE, Freshness.CLOSED
    assert found == [Freshness.FRESH, stale, stale, closed]
    assert freshness(PLAIN, 1e12, 0.0) is Freshness.FRESH
