"""docs/guarantees.md lists every bound of a peer with its default."""

from __future__ import annotations

import re
from dataclasses import fields
from math import inf
from pathlib import Path

import pytest

from qns.d2q.event_xml import MAX_EVENT_BYTES
from qns.edl import accepted_events, outbound_stream, reachability
from qns.edl.claims import CLAIMS_AT_ONCE
from qns.edl.evidence_keeper import MOST_DELETED
from qns.edl.seals import MOST_FALSE_SIGNATURES, MOST_ROOTS
from qns.edl.tree_builder import MOST_BELOW
from qns.edl.validation import MOST_FENCES, MOST_PARTS
from qns.edl.view_reader import PAUSE_S, SLICE_CHARACTERS
from qns.evidence import stamping
from qns.evidence.evidence_file import MAX_EVIDENCE_BYTES
from qns.evidence.timestamps import MAX_RESPONSE_BYTES
from qns.federation.document import MOST_SEALS, MOST_TLS
from qns.federation.roots import MOST_KEYS, MOST_ROOT_SETS
from qns.iil.number_series import MOST_SERIES
from qns.peer.history_search import MOST_FOUND, MOST_RECORDS
from qns.peer.tuning import Tuning
from qns.runtime import server
from qns.runtime.admin import server as admin_server
from qns.runtime.admin.protocol import MOST_ANSWER_BYTES, MOST_REQUEST_BYTES
from qns.runtime.driver import MOST_WAITING
from qns.runtime.http import MOST_OF_MEMBER
from qns.runtime.http_reader import MOST_HEAD_BYTES
from qns.runtime.log_limit import MOST_OF_CALLER, MOST_OF_MESSAGE
from qns.runtime.log_ring import MOST_CHARACTERS, MOST_LINES
from qns.runtime.server import MOST_PULLS
from qns.runtime.tls_listener import (
    HANDSHAKE_WITHIN_S,
    HANDSHAKES_PER_S,
    MOST_HANDSHAKES,
    MOST_HANDSHAKES_PER_ADDRESS,
)
from qns.soap import parts
from qns.soap.hardening import LOCAL, PEER
from qns.soap.message_ids import MOST_MESSAGE_IDS
from qns.store.sqlite import LOW_WATER_BYTES

PAGE = (Path(__file__).parents[1] / "docs/guarantees.md").read_text(encoding="utf-8")
BOUNDS = {
    each.name: each.default
    for each in fields(Tuning)
    if not each.name.endswith("_s") or each.name.endswith("_per_s")
}
"""The settings that are no times."""


def listed(cell: str) -> str:
    """Returns the default in the row of the table with this cell."""
    (default,) = re.findall(rf"^\|[^|]*\| {re.escape(cell)} \| ([^|]*?) \|", PAGE, re.MULTILINE)
    return str(default)


@pytest.mark.parametrize("name", BOUNDS)
def test_page_lists_every_bound_of_the_tuning_with_its_default(name: str) -> None:
    default = BOUNDS[name]
    assert listed(f"`{name}`") == ("no limit" if default == inf else f"{default:,}")


MIB = 2**20
FIXED = {
    "the disk": f"{LOW_WATER_BYTES // MIB} MiB stay free",
    "elements of a view that are read in one turn": (
        f"{SLICE_CHARACTERS:,} characters, then a pause of {PAUSE_S:g} s"
    ),
    "requests that wait for a turn": f"{MOST_WAITING:,}",
    "pulls that wait for a delivery": f"{MOST_PULLS:,}",
    "connections": f"{server.MOST_CONNECTIONS:,}",
    "one request": (
        f"{LOCAL.bytes // MIB} MiB and {LOCAL.elements:,} elements; "
        f"from peers {PEER.bytes // MIB} MiB and {PEER.elements:,}"
    ),
    "one event": f"{MAX_EVENT_BYTES // 1024} KiB of XML",
    "the merge subscription of one organisation in transit": f"{parts.MOST_BYTES // MIB} MiB",
    "claims of one member that this peer has forgotten an epoch": (
        f"{CLAIMS_AT_ONCE} at once, then one after each pause of a second to an hour"
    ),
    "organisations below one child in a diffusion tree": f"{MOST_BELOW:,}",
    "reports of unreachable peers in one message": f"{reachability._MOST_NAMES:,} names",
    "number series of one subscription": (
        f"{MOST_SERIES}; those that end before the last acknowledged delivery are not kept"
    ),
    "starts of a producer that a consumer has not confirmed": str(
        outbound_stream._MOST_UNCONFIRMED
    ),
    "epochs of a producer whose events a consumer recognises when they are sent again": str(
        accepted_events._MOST_EPOCHS
    ),
    "root sets of one federation document": f"{MOST_ROOT_SETS:,}",
    "root keys of one root set": f"{MOST_KEYS:,}",
    "fences of one stream from a producer": f"{MOST_FENCES:,}",
    "unfinished TLS handshakes": (
        f"{MOST_HANDSHAKES_PER_ADDRESS} for each address, {MOST_HANDSHAKES} in all, "
        f"{HANDSHAKE_WITHIN_S:g} seconds each"
    ),
    "TLS handshakes of one address in a second": str(HANDSHAKES_PER_S),
    "connections of members, with TLS": (
        f"half of the connections, and {MOST_OF_MEMBER} of one member"
    ),
    "TLS and seal certificates of one organisation": f"{MOST_TLS} and {MOST_SEALS}",
    "MessageIDs of signed requests of one organisation that are still valid": (
        f"{MOST_MESSAGE_IDS:,}"
    ),
    "verified roots of seals": f"{MOST_ROOTS:,}",
    "false signatures of seals in one request": str(MOST_FALSE_SIGNATURES),
    "rows of old evidence that one turn deletes": f"{MOST_DELETED:,}",
    "roots that one timestamp is for": f"{stamping.MOST_ROOTS:,}",
    "one response of the timestamping authority": f"{MAX_RESPONSE_BYTES:,} bytes",
    "one file of evidence": f"{MAX_EVIDENCE_BYTES // MIB} MiB",
    "parts of one message between peers": f"{MOST_PARTS:,}",
    "the head of one HTTP request": f"{MOST_HEAD_BYTES:,} bytes",
    "commands of operators at once": str(admin_server.MOST_CONNECTIONS),
    "one request and one answer of the admin port": (
        f"{MOST_REQUEST_BYTES // MIB} MiB and {MOST_ANSWER_BYTES // MIB} MiB"
    ),
    "lines of the log for `qns peer report`": (
        f"{MOST_LINES:,} of at most {MOST_CHARACTERS:,} characters"
    ),
    "records of the history for `qns why`": f"{MOST_RECORDS:,} searched, {MOST_FOUND} shown",
    "the history": "no limit but the disk's",
    "log lines of one message": (
        f"{MOST_OF_CALLER} a minute for one caller, {MOST_OF_MESSAGE} for all"
    ),
}
"""The first cell of each row with a fixed bound -> the bound, from the constants of the code."""


def test_page_lists_every_fixed_bound_with_the_constant_of_the_code() -> None:
    rows = re.findall(r"^\| ([^|]*?) \| — \| ([^|]*?) \|", PAGE, re.MULTILINE)
    assert dict(rows) == FIXED
    assert len(rows) == len(FIXED)
