"""Evidence file: evidence as JSON (docs/evidence.md describes each field).

The reader is strict: every value has one spelling, so that an altered byte is either an error here
or breaks a link in the verification.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from qns.edl.merkle import HASH_BYTES, INDEX_BYTES, MOST_LEVELS
from qns.edl.messages import Entry, Fence
from qns.edl.seal_texts import Leaf
from qns.errors import DocumentError, QnsError, show
from qns.evidence.evidence import Evidence, Timestamp

FORMAT: Final = "qns-evidence"
VERSION: Final = 1
MAX_EVIDENCE_BYTES: Final = 16 * 2**20

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
_LARGEST: Final = 2**64 - 1

Value = TypeVar("Value")


# --- writing --------------------------------------------------------------------------------------


def write_evidence(evidence: Evidence) -> bytes:
    leaf, entry, stamp = evidence.leaf, evidence.leaf.entry, evidence.timestamp
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "event": _content(evidence.xml),
        "leaf": {
            "source": leaf.source,
            "joined": leaf.incarnation,
            "epoch": leaf.epoch,
            "sequence": leaf.sequence,
            "event": leaf.event,
            "sha256": leaf.digest.hex(),
            "receiver": entry.receiver,
            "receiver_joined": entry.incarnation,
            "number_epoch": entry.epoch,
            "number": entry.number,
            "confirmed": entry.confirmed,
            "fences": [{"epoch": each.epoch, "first": each.first} for each in entry.fences],
            "carriers": list(entry.carriers),
        },
        "proof": _proof(evidence.proof),
        "root": evidence.root.hex(),
        "seal": {
            "certificate_sha256": evidence.fingerprint.hex(),
            "signature": _base64(evidence.signature),
        },
        "certificate": evidence.certificate,
        "document": evidence.document.decode(),
        "accepted": write_moment(evidence.accepted_at),
        "timestamp": None
        if stamp is None
        else {
            "proof": _proof(stamp.proof),
            "root": stamp.root.hex(),
            "response": _base64(stamp.response),
        },
    }
    return json.dumps(fields, ensure_ascii=False, indent=2).encode() + b"\n"


def write_moment(at: float) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _content(xml: bytes) -> dict[str, str]:
    """Returns the bytes as text if they are UTF-8, so that people can read them."""
    try:
        return {"text": xml.decode()}
    except UnicodeDecodeError:
        return {"base64": _base64(xml)}


def _proof(proof: bytes) -> dict[str, Any]:
    hashes = range(INDEX_BYTES, len(proof), HASH_BYTES)
    return {
        "index": int.from_bytes(proof[:INDEX_BYTES], "big"),
        "hashes": [proof[at : at + HASH_BYTES].hex() for at in hashes],
    }


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


# --- reading --------------------------------------------------------------------------------------


def read_evidence(data: bytes) -> Evidence:
    """Inverse of `write_evidence`. Raises DocumentError with the field."""
    if len(data) > MAX_EVIDENCE_BYTES:
        raise DocumentError(f"a file of evidence has at most {MAX_EVIDENCE_BYTES:,} bytes")
    try:
        fields = json.loads(data.decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"this is not JSON: {show(str(error))}") from None
    top = _Fields("", fields)
    if top.take("format", str) != FORMAT or (version := top.take("version", int)) < 1:
        raise DocumentError("this is no file of evidence", remedy="qns evidence export makes one")
    if version > VERSION:
        raise DocumentError(
            f"this is evidence in version {version}, and this QNS reads {VERSION} at most",
            remedy="verify it with the QNS that wrote it",
        )
    seal = top.section("seal")
    stamp = top.section("timestamp") if fields.get("timestamp") is not None else None
    if stamp is None:
        top.take("timestamp", type(None))
    evidence = Evidence(
        _read_content(top.section("event")),
        _read_leaf(top.section("leaf")),
        _read_proof(top.section("proof")),
        top.hash("root"),
        seal.hash("certificate_sha256"),
        seal.base64("signature"),
        top.take("certificate", str),
        top.take("document", str).encode(),
        top.moment("accepted"),
        None if stamp is None else _read_timestamp(stamp),
    )
    seal.end()
    top.end()
    return evidence


def _without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name} stands twice")
        found[name] = value
    return found


def _read_content(fields: _Fields) -> bytes:
    is_text = "text" in fields.values
    content = fields.take("text", str).encode() if is_text else fields.base64("base64")
    fields.end()
    return content


def _read_leaf(fields: _Fields) -> Leaf:
    fences = tuple(map(_read_fence, fields.sections("fences")))
    carriers = fields.take("carriers", list)
    for each in carriers:
        _check_text(each, "leaf: carriers")
    entry = Entry(
        fields.take("receiver", str),
        fields.number("receiver_joined"),
        fields.number("number_epoch"),
        fields.number("number"),
        fields.number("confirmed"),
        fences,
        (),
        tuple(carriers),
    )
    leaf = Leaf(
        fields.take("source", str),
        fields.number("joined"),
        fields.number("epoch"),
        fields.number("sequence"),
        fields.take("event", str),
        fields.hash("sha256"),
        entry,
    )
    fields.end()
    return leaf


def _read_fence(fields: _Fields) -> Fence:
    fence = Fence(fields.number("epoch"), fields.number("first"))
    fields.end()
    return fence


def _read_proof(fields: _Fields) -> bytes:
    index, hashes = fields.number("index"), fields.take("hashes", list)
    fields.end()
    if index >= 2**MOST_LEVELS or len(hashes) > MOST_LEVELS:
        raise DocumentError("the tree is too large", place=fields.place)
    return index.to_bytes(INDEX_BYTES, "big") + b"".join(
        _hash_of(each, f"{fields.place}: hashes") for each in hashes
    )


def _read_timestamp(fields: _Fields) -> Timestamp:
    proof = _read_proof(fields.section("proof"))
    stamp = Timestamp(proof, fields.hash("root"), fields.base64("response"))
    fields.end()
    return stamp


class _Fields:
    """The fields of one JSON object; each is taken once, and `end` refuses the others."""

    def __init__(self, place: str, values: object) -> None:
        self.place = place
        if not isinstance(values, dict):
            raise DocumentError("this is no JSON object", place=place)
        self.values = dict(values)

    def take(self, name: str, kind: type[Value]) -> Value:
        if name not in self.values:
            raise DocumentError(f"{name} is missing", place=self.place)
        value = self.values.pop(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise DocumentError(f"{name} has a value of another type", place=self.place)
        if isinstance(value, str):
            _check_text(value, self._inner(name))
        return value

    def section(self, name: str) -> _Fields:
        return _Fields(self._inner(name), self.take(name, dict))

    def sections(self, name: str) -> list[_Fields]:
        return [_Fields(self._inner(name), each) for each in self.take(name, list)]

    def number(self, name: str) -> int:
        number = self.take(name, int)
        if not 0 <= number <= _LARGEST:
            raise DocumentError(f"{name} is no number of 8 bytes", place=self.place)
        return number

    def hash(self, name: str) -> bytes:
        return _hash_of(self.take(name, str), self._inner(name))

    def base64(self, name: str) -> bytes:
        return self._exact(
            name,
            lambda text: binascii.a2b_base64(text.encode("ascii"), strict_mode=True),
            _base64,
        )

    def moment(self, name: str) -> float:
        def read(text: str) -> float:
            if not _MOMENT.match(text):
                raise ValueError
            return datetime.fromisoformat(text).timestamp()

        return self._exact(name, read, write_moment)

    def end(self) -> None:
        for name in self.values:
            raise DocumentError(f"{show(name)} is unknown", place=self.place)

    def _exact(
        self, name: str, read: Callable[[str], Value], write: Callable[[Value], str]
    ) -> Value:
        """Reads a text that has one spelling."""
        text = self.take(name, str)
        try:
            value = read(text)
            if write(value) == text:
                return value
        except (ValueError, OverflowError, QnsError):
            pass
        raise DocumentError(f"{name} has a wrong form", place=self.place)

    def _inner(self, name: str) -> str:
        return f"{self.place}: {name}" if self.place else name


def _check_text(value: object, place: str) -> None:
    """Raises DocumentError unless the value is a text that UTF-8 can have."""
    try:
        if isinstance(value, str) and value.encode() is not None:
            return
    except UnicodeEncodeError:
        pass
    raise DocumentError("this is no text", place=place)


def _hash_of(value: object, place: str) -> bytes:
    if not isinstance(value, str) or not _HASH.match(value):
        raise DocumentError("a hash has 64 hexadecimal digits", place=place)
    return bytes.fromhex(value)
