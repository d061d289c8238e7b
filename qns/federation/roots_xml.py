"""Root sets, signatures and anchors as XML (`schemas/federation.xsd`)."""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from datetime import UTC, datetime
from typing import Final

from qns.d2q.lexical import WHITE_SPACE, checked_name
from qns.d2q.xml import Element, child, line_of, new_root, qualified, read_root, to_bytes
from qns.errors import QnsError, ValueRefused, shorten
from qns.federation.roots import ALGORITHM, Anchor, RootKey, RootSet, Signature

MAX_ANCHOR_BYTES: Final = 100_000

ROOTS, SIGNATURE = qualified("roots"), qualified("signature")
_KEY = qualified("key")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}\Z")
_EXPIRES = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(Z|[+-]\d\d:\d\d)\Z")


def write_anchor(anchor: Anchor) -> bytes:
    """Returns the anchor as XML, without the signatures of its root set."""
    root = new_root("anchor")
    root.set("name", checked_name("a federation's name", anchor.federation))
    write_roots_into(root, anchor.roots, with_signatures=False)
    return to_bytes(root)


def read_anchor(data: bytes) -> Anchor:
    """Reads an anchor. Raises QnsError with the line."""
    root = read_root(data, "anchor", "federation", max_bytes=MAX_ANCHOR_BYTES)
    return Anchor(checked_name("a federation's name", root.get("name", "")), roots_in(root[0]))


def write_roots_into(parent: Element, roots: RootSet, *, with_signatures: bool) -> None:
    element = child(parent, ROOTS, number=str(roots.number), threshold=str(roots.threshold))
    for key in roots.keys:
        child(element, _KEY, b64encode(key.raw).decode(), algorithm=ALGORITHM)
    if with_signatures:
        write_signatures_into(element, roots.signatures)


def write_signatures_into(parent: Element, signatures: tuple[Signature, ...]) -> None:
    for signature in sorted(signatures, key=lambda each: each.key):
        child(parent, SIGNATURE, b64encode(signature.value).decode(), key=signature.key)


def roots_in(element: Element) -> RootSet:
    """Reads a root set from a valid element. Errors have the line."""
    try:
        number, threshold = (int(element.get(name, "")) for name in ("number", "threshold"))
        keys = tuple(_key_in(node) for node in element if node.tag == _KEY)
        signatures = tuple(signature_in(node) for node in element if node.tag == SIGNATURE)
        return RootSet(number, threshold, keys, signatures)
    except QnsError as problem:
        raise problem.at_mark(line_of(element), None) from None


def signature_in(element: Element) -> Signature:
    key = element.get("key", "")
    if not _FINGERPRINT.match(key):
        raise ValueRefused(
            f"{shorten(key)} is not the fingerprint of a root key",
            remedy="a fingerprint is a SHA-256 in 64 hexadecimal digits",
        ).at_mark(line_of(element), None)
    return Signature(key, _bytes_in(element))


def read_expires(text: str) -> datetime:
    """Reads a dateTime with a zone; raises ValueRefused if it is not one."""
    found = _EXPIRES.match(text.strip(WHITE_SPACE))
    try:
        if found:
            return datetime.fromisoformat(text.strip(WHITE_SPACE)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueRefused(
        f"{shorten(text)} is not a dateTime with a zone, in whole seconds",
        remedy="give one such as 2027-01-31T12:00:00Z",
    )


def write_expires(expires: datetime) -> str:
    return expires.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _key_in(element: Element) -> RootKey:
    algorithm = element.get("algorithm", "")
    if algorithm != ALGORITHM:
        raise ValueRefused(
            f"a root key of the algorithm {shorten(algorithm)}",
            remedy=f"this version of QNS knows {ALGORITHM}",
        ).at_mark(line_of(element), None)
    return RootKey(_bytes_in(element))


def _bytes_in(element: Element) -> bytes:
    text = "".join((element.text or "").split())
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise ValueRefused(
            f"{shorten(text)} is not base64", remedy="copy the file without changes"
        ).at_mark(line_of(element), None) from None
